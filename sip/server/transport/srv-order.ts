/** Owns in which order SRV records are tried. RFC 2782. */

export type SrvRecord = {
  readonly priority: number
  readonly weight: number
  readonly port: number
  /** `.`: the service is decidedly not offered. */
  readonly name: string
}

/** `random`: 0 ≤ x < 1. Lower priorities first; among equals by chance, in proportion to their weights. */
export function srvOrder(records: readonly SrvRecord[], random: () => number): SrvRecord[] {
  const byPriority = Map.groupBy(records, ({ priority }) => priority)
  return [...byPriority].toSorted(([one], [other]) => one - other).flatMap(([, alike]) => byWeight(alike, random))
}

function byWeight(alike: readonly SrvRecord[], random: () => number): SrvRecord[] {
  // Those without weight stand first, so that they have a small chance of being first. RFC 2782, "Weight".
  const left = alike.toSorted((one, other) => Number(one.weight > 0) - Number(other.weight > 0))
  const ordered: SrvRecord[] = []
  while (left.length > 0) {
    const total = left.reduce((sum, { weight }) => sum + weight, 0)
    const drawn = Math.floor(random() * (total + 1))
    let sum = 0
    const at = left.findIndex(({ weight }) => (sum += weight) >= drawn)
    ordered.push(...left.splice(at, 1))
  }
  return ordered
}

/** Owns which pairs of ports of the range are free, and the order they are tried in: at random, so that nobody knows the next one. Pure. */

export type PortRange = {
  /** Even ports, each once, until all have been tried; what is not given back counts as used. */
  readonly size: number
  take(): number | null
  giveBack(port: number): void
}

/** `random`: 0 ≤ x < 1. The second port of a pair lies in the range as well. */
export function createPortRange([first, last]: readonly [number, number], random: () => number): PortRange {
  const start = first + (first % 2)
  const free: number[] = []
  for (let port = start; port + 1 <= last; port += 2) free.push(port)
  return {
    size: free.length,
    take() {
      const at = Math.floor(random() * free.length)
      const port = free[at]
      const lastFree = free.pop()
      if (port === undefined || lastFree === undefined) return null
      if (at < free.length) free[at] = lastFree
      return port
    },
    giveBack: (port) => void free.push(port),
  }
}

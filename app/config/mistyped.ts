/** Owns which variables look like settings that somebody has mistyped: what is set under a name that nobody reads has no effect. Pure. */

/** Shorter names are like too many others. */
const shortestName = 7
const suffix = /_FILE$/

/** By the name that was typed, the setting that may be meant. */
export function mistypedOf(
  environment: Readonly<Record<string, string | undefined>>,
  settingNames: readonly string[],
): ReadonlyMap<string, string> {
  const known = new Set(settingNames)
  const unknown = Object.keys(environment).filter((name) => !known.has(name.replace(suffix, '')))
  return new Map(
    unknown.flatMap((typed) => {
      const bare = typed.toUpperCase().replace(suffix, '')
      const meant = settingNames.find((name) => isMistyped(bare, name))
      return meant === undefined ? [] : [[typed, typed.endsWith('_FILE') ? `${meant}_FILE` : meant] as const]
    }),
  )
}

/** In another case, without its underscores, or with one or two characters wrong. */
function isMistyped(typed: string, name: string): boolean {
  if (typed.replaceAll('_', '') === name.replaceAll('_', '')) return name.length >= shortestName
  if (name.length < shortestName || Math.abs(typed.length - name.length) > 2) return false
  return distanceOf(typed, name) <= (name.length > 10 ? 2 : 1)
}

/** Characters to be added, left out, exchanged, or swapped with their neighbour. */
function distanceOf(one: string, other: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let row = 1; row <= one.length; row++) {
    const next = [row]
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1]
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      next[column] = Math.min(
        (last[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[column - 2] ?? Number.POSITIVE_INFINITY) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    beforeLast = last
    last = next
  }
  return last[other.length] ?? 0
}

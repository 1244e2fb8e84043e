/** Owns the search for names that a list has twice. Pure. */

/** Where those stand that stand further in front already; in one look at each, however many there are. */
export function repeatedIn(names: readonly string[]): ReadonlySet<number> {
  const seen = new Set<string>()
  return new Set(names.flatMap((name, index) => (seen.size === seen.add(name).size ? [index] : [])))
}

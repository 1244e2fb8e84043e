/** Owns the words of the benches in which calls talk: sections, `seconds=` of a row, numbers of calls. */

export type TalkWish = {
  readonly counts: readonly number[]
  /** Undefined: as long as the bench likes. */
  readonly talkMs: number | undefined
  /** No section was named: all are wanted. */
  readonly isWhole: boolean
  has(section: string): boolean
}

export function talkWishOf(given: readonly string[], defaultCounts: readonly number[]): TalkWish {
  const counts = given.filter((word) => /^\d+$/.test(word)).map(Number)
  const sections = given.filter((word) => /^[a-z]+$/.test(word))
  const seconds = given.find((word) => /^seconds=\d+$/.test(word))?.slice('seconds='.length)
  const isWhole = sections.length === 0
  return {
    counts: counts.length > 0 ? counts : defaultCounts,
    talkMs: seconds === undefined ? undefined : Number(seconds) * 1_000,
    isWhole,
    has: (section) => isWhole || sections.includes(section),
  }
}

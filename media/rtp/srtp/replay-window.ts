/**
 * Owns which packets of one stream have come, by an index that never wraps: the nearest index to a 16-bit sequence number, and a window
 * over the newest ones that refuses what came before. RFC 3711 §3.3.1, §3.3.2, appendix A.
 */

export type ReplayWindow = {
  /** -1 before the first packet. */
  highest(): number
  /** The index that is nearest to the highest one; negative when that would lie before the stream's beginning. Not before the first packet. */
  nearest(sequenceNumber: number): number
  /** False: seen already, or older than the window. */
  isFresh(index: number): boolean
  /** After the packet proved authentic. */
  saw(index: number): void
}

/** A ring of bits in words; the word that is being filled may hold old bits, so the window is one word shorter. RFC 6479. */
const words = 8
const wordBits = 32
const windowSize = (words - 1) * wordBits

export function createReplayWindow(): ReplayWindow {
  const seen = new Uint32Array(words)
  let highest = -1

  const wordOf = (index: number): number => Math.floor(index / wordBits)
  const slotOf = (word: number): number => word % words
  const bitOf = (index: number): number => 1 << (index % wordBits)

  function advanceTo(index: number): void {
    const from = highest < 0 ? wordOf(index) - words : wordOf(highest)
    const cleared = Math.min(wordOf(index) - from, words)
    for (let word = wordOf(index); word > wordOf(index) - cleared; word -= 1) seen[slotOf(word + words)] = 0
    highest = index
  }

  return {
    highest: () => highest,
    nearest: (sequenceNumber) => highest + (((sequenceNumber - highest) << 16) >> 16),
    isFresh(index) {
      if (index > highest) return true
      return index > highest - windowSize && (seen[slotOf(wordOf(index))]! & bitOf(index)) === 0
    },
    saw(index) {
      if (index > highest) advanceTo(index)
      seen[slotOf(wordOf(index))]! |= bitOf(index)
    },
  }
}

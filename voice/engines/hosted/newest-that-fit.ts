/** Owns what is left of a list that is remembered and too long: the newest entries, as far as they fit. Pure. */

/** Bytes of JSON, with the commas. */
export function newestThatFit<Entry>(entries: readonly Entry[], maxBytes: number): Entry[] {
  const kept: Entry[] = []
  let left = maxBytes
  for (const entry of entries.toReversed()) {
    left -= Buffer.byteLength(JSON.stringify(entry)) + 1
    if (left < 0) break
    kept.unshift(entry)
  }
  return kept
}

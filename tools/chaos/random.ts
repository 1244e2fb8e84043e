/** Owns randomness that can be had again: the same seed gives the same numbers (mulberry32). */

export type Random = {
  /** 0 ≤ x < 1. */
  next(): number
  /** 0 … below - 1. */
  below(below: number): number
  pick<Value>(values: readonly Value[]): Value
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return { next, below, pick: (values) => values[below(values.length)] as (typeof values)[number] }
}

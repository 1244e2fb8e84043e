/** Owns means and spreads of traits over the last 200 ms and the last second, and how deep and frequent the pauses are. Pure, nothing is allocated. */
import { traits } from './sound-traits.ts'

export type TraitWindows = {
  /** `isHeard`: of a pause only the level counts. */
  add(values: Float64Array, isHeard: boolean): void
  /** `summaries` values. */
  summarise(into: Float64Array): void
  /** Frames that were heard since it was cleared. */
  heard(): number
  clear(): void
}

const short = 10
const long = 50
/** Of each window means of all but the level, and spreads of all; then depth and share of pauses, and how much was heard. */
export const summaries = 2 * (traits - 1 + traits) + 3

export function createTraitWindows(): TraitWindows {
  const kept = new Float64Array(long * traits)
  const isKept = new Uint8Array(long)
  /** Of each trait: numbers that a loop carries from turn to turn would each be an object of the heap. */
  const sums = new Float64Array(traits)
  const squares = new Float64Array(traits)
  let added = 0
  let heard = 0

  const window = (frames: number, into: Float64Array, from: number): number => {
    const count = Math.min(frames, added)
    let counted = 0
    let place = from
    sums.fill(0)
    squares.fill(0)
    for (let back = 1; back <= count; back++) {
      const row = (added - back) % long
      if (isKept[row] === 0) continue
      counted++
      for (let trait = 0; trait < traits; trait++) {
        const value = kept[row * traits + trait]!
        sums[trait]! += value
        squares[trait]! += value * value
      }
    }
    for (let trait = 0; trait < traits; trait++) {
      const mean = counted === 0 ? 0 : sums[trait]! / counted
      if (trait > 0) into[place++] = mean
      into[place++] = counted === 0 ? 0 : Math.sqrt(Math.max(0, squares[trait]! / counted - mean * mean))
    }
    return place
  }
  return {
    add(values, isHeard) {
      const row = added++ % long
      isKept[row] = isHeard ? 1 : 0
      if (isHeard) heard++
      for (let trait = 0; trait < traits; trait++) kept[row * traits + trait] = values[trait]!
    },
    summarise(into) {
      let place = window(short, into, 0)
      place = window(long, into, place)
      const count = Math.min(long, added)
      let [quietest, loudest, pauses] = [Number.POSITIVE_INFINITY, 0, 0]
      for (let back = 1; back <= count; back++) {
        const row = (added - back) % long
        const level = kept[row * traits]!
        if (level < quietest) quietest = level
        if (level > loudest) loudest = level
        if (isKept[row] === 0) pauses++
      }
      into[place++] = Math.min(40, loudest - quietest)
      into[place++] = pauses / Math.max(1, count)
      into[place++] = Math.log(1 + Math.min(heard, long))
    },
    heard: () => heard,
    clear() {
      added = 0
      heard = 0
    },
  }
}

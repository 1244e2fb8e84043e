/**
 * Owns what lies halfway between samples, which is all that twice or half a sample rate takes: every second value of a half-band filter is zero,
 * and its middle one leaves the samples that are there as they are. At 8 kHz, 0–3.6 kHz stay as they are (within 0.1 dB), and their images,
 * from 4.4 kHz on, lie 60 dB below. Pure.
 */
import { evened, lowPassAt } from './low-pass.ts'

/** Samples on each side that the one between them is made of: a whole multiple of 4. */
export const reach = 20
/** Shape of the Kaiser window: about 65 dB. */
const beta = 6.2

/** What the samples 0.5, 1.5, … before and behind count for: both sides together 1. */
const weights = evened(
  Float64Array.from({ length: reach }, (_, at) => lowPassAt(2 * at + 1, 0.5, 2 * reach, beta)),
).map((weight) => weight / 2)

/**
 * `out[k]` lies between `line[k + reach - 1]` and `line[k + reach]`. Four at once: of the eight samples that they take at one weight six are
 * those of the weight before, so that each sample is read once where it would be read four times.
 */
export function halfway(line: Float64Array, count: number, out: Float64Array): void {
  const inFours = count - (count % 4)
  for (let k = 0; k < inFours; k += 4) {
    const from = k + reach - 1
    let [a, b, c, d] = [line[from]!, line[from + 1]!, line[from + 2]!, line[from + 3]!]
    let [e, f, g, h] = [b, c, d, line[from + 4]!]
    let [sumOf0, sumOf1, sumOf2, sumOf3] = [0, 0, 0, 0]
    for (let at = 0; at < reach; at += 4) {
      let weight = weights[at]!
      sumOf0 += weight * (a + e)
      sumOf1 += weight * (b + f)
      sumOf2 += weight * (c + g)
      sumOf3 += weight * (d + h)
      weight = weights[at + 1]!
      d = line[from - at - 1]!
      e = line[from + at + 5]!
      sumOf0 += weight * (d + f)
      sumOf1 += weight * (a + g)
      sumOf2 += weight * (b + h)
      sumOf3 += weight * (c + e)
      weight = weights[at + 2]!
      c = line[from - at - 2]!
      f = line[from + at + 6]!
      sumOf0 += weight * (c + g)
      sumOf1 += weight * (d + h)
      sumOf2 += weight * (a + e)
      sumOf3 += weight * (b + f)
      weight = weights[at + 3]!
      b = line[from - at - 3]!
      g = line[from + at + 7]!
      sumOf0 += weight * (b + h)
      sumOf1 += weight * (c + e)
      sumOf2 += weight * (d + f)
      sumOf3 += weight * (a + g)
      if (at + 4 === reach) break
      a = line[from - at - 4]!
      h = line[from + at + 8]!
    }
    out[k] = sumOf0
    out[k + 1] = sumOf1
    out[k + 2] = sumOf2
    out[k + 3] = sumOf3
  }
  for (let k = inFours; k < count; k++) out[k] = halfwayAt(line, k + reach - 1)
}

/** The same, one by one. */
function halfwayAt(line: Float64Array, before: number): number {
  let sum = 0
  for (let at = 0; at < reach; at++) sum += weights[at]! * (line[before - at]! + line[before + 1 + at]!)
  return sum
}

/** Sound that comes in blocks at twice its rate, `reach` samples of it later. The result is valid until the next call. */
export function createDoubler(): { convert(samples: Int16Array): Int16Array } {
  const before = 2 * reach - 1
  let line = new Float64Array(before)
  let between = new Float64Array(0)
  let out = new Int16Array(0)
  return {
    convert(samples) {
      const count = samples.length
      if (line.length < before + count) {
        const longer = new Float64Array(before + count)
        longer.set(line.subarray(0, before))
        line = longer
      }
      if (between.length < count) between = new Float64Array(count)
      if (out.length !== 2 * count) out = new Int16Array(2 * count)
      line.set(samples, before)
      halfway(line, count, between)
      interleave(line, between, count, out)
      line.copyWithin(0, count, count + before)
      return out
    },
  }
}

/** As `Math.round`, within 16 bits. */
export const sampleOf = (value: number): number => {
  if (value >= 32767) return 32767
  return value <= -32768 ? -32768 : ((value + 32768.5) | 0) - 32768
}

/** Samples as they are and those halfway between them, in turn. The first is `line[reach - 1]`. */
export function interleave(line: Float64Array, between: Float64Array, count: number, out: Int16Array): void {
  for (let k = 0; k < count; k++) {
    out[2 * k] = line[k + reach - 1]!
    out[2 * k + 1] = sampleOf(between[k]!)
  }
}

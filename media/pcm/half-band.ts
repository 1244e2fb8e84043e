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
 * `out[k]` lies between `line[k + reach - 1]` and `line[k + reach]`. Four weights of all samples, then the next four: sums that were carried from
 * turn to turn of a loop would each be an object of the heap, and these were three quarters of all garbage that calls made.
 */
export function halfway(line: Float64Array, count: number, out: Float64Array): void {
  out.fill(0, 0, count)
  const inFours = count - (count % 4)
  for (let at = 0; at < reach; at += 4) {
    addToFours(line, inFours, out, at)
    addToEach(line, { from: inFours, count }, out, at)
  }
}

/** Four at a time, which share most of their samples: each is read once for them. */
function addToFours(line: Float64Array, count: number, out: Float64Array, at: number): void {
  const nearest = weights[at]!
  const near = weights[at + 1]!
  const far = weights[at + 2]!
  const farthest = weights[at + 3]!
  for (let k = 0; k < count; k += 4) {
    const before = k + reach - 4 - at
    const behind = k + reach + at
    const b0 = line[before]!
    const b1 = line[before + 1]!
    const b2 = line[before + 2]!
    const b3 = line[before + 3]!
    const b4 = line[before + 4]!
    const b5 = line[before + 5]!
    const b6 = line[before + 6]!
    const a0 = line[behind]!
    const a1 = line[behind + 1]!
    const a2 = line[behind + 2]!
    const a3 = line[behind + 3]!
    const a4 = line[behind + 4]!
    const a5 = line[behind + 5]!
    const a6 = line[behind + 6]!
    out[k] = out[k]! + nearest * (b3 + a0) + near * (b2 + a1) + far * (b1 + a2) + farthest * (b0 + a3)
    out[k + 1] = out[k + 1]! + nearest * (b4 + a1) + near * (b3 + a2) + far * (b2 + a3) + farthest * (b1 + a4)
    out[k + 2] = out[k + 2]! + nearest * (b5 + a2) + near * (b4 + a3) + far * (b3 + a4) + farthest * (b2 + a5)
    out[k + 3] = out[k + 3]! + nearest * (b6 + a3) + near * (b5 + a4) + far * (b4 + a5) + farthest * (b3 + a6)
  }
}

type Part = { readonly from: number; readonly count: number }

function addToEach(line: Float64Array, { from, count }: Part, out: Float64Array, at: number): void {
  for (let k = from; k < count; k++) {
    const before = k + reach - 1 - at
    const behind = k + reach + at
    out[k] =
      out[k]! +
      weights[at]! * (line[before]! + line[behind]!) +
      weights[at + 1]! * (line[before - 1]! + line[behind + 1]!) +
      weights[at + 2]! * (line[before - 2]! + line[behind + 2]!) +
      weights[at + 3]! * (line[before - 3]! + line[behind + 3]!)
  }
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

/**
 * Owns changes of sample rate: a streaming polyphase FIR filter for any ratio of whole numbers, a half-band filter for twice and half the rate.
 * Blocks of 20 ms go in and blocks of 20 ms come out; the filter's memory joins them. Delay: 24 samples of the lower rate (3 ms at 8 kHz), 20
 * where one rate is twice the other.
 */
import { halfway, interleave, reach, sampleOf } from './half-band.ts'
import { evened, lowPassAt } from './low-pass.ts'

export type Resampler = {
  /** The result is valid until the next call. */
  readonly convert: (samples: Int16Array) => Int16Array
}

/** Filter length in samples of the lower rate. 48 keep 0–3.3 kHz of an 8 kHz line and hold images below -65 dB. */
const tapsAtLowRate = 48
/** Middle of the transition, as a part of the lower rate. */
const cutoff = 0.46
/** The sums in `filtered` that do not wait for each other; a filter is a multiple of as many taps. */
const summedAtOnce = 4
/** Shape of the Kaiser window: about 70 dB. */
const kaiserBeta = 7

/** Null when both rates are the same: nothing to do, nothing to copy. */
export function createResampler(fromHz: number, toHz: number): Resampler | null {
  if (fromHz === toHz) return null
  if (toHz === 2 * fromHz) return createDoubler()
  if (fromHz === 2 * toHz) return createHalver()
  const divisor = greatestCommonDivisor(fromHz, toHz)
  const up = toHz / divisor
  const down = fromHz / divisor
  const taps = summedAtOnce * Math.ceil((tapsAtLowRate * Math.max(1, down / up)) / summedAtOnce)
  const phases = phasesOf(up, taps, cutoff * Math.min(1, up / down))
  let line = new Float64Array(taps + 1024)
  let out = new Int16Array(0)
  /** Where the next output lies, in `up`ths of an input sample after the oldest that is not yet passed. */
  let position = 0

  return {
    convert(samples) {
      if (line.length < taps + samples.length) line = grown(line, taps + samples.length)
      for (let i = 0; i < samples.length; i++) line[taps - 1 + i] = samples[i]!
      const end = samples.length * up
      const count = Math.max(0, Math.ceil((end - position) / down))
      if (out.length < count) out = new Int16Array(count)
      filter(line, phases, { out, count, position, down })
      position += count * down - end
      line.copyWithin(0, samples.length, samples.length + taps - 1)
      return out.length === count ? out : out.subarray(0, count)
    },
  }
}

type Step = {
  readonly out: Int16Array
  readonly count: number
  readonly position: number
  readonly down: number
}

/** One sum alone would wait for its last addition at every tap. */
function filter(line: Float64Array, phases: readonly Float64Array[], { out, count, position, down }: Step): void {
  const up = phases.length
  for (let k = 0, at = position; k < count; k++, at += down) {
    const taps = phases[at % up]!
    const from = (at / up) | 0
    let first = 0
    let second = 0
    let third = 0
    let fourth = 0
    for (let t = 0; t < taps.length; t += summedAtOnce) {
      first += taps[t]! * line[from + t]!
      second += taps[t + 1]! * line[from + t + 1]!
      third += taps[t + 2]! * line[from + t + 2]!
      fourth += taps[t + 3]! * line[from + t + 3]!
    }
    out[k] = sampleOf(first + second + (third + fourth))
  }
}

/** Blocks begin at a whole sample of the lower rate here, so there is no position. */
function createDoubler(): Resampler {
  const before = 2 * reach - 1
  let line = new Float64Array(before)
  let between = new Float64Array(0)
  let out = new Int16Array(0)
  return {
    convert(samples) {
      const count = samples.length
      if (line.length < before + count) line = grown(line, before + count)
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

/** Every second sample is one of the lower rate, and the others say what to leave out of it. `isOdd`: a block ended between two of the former. */
function createHalver(): Resampler {
  const before = 2 * reach - 1
  let kept = new Float64Array(before)
  let others = new Float64Array(before)
  let between = new Float64Array(0)
  let out = new Int16Array(0)
  let isOdd = false
  return {
    convert(samples) {
      const most = before + 1 + samples.length
      if (kept.length < most) [kept, others] = [grown(kept, most), grown(others, most)]
      let [toKept, toOthers] = [before + (isOdd ? 1 : 0), before]
      for (let at = 0; at < samples.length; at++) {
        if (isOdd) others[toOthers++] = samples[at]!
        else kept[toKept++] = samples[at]!
        isOdd = !isOdd
      }
      const count = toOthers - before
      if (between.length < count) between = new Float64Array(count)
      if (out.length !== count) out = new Int16Array(count)
      halfway(others, count, between)
      for (let k = 0; k < count; k++) out[k] = sampleOf((kept[k + reach]! + between[k]!) / 2)
      kept.copyWithin(0, count, toKept)
      others.copyWithin(0, count, toOthers)
      return out
    },
  }
}

/** The prototype low-pass cut into one filter per phase, each reversed so that it runs forward over the line and scaled to a gain of 1. */
function phasesOf(up: number, taps: number, relativeCutoff: number): Float64Array[] {
  const middle = (taps * up - 1) / 2
  return Array.from({ length: up }, (_, phase) =>
    evened(
      Float64Array.from({ length: taps }, (_, t) => {
        const at = (taps - 1 - t) * up + phase - middle
        return lowPassAt(at, (2 * relativeCutoff) / up, middle + 0.5, kaiserBeta)
      }),
    ),
  )
}

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b))

function grown(line: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const longer = new Float64Array(length)
  longer.set(line)
  return longer
}

/**
 * Owns changes of sample rate: a streaming polyphase FIR filter for any ratio of whole numbers. Blocks of 20 ms go in and
 * blocks of 20 ms come out; the filter's memory joins them. Delay: 24 samples of the lower rate (3 ms at 8 kHz). What hears speech was
 * trained on sound that went through this filter; another one, flatter up to 3.6 kHz, made it miss words of a telephone.
 */
import { sampleOf } from './half-band.ts'
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
  const divisor = greatestCommonDivisor(fromHz, toHz)
  const up = toHz / divisor
  const down = fromHz / divisor
  const taps = summedAtOnce * Math.ceil((tapsAtLowRate * Math.max(1, down / up)) / summedAtOnce)
  const phases = sharedPhasesOf(up, down, taps)
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
      if (up === 2 && down === 1) double(line, phases, out, samples.length)
      else filter(line, phases, { out, count, position, down })
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

/**
 * A telephone's 8 kHz become 16 kHz for most engines: both outputs of a place read the same
 * samples, which halves the time. Blocks begin at a whole sample here, so there is no position.
 */
function double(line: Float64Array, phases: readonly Float64Array[], out: Int16Array, count: number): void {
  const [even, odd] = phases as readonly [Float64Array, Float64Array]
  const length = even.length
  for (let k = 0; k < count; k++) {
    let even0 = 0
    let even1 = 0
    let odd0 = 0
    let odd1 = 0
    for (let t = 0; t < length; t += 2) {
      const one = line[k + t]!
      const other = line[k + t + 1]!
      even0 += even[t]! * one
      odd0 += odd[t]! * one
      even1 += even[t + 1]! * other
      odd1 += odd[t + 1]! * other
    }
    out[2 * k] = sampleOf(even0 + even1)
    out[2 * k + 1] = sampleOf(odd0 + odd1)
  }
}

/** By their ratio: there are few, and working one out takes as long as several frames of sound. */
const worked = new Map<string, readonly Float64Array[]>()

function sharedPhasesOf(up: number, down: number, taps: number): readonly Float64Array[] {
  const ratio = `${up}/${down}`
  const known = worked.get(ratio) ?? phasesOf(up, taps, cutoff * Math.min(1, up / down))
  worked.set(ratio, known)
  return known
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

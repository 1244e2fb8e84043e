/**
 * Owns changes of sample rate: a streaming polyphase FIR filter for any ratio of whole numbers. Blocks of 20 ms go in and
 * blocks of 20 ms come out; the filter's memory joins them. Delay: 24 samples of the lower rate (3 ms at 8 kHz).
 */

export type Resampler = {
  /** The result is valid until the next call. */
  readonly convert: (samples: Int16Array) => Int16Array
}

/** Filter length in samples of the lower rate. 48 keep 0–3.3 kHz of an 8 kHz line and hold images below -65 dB. */
const tapsAtLowRate = 48
/** Middle of the transition, as a part of the lower rate. */
const cutoff = 0.46
/** Shape of the Kaiser window: about 70 dB. */
const kaiserBeta = 7

/** Null when both rates are the same: nothing to do, nothing to copy. */
export function createResampler(fromHz: number, toHz: number): Resampler | null {
  if (fromHz === toHz) return null
  const divisor = greatestCommonDivisor(fromHz, toHz)
  const up = toHz / divisor
  const down = fromHz / divisor
  const taps = Math.ceil(tapsAtLowRate * Math.max(1, down / up))
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
      for (let k = 0; k < count; k++, position += down)
        out[k] = filtered(line, Math.floor(position / up), phases[position % up]!)
      position -= end
      line.copyWithin(0, samples.length, samples.length + taps - 1)
      return out.length === count ? out : out.subarray(0, count)
    },
  }
}

function filtered(line: Float64Array, from: number, taps: Float64Array): number {
  let sum = 0
  for (let t = 0; t < taps.length; t++) sum += taps[t]! * line[from + t]!
  return Math.max(-32768, Math.min(32767, Math.round(sum)))
}

/** The prototype low-pass cut into one filter per phase, each reversed so that it runs forward over the line and scaled to a gain of 1. */
function phasesOf(up: number, taps: number, relativeCutoff: number): Float64Array[] {
  const middle = (taps * up - 1) / 2
  return Array.from({ length: up }, (_, phase) => {
    const filter = Float64Array.from({ length: taps }, (_, t) => {
      const at = (taps - 1 - t) * up + phase - middle
      return sinc((2 * relativeCutoff * at) / up) * kaiser(at / (middle + 0.5))
    })
    const gain = filter.reduce((sum, tap) => sum + tap, 0)
    return filter.map((tap) => tap / gain)
  })
}

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x))

const kaiser = (x: number): number => bessel(kaiserBeta * Math.sqrt(Math.max(0, 1 - x * x))) / bessel(kaiserBeta)

/** Modified Bessel function of the first kind, order 0, by its power series. */
function bessel(x: number): number {
  let sum = 1
  for (let k = 1, term = 1; k < 40; k++) {
    term *= (x / (2 * k)) ** 2
    sum += term
  }
  return sum
}

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b))

function grown(line: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const longer = new Float64Array(length)
  longer.set(line)
  return longer
}

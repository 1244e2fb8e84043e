/**
 * Owns finding one tone in 20 ms of sound: which frequency is strongest, and how much of all the sound a single sine of it explains. A
 * voice, music and the two tones of a key have parts that no single sine explains. Pure.
 */
import { factorOf, powerAt } from './goertzel.ts'

export type Tone = {
  readonly hertz: number
  /** Of the sine, root mean square in 16-bit samples. */
  readonly level: number
  /** Part of the energy of all sound that is the sine, 0–1. */
  readonly purity: number
}

export type ToneFinder = {
  /** One frame of 20 ms. Null: all but silent. */
  readonly find: (samples: Int16Array) => Tone | null
}

export const lowestTone = 350
export const highestTone = 2200

/** Frequencies that are tried; a frame of 20 ms tells 50 Hz from each other. */
const stepHertz = 25
/** -50 dBm0, root mean square: quieter than any beep that is meant to be heard. */
const quietest = 50

export function createToneFinder(rateHz: number): ToneFinder {
  const first = lowestTone - stepHertz
  const tried = Array.from(
    { length: Math.ceil((highestTone - lowestTone) / stepHertz) + 3 },
    (_, i) => first + i * stepHertz,
  )
  const factors = tried.map((hertz) => factorOf(hertz, rateHz))
  const powers = new Float64Array(tried.length)
  let windowed = new Float64Array(0)
  let window = new Float64Array(0)

  const strongest = (samples: Int16Array): number => {
    if (window.length !== samples.length) window = hannOf(samples.length)
    if (windowed.length !== samples.length) windowed = new Float64Array(samples.length)
    for (let i = 0; i < samples.length; i++) windowed[i] = samples[i]! * window[i]!
    for (let i = 0; i < tried.length; i++) powers[i] = powerAt(windowed, factors[i]!)
    let best = 1
    for (let i = 2; i < tried.length - 1; i++) if (powers[i]! > powers[best]!) best = i
    return tried[best]! + stepHertz * summitOf(powers[best - 1]!, powers[best]!, powers[best + 1]!)
  }

  return {
    find(samples) {
      const energy = energyOf(samples)
      if (energy < quietest * quietest * samples.length) return null
      const hertz = strongest(samples)
      const explained = energyOfSine(samples, hertz, rateHz)
      return { hertz, level: Math.sqrt(explained / samples.length), purity: explained / energy }
    },
  }
}

export const energyOf = (samples: Int16Array): number => {
  let sum = 0
  for (let i = 0; i < samples.length; i++) sum += samples[i]! * samples[i]!
  return sum
}

const hannOf = (length: number): Float64Array<ArrayBuffer> =>
  Float64Array.from({ length }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * (i + 0.5)) / length))

/** Where between three neighbours the summit lies, in steps; the logarithm of a window's lobe is nearly a parabola. */
function summitOf(left: number, middle: number, right: number): number {
  const [a, b, c] = [Math.log(left + 1), Math.log(middle + 1), Math.log(right + 1)]
  const bend = a - 2 * b + c
  return bend >= 0 ? 0 : Math.max(-1, Math.min(1, (a - c) / (2 * bend)))
}

/** Energy of the best fitting sine of that frequency, by least squares. */
function energyOfSine(samples: Int16Array, hertz: number, rateHz: number): number {
  const step = (2 * Math.PI * hertz) / rateHz
  let [ss, cc, sc, sy, cy] = [0, 0, 0, 0, 0]
  let [sine, cosine] = [0, 1]
  const [turnSine, turnCosine] = [Math.sin(step), Math.cos(step)]
  for (let i = 0; i < samples.length; i++) {
    ss += sine * sine
    cc += cosine * cosine
    sc += sine * cosine
    sy += sine * samples[i]!
    cy += cosine * samples[i]!
    const next = cosine * turnCosine - sine * turnSine
    sine = sine * turnCosine + cosine * turnSine
    cosine = next
  }
  const determinant = ss * cc - sc * sc
  if (determinant <= 0) return 0
  return (sy * (sy * cc - cy * sc) + cy * (cy * ss - sy * sc)) / determinant
}

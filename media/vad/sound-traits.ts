/**
 * Owns what tells voices from music, frame by frame: whether the parts of a sound stay where they are, as in notes, or glide, as in a voice; whether they
 * are those of one pitch; how fast mouth or chord change. Up to 3.4 kHz, which telephones carry. Pure; some 10 µs for a frame that is measured.
 */
import { createPowerSpectrum } from './power-spectrum.ts'

/** So many values tell a frame, see `measure`. */
export const traits = 10

export type SoundTraits = {
  /** Every frame of 20 ms at 16 kHz. */
  push(samples: Int16Array): void
  /** Of the newest 64 ms, compared with 80 ms before. `level` of the newest frame, dB. Fills `traits` values, the level first. */
  measure(level: number, into: Float64Array): void
  /** What comes is not compared with what was. */
  clear(): void
}

/** Samples at 8 kHz. */
const size = 512
const hertzApart = 8000 / size
const lowest = 4
const bins = 214
const binsBelow1kHz = 60
/** The envelope of a spectrum is its mean over so many bins to each side. */
const around = 8
/** Frames between those that are compared: the windows do not overlap. */
const apart = 4
/** What µ-law and dither leave. */
const least = (size * 8) ** 2
const decibels = 10 / Math.LN10

const pitchesPerOctave = 48
const lowestPitch = 75
const pitchCount = 2.5 * pitchesPerOctave
const highestOvertone = 2000
/** Semitones in 80 ms: less stays, more is another note. */
const leastGlide = 0.3
const mostGlide = 1.8

export function createSoundTraits(): SoundTraits {
  const spectrum = createPowerSpectrum(size)
  const ring = new Float64Array(size)
  const logs = new Float64Array(bins)
  const kept = Array.from({ length: apart + 1 }, () => ({
    peaks: new Float64Array(bins),
    envelope: new Float64Array(bins),
    pitch: 0,
  }))
  const combs = Array.from({ length: pitchCount }, (_, index) => combOf(lowestPitch * 2 ** (index / pitchesPerOctave)))
  let at = 0
  let frames = 0
  let levelBefore = 0
  /** Of the newest frame: of its high sound, and of all. */
  const strength = new Float64Array(2)

  /** The newest spectrum as an envelope and what stands out of it. */
  const analyse = (envelope: Float64Array, peaks: Float64Array): void => {
    const powers = spectrum.of(ring, at)
    for (let bin = 0; bin < bins; bin++) logs[bin] = decibels * Math.log(powers[bin + lowest]! + least)
    let sum = 0
    for (let bin = 0; bin < around; bin++) sum += logs[bin]!
    for (let bin = 0; bin < bins; bin++) {
      if (bin + around < bins) sum += logs[bin + around]!
      if (bin > around) sum -= logs[bin - around - 1]!
      const mean = sum / (Math.min(bins - 1, bin + around) - Math.max(0, bin - around) + 1)
      envelope[bin] = mean
      peaks[bin] = Math.max(0, logs[bin]! - mean)
    }
  }
  return {
    push(samples) {
      // What a loop carries from turn to turn is here and not in variables: there each new value would be an object of the heap.
      strength.fill(0)
      for (let index = 0; index + 1 < samples.length; index += 2) {
        const value = (samples[index]! + samples[index + 1]!) / 2
        const rise = value - 0.95 * ring[(at + size - 1) % size]!
        strength[0]! += rise * rise
        strength[1]! += value * value
        ring[at] = value
        at = (at + 1) % size
      }
    },
    measure(level, into) {
      const [now, before] = [kept[frames % kept.length]!, kept[(frames + 1) % kept.length]!]
      frames++
      analyse(now.envelope, now.peaks)
      now.pitch = pitchOf(now.peaks, combs)
      const isComparable = frames > apart
      const moved = isComparable ? (Math.abs(now.pitch - before.pitch) * 12) / pitchesPerOctave : 0
      into[0] = level
      into[1] = 10 * Math.log10((strength[0]! + 1) / (strength[1]! + 1))
      into[2] = isComparable ? likeness(now.peaks, before.peaks, 0, binsBelow1kHz) : 0
      into[3] = isComparable ? likeness(now.peaks, before.peaks, binsBelow1kHz, bins) : 0
      into[4] = isComparable ? motion(now.envelope, before.envelope) : 0
      into[5] = Math.sqrt(squareOf(now.peaks, 0, bins) / bins)
      into[6] = shareOf(now.peaks, combs[now.pitch]!)
      into[7] = Math.min(2, moved)
      into[8] = moved > leastGlide && moved < mostGlide ? 1 : 0
      into[9] = frames > 1 ? Math.max(0, Math.min(20, level - levelBefore)) : 0
      levelBefore = level
    },
    clear() {
      frames = 0
    },
  }
}

/** Bins of the overtones of a pitch, and those in the middle between them. */
type Comb = { readonly on: readonly number[]; readonly between: readonly number[] }

function combOf(hertz: number): Comb {
  const on: number[] = []
  const between: number[] = []
  const put = (bin: number, list: number[]): void => {
    if (bin >= 1 && bin < bins - 1) list.push(bin)
  }
  for (let overtone = 1; overtone * hertz < highestOvertone; overtone++) {
    put(Math.round((overtone * hertz) / hertzApart) - lowest, on)
    put(Math.round(((overtone + 0.5) * hertz) / hertzApart) - lowest, between)
  }
  return { on, between }
}

/** The number of the comb that fits best. */
function pitchOf(peaks: Float64Array, combs: readonly Comb[]): number {
  let [best, most] = [0, 0]
  for (let pitch = 0; pitch < combs.length; pitch++) {
    const { on, between } = combs[pitch]!
    let sum = 0
    for (const bin of on) sum += peaks[bin]!
    for (const bin of between) sum -= peaks[bin]!
    sum /= Math.sqrt(on.length)
    if (sum <= most) continue
    most = sum
    best = pitch
  }
  return best
}

/** How much of what stands out is of one pitch: polyphony has less. */
function shareOf(peaks: Float64Array, { on }: Comb): number {
  let [inComb, total] = [0, 0]
  for (const bin of on) inComb += peaks[bin - 1]! + peaks[bin]! + peaks[bin + 1]!
  for (let bin = 0; bin < 2 * binsBelow1kHz; bin++) total += peaks[bin]!
  return total === 0 ? 0 : inComb / total
}

/** 1: the same peaks at the same places. */
function likeness(now: Float64Array, before: Float64Array, from: number, to: number): number {
  let product = 0
  for (let bin = from; bin < to; bin++) product += now[bin]! * before[bin]!
  const squares = squareOf(now, from, to) * squareOf(before, from, to)
  return squares === 0 ? 0 : product / Math.sqrt(squares)
}

/** dB, whatever the loudness. */
function motion(now: Float64Array, before: Float64Array): number {
  let [sum, squares] = [0, 0]
  for (let bin = 0; bin < now.length; bin++) {
    const difference = now[bin]! - before[bin]!
    sum += difference
    squares += difference * difference
  }
  const mean = sum / now.length
  return Math.sqrt(Math.max(0, squares / now.length - mean * mean))
}

function squareOf(values: Float64Array, from: number, to: number): number {
  let sum = 0
  for (let bin = from; bin < to; bin++) sum += values[bin]! * values[bin]!
  return sum
}

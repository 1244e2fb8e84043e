/**
 * Owns the sound of one side of a recording while it can still be placed: a ring of 2.56 s at the rate of that sound, 8 kHz of a telephone or
 * 16 kHz. It begins with the first sound, and becomes wide with the first of more than 8 kHz. Pure.
 */
import { createDoubler, halfway, interleave, reach } from '../pcm/half-band.ts'
import { createResampler, type Resampler } from '../pcm/resample.ts'

export const recordingRateHz = 16_000
const narrowRateHz = 8_000

/** Positions are samples of 16 kHz since the beginning of the recording, and the edge is an even one. */
export type Track = {
  /** What lies before the edge or beyond the window is left out. */
  readonly place: (edge: number, position: number, samples: Int16Array, rateHz: number) => void
  readonly isWide: () => boolean
  /** Of a wide one: what lies from `position` on. */
  readonly copyTo: (out: Int16Array, position: number) => void
  /** Of a narrow one: adds what lies from `at` on, which counts samples of 8 kHz. */
  readonly addTo: (line: Float64Array, at: number) => void
  /** Everything before the edge was taken. */
  readonly clearUntil: (edge: number) => void
}

/** Sound of 8 kHz at 16 kHz. One serves both sides. */
export type Doubling = {
  /** Makes one piece, which begins at the even `position`. `fill` gives all sound of 8 kHz around it: from `at` on, which counts such samples. */
  readonly make: (out: Int16Array, position: number, fill: (line: Float64Array, at: number) => void) => void
}

/** Samples of 16 kHz that are made at once: 40 ms. */
export const pieceLength = 640

export function createDoubling(): Doubling {
  const line = new Float64Array(pieceLength / 2 + 2 * reach)
  const between = new Float64Array(pieceLength / 2)
  return {
    make(out, position, fill) {
      line.fill(0)
      fill(line, position / 2 - reach + 1)
      // Who does not speak: most of the time one side, and on a digital line exactly.
      if (isSilent(line)) return void out.fill(0)
      halfway(line, between.length, between)
      interleave(line, between, between.length, out)
    },
  }
}

/** 2.56 s. What was taken last stays for a moment: what comes next is made of it too. */
const wideLength = 40_960
const window = wideLength - 2 * reach

export function createTrack(doubling: Doubling): Track {
  let ring = new Int16Array(0)
  let isWide = false
  let resampler: Resampler | null = null
  let resampledFrom = 0
  let cleared = 0

  const addTo = (line: Float64Array, at: number): void => {
    if (ring.length === 0) return
    let from = (at + ring.length) % ring.length
    for (let to = 0; to < line.length; to++) {
      line[to]! += ring[from]!
      if (++from === ring.length) from = 0
    }
  }
  const widen = (edge: number): void => {
    const wide = new Int16Array(wideLength)
    const part = new Int16Array(pieceLength)
    // What would come behind that lies before the edge in the ring.
    for (let at = edge; at + part.length <= edge + window && ring.length > 0; at += part.length) {
      doubling.make(part, at, addTo)
      put(wide, at, part)
    }
    ring = wide
    isWide = true
    cleared = edge
  }
  const wideOf = (samples: Int16Array, rateHz: number): Int16Array => {
    if (rateHz === recordingRateHz) return samples
    if (resampledFrom !== rateHz)
      resampler = rateHz === narrowRateHz ? createDoubler() : createResampler(rateHz, recordingRateHz)
    resampledFrom = rateHz
    return resampler?.convert(samples) ?? samples
  }

  return {
    isWide: () => isWide,
    addTo,
    place(edge, position, given, rateHz) {
      if (!isWide && rateHz > narrowRateHz) widen(edge)
      if (ring.length === 0) ring = new Int16Array(wideLength / 2)
      const samples = isWide ? wideOf(given, rateHz) : given
      const perSample = isWide ? 1 : 2
      const [at, begin] = [Math.round(position / perSample), edge / perSample]
      const from = Math.max(0, begin - at)
      const to = Math.min(samples.length, begin + window / perSample - at)
      if (from < to) put(ring, at + from, to - from === samples.length ? samples : samples.subarray(from, to))
    },
    copyTo(out, position) {
      const at = position % ring.length
      const first = Math.min(out.length, ring.length - at)
      out.set(ring.subarray(at, at + first))
      out.set(ring.subarray(0, out.length - first), first)
    },
    clearUntil(edge) {
      const until = isWide ? edge : Math.floor(edge / 2) - reach
      if (ring.length > 0 && until > cleared) clear(ring, cleared, until)
      cleared = Math.max(cleared, until)
    },
  }
}

function isSilent(line: Float64Array): boolean {
  for (let at = 0; at < line.length; at++) if (line[at] !== 0) return false
  return true
}

function put(ring: Int16Array, position: number, samples: Int16Array): void {
  const at = position % ring.length
  const first = ring.length - at
  if (samples.length <= first) return ring.set(samples, at)
  ring.set(samples.subarray(0, first), at)
  ring.set(samples.subarray(first), 0)
}

function clear(ring: Int16Array, from: number, to: number): void {
  const [at, end] = [from % ring.length, to % ring.length]
  if (at <= end) return void ring.fill(0, at, end)
  ring.fill(0, at)
  ring.fill(0, 0, end)
}

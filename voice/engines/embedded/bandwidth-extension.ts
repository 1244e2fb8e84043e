/**
 * Owns what a telephone line does not carry: sound above 3.5 kHz, without which the recogniser takes an s for nothing and one vowel for another.
 * It is guessed from what lies below and put back as noise of that strength. Sound that has its upper half is left alone.
 */
import { createBandPass, createHighPass } from './band-filters.ts'

export type BandwidthExtension = {
  /** The next samples of an utterance, 16 kHz, times `gain`. */
  restore(samples: Int16Array, gain: number): Float64Array
  /** Something above a telephone's band has been heard: it is left alone from there on. */
  isWide(): boolean
}

type Band = readonly [fromHz: number, toHz: number]

const kept: readonly Band[] = [
  [150, 450],
  [450, 850],
  [850, 1300],
  [1300, 1800],
  [1800, 2350],
  [2350, 2900],
  [2900, 3400],
]
const lost: readonly Band[] = [
  [3550, 4200],
  [4200, 4900],
  [4900, 5800],
  [5800, 6800],
]
/**
 * How strong a lost band is, in dB: one number by itself, one times the strongest kept band, seven times how far each kept band lies below that,
 * seven times the squares of those. Fitted to sentences of the synthetic voices, before and after µ-law; what half of the voices teach serves the
 * other half as well.
 */
const teaching: readonly (readonly number[])[] = [
  [3.68, 0.87, 0.28, -0.34, -0.05, -0.03, 0.01, -0.36, 1.59, 0.19, -0.12, -0.04, -0.08, -0.01, -0.19, 0.32],
  [6.59, 0.69, 0.39, -0.39, -0.08, 0.12, 0.22, -0.49, 1.48, 0.26, -0.01, -0.14, 0.02, 0.06, -0.16, 0.28],
  [6.95, 0.63, 0.74, -0.57, 0.19, 0.06, 0.34, -0.58, 1.35, 0.64, -0.04, -0.07, -0.04, 0.1, -0.16, 0.28],
  [6.31, 0.54, 0.59, -0.4, 0.07, 0.09, 0.48, -0.57, 1.11, 0.44, 0.1, -0.11, -0.03, 0.17, -0.2, 0.25],
]
const squareScale = 20
/** dB below the strongest band; what lies deeper is the noise of the line. */
const deepest = -40
/** dB above the strongest band: no guess goes further. */
const highest = 6

/** 5 ms. */
const blockSamples = 80
/** Of the newest block in the strengths: they follow within 15 ms. */
const newest = 0.35

/** Of an 8 kHz line less than -50 dB reach this high, and where it was too loud and is clipped, up to -34; a hiss or an s has -10 there. */
const upperHalfHz = 5500
const upperShare = 10 ** -2.5
/** Mean square before the gain. Rounding to 16 bits makes up to 0.03. */
const audibleSquare = 0.5

/** After so many nothing is left of a click in any band. */
const clickSamples = 1000

/** For one utterance. `noise` gives numbers from -1 to 1, all as likely. */
export function createBandwidthExtension(noise: () => number): BandwidthExtension {
  let isWide = false
  const strengths = createStrengths()
  const fills = lost.map(([fromHz, toHz]) => createFill(fromHz, toHz, noise))
  const hasUpperHalf = createUpperHalf()
  return {
    restore(samples, gain) {
      const sound = louder(samples, gain)
      for (let at = 0; at < samples.length; at += blockSamples) {
        const block = sound.subarray(at, at + blockSamples)
        isWide = hasUpperHalf(block, gain)
        if (isWide) return sound
        const features = featuresOf(strengths(block))
        for (const [index, fill] of fills.entries()) fill(block, guessOf(features, teaching[index] ?? []))
      }
      return sound
    },
    isWide: () => isWide,
  }
}

export function louder(samples: Int16Array, gain: number): Float64Array {
  const sound = new Float64Array(samples.length)
  for (let index = 0; index < sound.length; index++) sound[index] = gain * (samples[index] ?? 0)
  return sound
}

/** True from the first block on that has something above the telephone's band. */
function createUpperHalf(): (block: Float64Array, gain: number) => boolean {
  const highPass = createHighPass(upperHalfHz)
  let found = false
  return (block, gain) => {
    if (found) return true
    const upper = block.slice()
    highPass(upper)
    const square = meanSquareOf(upper)
    found = square > audibleSquare * gain * gain && square > upperShare * meanSquareOf(block)
    return found
  }
}

/** Of the kept bands, in dB of a mean square of 1. */
function createStrengths(): (block: Float64Array) => readonly number[] {
  const bands = kept.map(([fromHz, toHz]) => ({ filter: createBandPass(fromHz, toHz), square: 0 }))
  return (block) =>
    bands.map((band) => {
      const passed = block.slice()
      band.filter(passed)
      band.square += newest * (meanSquareOf(passed) - band.square)
      return 10 * Math.log10(band.square + 1)
    })
}

function featuresOf(strengths: readonly number[]): readonly number[] {
  const strongest = Math.max(...strengths)
  const below = strengths.map((strength) => Math.max(deepest, strength - strongest))
  return [1, strongest, ...below, ...below.map((depth) => (depth * depth) / squareScale)]
}

function guessOf(features: readonly number[], taught: readonly number[]): number {
  const guess = taught.reduce((sum, weight, index) => sum + weight * (features[index] ?? 0), 0)
  return Math.min((features[1] ?? 0) + highest, guess)
}

/** Adds a band of noise, its strength going from that of the last block to the one asked for, in dB. */
function createFill(fromHz: number, toHz: number, noise: () => number) {
  const filter = createBandPass(fromHz, toHz)
  const unit = passedOf(fromHz, toHz)
  let level = 0
  return (block: Float64Array, strength: number): void => {
    const step = (Math.sqrt(10 ** (strength / 10) / unit) - level) / block.length
    const hiss = new Float64Array(block.length)
    for (let index = 0; index < hiss.length; index++) hiss[index] = noise()
    filter(hiss)
    for (let index = 0; index < block.length; index++) {
      level += step
      block[index] = (block[index] ?? 0) + level * (hiss[index] ?? 0)
    }
  }
}

/** Mean square of the noise that is left in the band: the energy of the filter's answer to a click, times the noise's own mean square of 1/3. */
function passedOf(fromHz: number, toHz: number): number {
  const click = new Float64Array(clickSamples)
  click[0] = 1
  createBandPass(fromHz, toHz)(click)
  return (meanSquareOf(click) * clickSamples) / 3
}

function meanSquareOf(block: Float64Array): number {
  let sum = 0
  for (const sample of block) sum += sample * sample
  return sum / Math.max(1, block.length)
}

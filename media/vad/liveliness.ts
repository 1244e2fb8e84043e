/**
 * Owns telling a voice from sound that moves less: tones, the signals of exchanges, keys and faxes, hum, noise, music. Speech changes its strength and
 * its sounds several times in 120 ms, falls all but silent within a second, and does not stop doing so. Pure: frames of 20 ms; a few numbers of each are kept.
 */
import { createPredictionGain } from './prediction-gain.ts'
import { createRecentLevels } from './recent-levels.ts'
import { bitsOf } from './voice-activity.ts'

/** `dull`: too little for a voice, so far; `noisy`: nor has it a pitch. */
export type Movement = 'dull' | 'noisy' | 'lively'

export type Liveliness = {
  /** One frame, its root mean square in dB beside it. `isHeard`: it stands out from the noise of the line. */
  hear(samples: Int16Array, level: number, isHeard: boolean): void
  /** It does not move at all, by its last 120 ms: a tone, or even noise. */
  isSteady(): boolean
  /** Of the last 120 ms, and of up to two seconds before. Some microseconds of work: not for every frame. */
  movement(): Movement
  /** Three seconds of sound that moved less than any voice. */
  isNoVoice(): boolean
}

/** Frames that are compared. */
const span = 6
/** dB between the loudest and the quietest of them: so little is steady, whatever it is made of. */
const sameLevel = 0.5
/** The same of sound with its high part brought up, where noise is even that rumbles below. */
const sameHighLevel = 2.3
/** So much is the beat of two tones, or the swing of a modem's answer, if all else says that it is tones. */
const beating = 3.2
const sameCrossings = 4
/** dB of linear prediction: a vowel on a telephone line has up to 30. */
const tonal = 34
/** Noise has less, on a telephone line too; vowels that a monotonous voice holds have more, however even they are. */
const unpitched = 30
/** Of so many frames so many are steady in a tone; of a monotonous voice up to half are. */
const steadySpan = 20
const steadyFrames = 14

/**
 * How likely it is a voice, from three spreads over the span: of the level, of the level with high sound brought up (both dB), of zero crossings.
 * A logistic regression of 1,190 beginnings of speech by eight voices against 2,780 of music.
 */
const weights = { level: 0.34, highLevel: 1.38, crossings: 0.79, bias: -5.1 } as const
const least = 0.05
/** A span of less begins nothing: one beginning of speech in nine waits some frames more, one in thirty longer than 140 ms, none is lost. */
const dullSpan = -0.6
/** What the depth of the quietest moments below the loudest ones adds to the mean, per dB. */
const perDepth = 0.06
/** Two seconds of speech have 3.7, one in a hundred 2.3; of music, -0.7 and 1.5. */
const frames2s = 100
const dull2s = 1.7
/** Less can be told of less. */
const dull1s = 1.3
const dull150ms = 1
const telling = 8
/** The smoothest of the synthetic voices falls below it for some words, music stays there. */
const noVoice = 0.6
const lifelessFrames = 60
/** Frames without sound after which what was heard says nothing of what comes. */
const forgetAfter = 25
/** A chord that is held counts as music; hum and noise of the line do not. dB of a sample's unit, and of linear prediction. */
const loud = 55
const pitched = 20
const leastScore = -3

export function createLiveliness(frameSamples: number): Liveliness {
  const levels = new Float64Array(span)
  const highLevels = new Float64Array(span)
  const crossings = new Float64Array(span)
  const scores = new Float64Array(frames2s)
  const recent = createRecentLevels(frames2s)
  const gainOf = createPredictionGain(frameSamples)
  let last = 0
  let frames = 0
  let scored = 0
  /** Frames in a row. */
  let lifeless = 0
  let silent = 0
  let isSteady = false
  let newest: Int16Array = new Int16Array(0)
  /** One bit for each of the last frames. */
  let steadiness = 0

  const steadyOf = (samples: Int16Array): boolean => {
    const spread = spreadOf(levels)
    if (spread <= sameLevel) return true
    if (spreadOf(highLevels) <= sameHighLevel && gainOf(samples) < unpitched) return true
    return spread <= beating && spreadOf(crossings) <= sameCrossings && gainOf(samples) >= tonal
  }
  const spanScore = (): number =>
    weights.level * Math.log(spreadOf(levels) + least) +
    weights.highLevel * Math.log(spreadOf(highLevels) + least) +
    weights.crossings * Math.log(spreadOf(crossings) + least) +
    weights.bias
  const score = (): number => {
    const count = Math.min(scored, frames2s)
    let sum = 0
    for (let index = 0; index < count; index++) sum += scores[index]!
    return sum / count + perDepth * recent.depth()
  }
  const enough = (): number => {
    if (scored < telling) return Number.NEGATIVE_INFINITY
    if (scored < frames2s / 2) return dull150ms
    return scored < frames2s ? dull1s : dull2s
  }
  const keep = (samples: Int16Array, level: number, isHeard: boolean): void => {
    silent = isHeard ? 0 : silent + 1
    if (silent > forgetAfter) {
      scored = 0
      lifeless = 0
      recent.clear()
    }
    isSteady = frames >= span && isHeard && steadyOf(samples)
    steadiness = ((steadiness << 1) | (isSteady ? 1 : 0)) & ((1 << steadySpan) - 1)
    if (!isHeard) return recent.lower(level)
    // A line may hum or hiss below everything that is said on it.
    if (frames < span || (isSteady && (level < loud || gainOf(samples) < pitched))) return
    scores[scored++ % frames2s] = Math.max(leastScore, spanScore())
    recent.add(level)
    lifeless = scored >= frames2s && score() < noVoice ? lifeless + 1 : 0
  }
  return {
    hear(samples, level, isHeard) {
      const at = frames++ % span
      newest = samples
      let [high, crossed] = [0, 0]
      for (let index = 0; index < samples.length; index++) {
        const sample = samples[index]!
        const rise = sample - 0.95 * last
        high += rise * rise
        if (index > 0 && sample < 0 !== last < 0) crossed++
        last = sample
      }
      levels[at] = level
      highLevels[at] = 10 * Math.log10(high / Math.max(1, samples.length) + 1)
      crossings[at] = crossed
      keep(samples, level, isHeard)
    },
    isSteady: () => isSteady && (spreadOf(levels) <= sameLevel || bitsOf(steadiness) >= steadyFrames),
    movement() {
      if (frames < span) return 'lively'
      if (!isSteady && spanScore() >= dullSpan && score() >= enough()) return 'lively'
      return gainOf(newest) < unpitched ? 'noisy' : 'dull'
    },
    isNoVoice: () => lifeless >= lifelessFrames,
  }
}

function spreadOf(values: Float64Array): number {
  let smallest = 0
  let largest = 0
  for (let at = 1; at < values.length; at++) {
    if (values[at]! < values[smallest]!) smallest = at
    if (values[at]! > values[largest]!) largest = at
  }
  return values[largest]! - values[smallest]!
}

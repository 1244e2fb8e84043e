/**
 * Owns when the caller speaks: frames (a voice or not, and how loud) become a beginning and an end. Pure: time is counted in frames of 20 ms.
 * Short noises do not count as speech. The end comes sooner when what was said is known to be complete, and later when it is known not to be.
 */
import { frameMs } from '../../model/frame.ts'

export type SpeechEvent =
  /** Speech began `ago` frames before this one. */
  | { readonly type: 'started'; readonly ago: number }
  /** The last frame of speech was `ago` frames before this one. */
  | { readonly type: 'stopped'; readonly ago: number }

export type VoiceActivity = {
  /**
   * `level` is the root mean square of the frame; `isComplete`: what was said so far is a whole answer; `isUnderWay`: it is the first part of one,
   * as when people stop between the digits of a number.
   */
  next(isVoice: boolean, level: number, isComplete: boolean, isUnderWay?: boolean): SpeechEvent | null
  /** Whoever speaks has spoken long enough: what comes is a new beginning. */
  reset(): void
}

/** 140 ms of voice within 180 ms: a noise of 100 ms touches six frames at most. */
const beginFrames = 7
const windowFrames = 9
const endFrames = 700 / frameMs
const completeEndFrames = 280 / frameMs
const underWayEndFrames = 1200 / frameMs

/** Below this nobody speaks, whatever the detector says: about -50 dB of full scale. */
const faintest = 100
const aboveNoise = 3
const aboveNoiseWhileSpeaking = 2
const loudestNoise = 2000
/** A caller may speak from the first frame on. */
const loudestBeginning = 300

export function createVoiceActivity(): VoiceActivity {
  let noise: number | null = null
  let speaking = false
  let silent = 0
  let window: boolean[] = []

  /** Begins with what the line brings first, falls fast and rises slowly, slower still while somebody speaks. */
  const follow = (level: number): number => {
    noise ??= Math.min(loudestBeginning, level)
    const risen = noise * (speaking ? 1.003 : 1.01)
    noise = Math.min(loudestNoise, level < noise ? Math.max(1, 0.9 * noise + 0.1 * level) : risen)
    return noise
  }
  const begin = (voiced: boolean): SpeechEvent | null => {
    window = [...window, voiced].slice(-windowFrames)
    if (window.filter(Boolean).length < beginFrames) return null
    const ago = window.length - 1 - window.indexOf(true)
    speaking = true
    silent = 0
    window = []
    return { type: 'started', ago }
  }
  const goOn = (voiced: boolean, end: number): SpeechEvent | null => {
    silent = voiced ? 0 : silent + 1
    if (silent < end) return null
    speaking = false
    return { type: 'stopped', ago: silent }
  }

  return {
    next(isVoice, level, isComplete, isUnderWay = false) {
      const above = speaking ? aboveNoiseWhileSpeaking : aboveNoise
      const gate = Math.max(faintest, follow(level) * above)
      const voiced = isVoice && level > gate
      const incomplete = isUnderWay ? underWayEndFrames : endFrames
      return speaking ? goOn(voiced, isComplete ? completeEndFrames : incomplete) : begin(voiced)
    },
    reset() {
      speaking = false
    },
  }
}

/** Root mean square. */
export function levelOf(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return Math.sqrt(sum / Math.max(1, samples.length))
}

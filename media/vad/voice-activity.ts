/**
 * Owns when the caller speaks: frames (a voice or not, and how loud) become a beginning and an end. Pure: time is counted in frames of 20 ms.
 * Short noises do not count as speech. The end comes sooner when what was said is known to be complete, and later when it is known not to be.
 */
import { frameMs } from '../../model/frame.ts'
import { energyOf } from './tone.ts'

export type SpeechEvent =
  /** Speech began `ago` frames before this one. */
  | { readonly type: 'started'; readonly ago: number }
  /** The last frame of speech was `ago` frames before this one. `isNoVoice`: it has turned out that nobody spoke. */
  | { readonly type: 'stopped'; readonly ago: number; readonly isNoVoice?: true }

/** `doubtful`: so far; a monotonous voice stays so. */
export type Verdict = 'yes' | 'no' | 'not yet' | 'doubtful'

export type VoiceActivity = {
  /**
   * `level` is the root mean square of the frame; `isComplete`: what was said so far is a whole answer; `isUnderWay`: it is the first part of one,
   * as when people stop between the digits of a number. `verdict` is asked where speech would begin: `no` forgets what was heard of it, `not yet` and `doubtful`
   * ask again with the next frame, the latter until a beginning would be lost.
   */
  next(
    isVoice: boolean,
    level: number,
    isComplete: boolean,
    isUnderWay?: boolean,
    verdict?: () => Verdict,
  ): SpeechEvent | null
  /** What was heard of a beginning is none. */
  forget(): void
  /** Whoever speaks has spoken long enough: what comes is a new beginning. */
  reset(): void
}

/** 140 ms of voice within 180 ms: a noise of 100 ms touches six frames at most. */
const beginFrames = 7
const windowFrames = 9
/** What begins is looked at for so long at most; whoever keeps sound for it keeps this much. */
export const longestAgo = 20
export const beginningFrames = windowFrames
const wholeWindow = (1 << windowFrames) - 1
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
  /** The frames from which speech may begin, one bit each, the newest last. */
  let window = 0
  /** Frames for which a beginning has been looked at. */
  let waited = 0

  /** Begins with what the line brings first, falls fast and rises slowly, slower still while somebody speaks. */
  const follow = (level: number): number => {
    noise ??= Math.min(loudestBeginning, level)
    const risen = noise * (speaking ? 1.003 : 1.01)
    noise = Math.min(loudestNoise, level < noise ? Math.max(1, 0.9 * noise + 0.1 * level) : risen)
    return noise
  }
  const begin = (voiced: boolean, verdict: () => Verdict): SpeechEvent | null => {
    window = ((window << 1) | (voiced ? 1 : 0)) & wholeWindow
    if (bitsOf(window) < beginFrames) {
      waited = 0
      return null
    }
    const ago = Math.min(longestAgo, 31 - Math.clz32(window) + waited)
    const begins = verdict()
    if (begins === 'not yet' || (begins === 'doubtful' && waited < longestAgo)) {
      waited++
      return null
    }
    window = 0
    waited = 0
    if (begins === 'no') return null
    speaking = true
    silent = 0
    return { type: 'started', ago }
  }
  const goOn = (voiced: boolean, end: number): SpeechEvent | null => {
    silent = voiced ? 0 : silent + 1
    if (silent < end) return null
    speaking = false
    return { type: 'stopped', ago: silent }
  }

  return {
    next(isVoice, level, isComplete, isUnderWay = false, verdict = always) {
      const above = speaking ? aboveNoiseWhileSpeaking : aboveNoise
      const gate = Math.max(faintest, follow(level) * above)
      const voiced = isVoice && level > gate
      const incomplete = isUnderWay ? underWayEndFrames : endFrames
      return speaking ? goOn(voiced, isComplete ? completeEndFrames : incomplete) : begin(voiced, verdict)
    },
    forget() {
      window = 0
      waited = 0
    },
    reset() {
      speaking = false
    },
  }
}

const always = (): Verdict => 'yes'

export function bitsOf(window: number): number {
  let count = 0
  for (let rest = window; rest !== 0; rest &= rest - 1) count++
  return count
}

/** Root mean square. */
export const levelOf = (samples: Int16Array): number => Math.sqrt(energyOf(samples) / Math.max(1, samples.length))

/**
 * Owns when the caller of an engine speaks: the detector's voices, less what is no caller though the detector takes it for a voice, become
 * beginnings and ends. About 20 µs for a frame with sound, in the caller's thread, besides the detector.
 */
import { createDcOffset } from '../pcm/dc-offset.ts'
import { createHum } from './hum.ts'
import { createLiveliness } from './liveliness.ts'
import { createMusic } from './music.ts'
import type { OwnEcho } from './own-echo.ts'
import { createVoiceActivity, levelOf, type SpeechEvent, type Verdict } from './voice-activity.ts'
import type { VoiceDetector } from './voice-detector.ts'

export type CallerActivity = {
  /** 20 ms at 16 kHz. `isComplete` and `isUnderWay` as in VoiceActivity. */
  hear(samples: Int16Array, isComplete: boolean, isUnderWay?: boolean): SpeechEvent | null
  /** Whoever speaks has spoken long enough: what comes is a new beginning. */
  reset(): void
  /** What sounds is none: until it has been quiet, only what is louder begins. */
  ignore(): void
  close(): void
}

const frameSamples = 320
/** dB of a sample's unit. */
const audible = 40
/** dB, and dB a frame. */
const louder = 4
const fading = 0.1
const quietFrames = 25

/** `echo`: of the agent's sound, where that is known. It hears the line through this. */
export function createCallerActivity(detector: VoiceDetector, echo: OwnEcho | null = null): CallerActivity {
  const activity = createVoiceActivity()
  const liveliness = createLiveliness(frameSamples)
  const music = createMusic()
  const offset = createDcOffset()
  const hum = createHum()
  let isSpeaking = false
  /** dB; what is ignored is no louder. */
  let ignored = Number.NEGATIVE_INFINITY
  let loudest = Number.NEGATIVE_INFINITY
  let quiet = 0

  const follow = (decibels: number): void => {
    loudest = Math.max(decibels, loudest - fading)
    quiet = decibels > audible ? 0 : quiet + 1
    if (quiet > quietFrames) ignored = Number.NEGATIVE_INFINITY
  }
  const verdict = (): Verdict => {
    if (loudest < ignored || echo?.isEcho()) return 'no'
    if (music.isLikely() || hum.isLikely()) return 'not yet'
    if (music.isVoice()) return 'yes'
    const movement = liveliness.movement()
    if (movement === 'lively') return 'yes'
    return movement === 'dull' ? 'doubtful' : 'not yet'
  }
  const next = (samples: Int16Array, isComplete: boolean, isUnderWay: boolean): SpeechEvent | null => {
    const level = levelOf(samples)
    const decibels = 20 * Math.log10(level + 1)
    follow(decibels)
    liveliness.hear(samples, decibels, decibels > audible)
    music.hear(samples, decibels, decibels > audible)
    hum.hear(samples)
    echo?.hear(samples)
    if (liveliness.isSteady() || hum.isSure()) activity.forget()
    const isVoice = detector.isVoice(samples) && !music.isKnown()
    const event = activity.next(isVoice, level, isComplete, isUnderWay, verdict)
    if (event?.type === 'started') music.begin()
    if (event !== null || !isSpeaking) return event
    if (!liveliness.isNoVoice() && !music.isTaken(isComplete || isUnderWay)) return null
    activity.reset()
    return { type: 'stopped', ago: 0, isNoVoice: true }
  }
  return {
    hear(samples, isComplete, isUnderWay = false) {
      const event = next(offset.without(samples), isComplete, isUnderWay)
      if (event !== null) isSpeaking = event.type === 'started'
      return event
    },
    ignore() {
      ignored = loudest + louder
      isSpeaking = false
      activity.reset()
    },
    reset() {
      isSpeaking = false
      activity.reset()
    },
    close: detector.close,
  }
}

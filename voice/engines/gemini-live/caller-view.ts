/**
 * Owns when the caller of a Gemini Live session speaks. The provider tells no times, and nothing at all as long as it was not interrupted: our own
 * detector does. Counts frames of the caller's line.
 */
import { frameMs, samplesOf } from '../../../model/frame.ts'
import { createCallerActivity } from '../../../media/vad/caller-activity.ts'
import type { OwnEcho } from '../../../media/vad/own-echo.ts'
import type { VoiceDetector } from '../../../media/vad/voice-detector.ts'
import type { WireEvent } from '../hosted/wire.ts'
import { createCallerTexts, type CallerTexts } from './caller-texts.ts'

export type CallerView = {
  readonly texts: CallerTexts
  /** 20 ms at 16 kHz. */
  hear(payload: Uint8Array): void
  /** The provider heard the caller begin, whatever the detector says. */
  begins(): void
  /** The provider takes what was said for complete. */
  ends(): void
  /** The caller speaks, or has just spoken. */
  isNoticed(): boolean
  /** Idempotent. */
  close(): void
}

/** A beginning that the detector does not hear as well is over after this. */
const unheardMs = 1_000

/** `echo`: of what the model says. */
export function createCallerView(detector: VoiceDetector, echo: OwnEcho, emit: (event: WireEvent) => void): CallerView {
  const activity = createCallerActivity(detector, echo)
  let frames = 0
  let from: number | null = null
  let to = 0
  let isHeard = false
  let isComplete = false

  const at = (): number => frames * frameMs
  const texts = createCallerTexts({ at, begun: () => from, emit })
  const start = (when: number): void => {
    isComplete = false
    if (from !== null) return
    from = Math.max(when, to)
    emit({ type: 'user_speech_started', at: from })
  }
  const stop = (when: number): void => {
    if (from === null) return
    const begun = from
    from = null
    to = Math.max(begun, when)
    emit({ type: 'user_speech_stopped', at: to })
    texts.await(begun, to)
  }
  return {
    texts,
    hear(payload) {
      frames++
      const event = activity.hear(samplesOf(payload), isComplete)
      if (event !== null) isHeard = event.type === 'started'
      if (event?.type === 'started') start((frames - 1 - event.ago) * frameMs)
      else if (event?.type === 'stopped') stop((frames - event.ago) * frameMs)
      else if (from !== null && !isHeard && at() - from >= unheardMs) stop(at())
      texts.frame()
    },
    begins() {
      // What interrupts may have been said, and be over, before the provider tells.
      if (!texts.isAwaiting()) start(at())
    },
    ends() {
      isComplete = true
      if (!isHeard) stop(at())
    },
    isNoticed: () => from !== null || texts.isAwaiting(),
    close: activity.close,
  }
}

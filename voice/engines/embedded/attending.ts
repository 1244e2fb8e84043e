/** Owns a caller whom the embedded engine only hears: whatever they say is written down, as far as it is understood. docs/supervision.md. */
import { samplesOf } from '../../../model/frame.ts'
import type { Attending, AttendEvent } from '../../../model/voice-engine.ts'
import { createCallerActivity } from '../../../media/vad/caller-activity.ts'
import type { VoiceDetector } from '../../../media/vad/voice-detector.ts'
import type { Meaning } from '../../script/phrases.ts'
import { createCallerUtterances } from './caller-utterances.ts'
import { finalTextOf } from './final-text.ts'
import type { Understanding } from './grammar.ts'
import type { Recognition } from './recognition.ts'

type Deps = {
  readonly recognition: Recognition
  readonly detector: VoiceDetector
  /** Of any words. */
  readonly understanding: Understanding<Meaning>
  emit(event: AttendEvent): void
}

export function createAttending({ recognition, detector, understanding, emit }: Deps): Attending {
  const nothing = (): void => undefined
  const caller = createCallerUtterances({
    recognition,
    activity: createCallerActivity(detector),
    expected: () => ({ understanding, step: 0, isHeldBack: false }),
    onStarted: nothing,
    onPartial: nothing,
    onStopped: nothing,
    onHeard: (heard) => emit(finalTextOf(heard)),
  })
  let isHeardOut = false
  return {
    hear(payload) {
      if (!isHeardOut) caller.hear(samplesOf(payload))
    },
    hearOut() {
      isHeardOut = true
      return caller.hearOut()
    },
    close: caller.close,
  }
}

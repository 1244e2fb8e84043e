/**
 * Owns a caller who is not listened to, for load tests: when everything the agent said has been heard, and no tool is at work, a voice is put in
 * the place of the line's sound for a moment. Counted in frames of the line, so that every call of a script goes alike.
 */
import { bytesOf, frameMs } from '../../../model/frame.ts'
import type { EngineEvent, EngineSession } from '../../../model/voice-engine.ts'
import type { VoiceDetector } from '../../../media/vad/voice-detector.ts'

type Emit = (event: EngineEvent) => void

const frameSamples = 320
const thoughtFrames = 500 / frameMs
const voiceFrames = 300 / frameMs
const silence = new Uint8Array(2 * frameSamples)
/** Louder and softer by turns: steady sound is nobody's voice. */
const voices = [4000, 2000].map((level) =>
  bytesOf(Int16Array.from({ length: frameSamples }, (_, index) => (index % 2 === 0 ? level : -level))),
)

/** Tells the voice from the silence. */
export const scriptedDetector: VoiceDetector = {
  isVoice: (samples) => samples.some((sample) => sample !== 0),
  close: () => undefined,
}

export function withScriptedCaller<Session extends EngineSession>(open: (emit: Emit) => Session, emit: Emit): Session {
  const unheard = new Set<string>()
  const atWork = new Set<string>()
  /** Frames since there was something to answer; null when there is nothing. */
  let waited: number | null = null

  const session = open((event) => {
    if (event.type === 'agent_text') unheard.add(event.itemId)
    if (event.type === 'tool_call') atWork.add(event.id)
    if (event.type === 'tool_canceled') atWork.delete(event.id)
    emit(event)
  })
  const frame = (): Uint8Array => {
    if (waited === null || unheard.size > 0 || atWork.size > 0) return silence
    waited++
    if (waited <= thoughtFrames) return silence
    if (waited >= thoughtFrames + voiceFrames) waited = null
    return voices[(waited ?? 0) % 2] ?? silence
  }
  return {
    ...session,
    hear: () => session.hear(frame()),
    interrupt(heard) {
      unheard.clear()
      waited = 0
      session.interrupt(heard)
    },
    played(itemId) {
      unheard.delete(itemId)
      waited = 0
      session.played(itemId)
    },
    toolResult(id, name, result) {
      atWork.delete(id)
      session.toolResult(id, name, result)
    },
  }
}

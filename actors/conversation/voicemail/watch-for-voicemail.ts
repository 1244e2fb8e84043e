/** Owns the question of every outbound call, in the background of its talk: did an answering machine take it? */
import type { Clock } from '../../../model/clock.ts'
import type { AudioFormat } from '../../../model/frame.ts'
import type { EngineConfig, EngineEvent } from '../../../model/voice-engine.ts'
import type { CallFact } from '../../call/call-event.ts'
import type { SessionKeeper } from '../session-keeper.ts'
import type { VoicemailSign } from './judge.ts'
import type { MessageLeaving } from './message-leaving.ts'
import { createVoicemailWatch } from './voicemail-watch.ts'

type Deps = {
  readonly clock: Clock
  readonly direction: EngineConfig['direction']
  /** Ms since the epoch. */
  readonly answeredAt: number
  readonly hears: AudioFormat
  readonly session: SessionKeeper
  readonly leaving: MessageLeaving
  post(fact: CallFact): void
}

/** Null: nobody asks. */
export function watchForVoicemail({ clock, post, direction, answeredAt, hears, session, leaving }: Deps) {
  if (direction !== 'outbound') return null
  const watch = createVoicemailWatch(hears, Math.max(0, clock.now() - answeredAt))
  const judged = (signs: readonly VoicemailSign[] | null): void => {
    if (signs === null) return
    leaving.found(signs)
    post({ type: 'voicemail_detected', signs, ...(session.voicemail() !== null && { leavesMessage: true }) })
  }
  return {
    hear: (payload: Uint8Array): void => judged(watch.hear(payload)),
    engineEvent(event: EngineEvent): void {
      if (event.type === 'audio') watch.agentSpoke()
      if (event.type === 'user_text' && event.isFinal) judged(watch.read(event.text))
    },
  }
}

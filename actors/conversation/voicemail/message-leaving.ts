/** Owns how a message gets onto an answering machine: the agent falls silent, waits for the tone, says what the script has for it, and is finished. */
import type { AudioFormat } from '../../../model/frame.ts'
import type { EngineEvent } from '../../../model/voice-engine.ts'
import type { AgentVoice } from '../agent-voice.ts'
import type { SessionKeeper } from '../session-keeper.ts'
import type { VoicemailSign } from './judge.ts'
import { createMessageCue, type MessageCue } from './message-cue.ts'

export type MessageLeaving = {
  begin(): Promise<void>
  /** Of the answering machine that was found. */
  found(signs: readonly VoicemailSign[]): void
  /** What the caller's line brings: true when it is for nobody else. */
  hear(payload: Uint8Array): boolean
  /** What the engine says until the tone is not said to an answering machine. */
  admits(event: EngineEvent): boolean
  isUnderWay(): boolean
}

type Deps = {
  readonly hears: AudioFormat
  readonly voice: Pick<AgentVoice, 'speaking' | 'cut'>
  readonly session: Pick<SessionKeeper, 'voicemail' | 'sayLast' | 'interrupt'>
  /** What was to end the call is the end of the talk with the answering machine, and no more. */
  begun(): void
  /** Nothing can be said. */
  done(): void
}

/** What tells of the other side. */
const hearing: ReadonlySet<EngineEvent['type']> = new Set(['user_speech_stopped', 'user_text', 'memory', 'failed'])

export function createMessageLeaving({ hears, voice, session, begun, done }: Deps): MessageLeaving {
  let cue: MessageCue | null = null
  let signs: readonly VoicemailSign[] = []
  let isUnderWay = false
  const say = (): void => {
    cue = null
    const text = session.voicemail()
    session.interrupt(null)
    if (text === null || !session.sayLast(text)) done()
  }
  return {
    async begin() {
      isUnderWay = true
      begun()
      cue = createMessageCue(hears, signs)
      if (voice.speaking()) session.interrupt(await voice.cut())
    },
    found(known) {
      signs = known
    },
    hear(payload) {
      if (cue === null) return false
      if (cue.hear(payload)) say()
      return true
    },
    admits({ type }) {
      if (cue === null) return true
      return hearing.has(type)
    },
    isUnderWay: () => isUnderWay,
  }
}

/** Owns the `VoiceEngine` port: what listens and speaks in a call. One folder per engine, one contract suite over all of them. */
import type { Direction } from './call.ts'
import type { Customer } from './customer.ts'
import type { AudioFormat } from './frame.ts'
import type { CallId } from './ids.ts'
import type { Json } from './json.ts'
import type { EffectiveConfig } from './worker.ts'

export type EngineConfig = {
  readonly callId: CallId
  readonly direction: Direction
  /** BCP 47. */
  readonly language: string
  readonly worker: EffectiveConfig
  /** The call script document of the worker for this direction; null when it has none. */
  readonly script: string | null
  /** A full prompt that replaces what would be generated from the script. */
  readonly instructions: string | null
  /** Free text that came with the call. */
  readonly context: string | null
  readonly customer: Customer | null
  /** What the same engine said last in `memory` on this call; null at the start. A restarted session goes on from there. */
  readonly memory: Json
}

/**
 * What an engine says. `itemId` names one utterance of the agent. Texts and sound of one item may come in any order;
 * `item_done` comes after both. Times are milliseconds on the caller's line, counted by the frames that `hear` received.
 */
export type EngineEvent =
  /** Sound in the format `speaks`; any number of whole samples. */
  | { readonly type: 'audio'; readonly itemId: string; readonly payload: Uint8Array }
  | { readonly type: 'agent_text'; readonly itemId: string; readonly text: string }
  | { readonly type: 'item_done'; readonly itemId: string }
  /** The caller really speaks (noise and coughs excluded as well as the engine can): an agent that speaks must fall silent. */
  | { readonly type: 'user_speech_started'; readonly at: number }
  | { readonly type: 'user_speech_stopped'; readonly at: number }
  /** What is understood so far (`isFinal` false) or in the end. */
  | {
      readonly type: 'user_text'
      readonly text: string
      readonly isFinal: boolean
      readonly confidence: number | null
      readonly from: number
      readonly to: number
    }
  /** A value that the conversation established, by the key of a dimension. */
  | { readonly type: 'noted'; readonly key: string; readonly value: Json }
  /** What the engine needs to go on from here in a new session. The newest one counts. */
  | { readonly type: 'memory'; readonly memory: Json }
  /** The conversation is over: hang up when everything said has been heard. `nextAction` is a key of the worker's next actions. */
  | { readonly type: 'finished'; readonly nextAction: string | null }
  /** The session is dead; nothing comes after it. `details` is for the log. */
  | { readonly type: 'failed'; readonly details: string }

export type EngineSession = {
  /** 20 ms of the caller's voice in the format `hears`. Never waits. */
  hear(payload: Uint8Array): void
  /** The agent was cut off: of `itemId` the caller heard `playedMs`; later items were not heard at all. Null: nothing of it was heard. */
  interrupt(heard: { readonly itemId: string; readonly playedMs: number } | null): void
  /** The caller has heard all of this item. */
  played(itemId: string): void
  dtmf(digit: string): void
  /** Idempotent; nothing is said after it. */
  close(): void
}

export type VoiceEngine = {
  /** The `source` of transcripts. */
  readonly name: string
  readonly hears: AudioFormat
  readonly speaks: AudioFormat
  /** Opens a session; it speaks by itself as its configuration says. Throws when it cannot (outcome `voice_session_creation_failed`). */
  open(config: EngineConfig, emit: (event: EngineEvent) => void): Promise<EngineSession>
  close(): Promise<void>
}

/** Owns the `VoiceEngine` port: what listens and speaks in a call. One folder per engine, one contract suite over all of them. */
import type { CallWarning, Direction, Speaker } from './call.ts'
import type { CallerProof } from './caller-proof.ts'
import type { Customer } from './customer.ts'
import type { AudioFormat, LineFormats } from './frame.ts'
import type { CallId } from './ids.ts'
import type { Json, JsonObject } from './json.ts'
import type { SipFacts } from './sip-facts.ts'
import type { ToolDescriptor, ToolResult } from './tool.ts'
import type { UsedUnits } from './usage.ts'
import type { EffectiveConfig } from './worker.ts'

/**
 * What the engine may ask to be done. `name` stands for one tool: letters, digits, `_` and `-`, 64 at most. `givenName`: what its owner calls it,
 * where that is another one; call scripts may name it so.
 */
export type EngineTool = Pick<ToolDescriptor, 'description' | 'inputSchema'> & {
  readonly name: string
  readonly givenName?: string
}

/** The engines' own tools: by them a model tells what only a conversation can establish. No other tool takes their names. */
export const [endCall, noteValue] = ['end_call', 'note_value'] as const
export const engineToolNames: readonly string[] = [endCall, noteValue]

/** What of a call is remembered: bytes of JSON, in UTF-8. The service keeps no more of any engine. */
export const maxMemoryBytes = 32 * 1024

/** One turn as it was heard. */
export type Said = { readonly role: Speaker; readonly text: string }

/** A value by the key of a dimension. */
export type Note = { readonly key: string; readonly value: Json }

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
  /** Does the number of an inbound phone call prove that it is the customer? Null or absent: the account itself said who it is. */
  readonly caller?: CallerProof | null
  /** Of an inbound phone call; whoever called may have written it. */
  readonly sip?: SipFacts | null
  /** What the worker can do for the caller. */
  readonly tools: readonly EngineTool[]
  /** Of the engine's lists one each. */
  readonly formats: LineFormats
  /** What was said before, oldest first; empty at the start of a call. A session that is opened later goes on from there and greets nobody again. */
  readonly history: readonly Said[]
  /** Of a session that goes on: the caller spoke last, or the agent was broken off; words of the agent are due. */
  readonly owesReply: boolean
  /**
   * It takes the place of another engine's, which was lost while the agent was heard: the agent says in one sentence that the line was interrupted, and
   * then what is due. Absent: it does not.
   */
  readonly bridges?: true
  /**
   * The agent was saying what `history` ends with when its process was lost, and nobody had interrupted it: it goes on from there, without a word of that.
   * `rest`: what it had still to say, as far as that is known. Absent: it was not.
   */
  readonly brokenOff?: { readonly rest: string }
  /** What people of the account told the agent during the call, oldest first; the caller has not heard it. Absent: nothing. */
  readonly whispers?: readonly string[]
  /** Ms of the agent's last words that are still to be played. Absent: none. */
  readonly unheardMs?: number
  /** What the same engine said last in `memory` on this call; null at the start. It saves what history does not tell. */
  readonly memory: Json
}

/**
 * What an engine says. `itemId` names one utterance of the agent, and is never used again in a call. Texts and sound of one item may come in any order;
 * `item_done` comes after both. Times are milliseconds on the caller's line, counted by the frames that `hear` received.
 */
export type EngineEvent =
  /** Sound in the format `speaks`; any number of whole samples. */
  | { readonly type: 'audio'; readonly itemId: string; readonly payload: Uint8Array }
  /** All text of the item so far: the newest counts. */
  | { readonly type: 'agent_text'; readonly itemId: string; readonly text: string }
  | { readonly type: 'item_done'; readonly itemId: string }
  /** The caller really speaks (noise and coughs excluded as well as the engine can): an agent that speaks must fall silent. */
  | { readonly type: 'user_speech_started'; readonly at: number }
  | { readonly type: 'user_speech_stopped'; readonly at: number }
  /**
   * What is understood so far (`isFinal` false, all of it each time) or in the end. Each `user_speech_stopped` is followed by one final text, in
   * their order; an empty one says that it was no speech after all.
   */
  | {
      readonly type: 'user_text'
      readonly text: string
      readonly isFinal: boolean
      readonly confidence: number | null
      readonly from: number
      readonly to: number
      /** Of a text that is not final: what it establishes if it is all that is said. */
      readonly notes?: readonly Note[]
    }
  /** A value that the conversation established, by the key of a dimension. */
  | ({ readonly type: 'noted' } & Note)
  /** The tool is to be run once; the session goes on with its result. `id` is never used again in a call. */
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; readonly arguments: JsonObject }
  /** Nobody waits for this result any more. */
  | { readonly type: 'tool_canceled'; readonly id: string }
  /** The call was asked for something that the engine does not do. */
  | { readonly type: 'warned'; readonly warning: CallWarning }
  /** What the engine needs to go on from here in a new session. The newest one counts. More than `maxMemoryBytes` is shortened, or not taken. */
  | { readonly type: 'memory'; readonly memory: Json }
  /** The conversation is over: hang up when everything said has been heard. `nextAction` is a key of the worker's next actions. */
  | { readonly type: 'finished'; readonly nextAction: string | null }
  /** What the provider counts, since it told last. */
  | { readonly type: 'used'; readonly model: string; readonly units: UsedUnits }
  /** The session will end by itself in about so many ms: a new one should take its place in the next pause. */
  | { readonly type: 'expiring'; readonly within: number }
  /** The session is dead; nothing comes after it. `details` is for the log. `isRetryable`: a new session may well live. */
  | { readonly type: 'failed'; readonly details: string; readonly isRetryable: boolean }

export type EngineSession = {
  /** 20 ms of the caller's voice in the format `hears`. Never waits. */
  hear(payload: Uint8Array): void
  /** The agent was cut off: of `itemId` the caller heard `playedMs`; later items were not heard at all. Null: nothing of it was heard. */
  interrupt(heard: { readonly itemId: string; readonly playedMs: number } | null): void
  /** The caller has heard all of this item. */
  played(itemId: string): void
  dtmf(digit: string): void
  /**
   * The caller has typed this, 1 to 1,000 characters. It counts as said at this moment: the agent that speaks falls silent, and answers it; the
   * engine tells `user_speech_started`, `user_speech_stopped` and its final text, word for word. What cannot be taken yet is kept until it can.
   */
  typed(text: string): void
  /** The agent says this, word for word, when it has said what it is saying. */
  say(text: string): void
  /** What it leaves on an answering machine: of the call script, filled in. Null: nothing. */
  readonly voicemail: string | null
  /** The agent says this, word for word, in place of what it is saying; it listens to nobody any more and is `finished` after it. */
  sayLast(text: string): void
  /** Of a tool it called; that of another session of the call is taken as news. */
  toolResult(id: string, name: string, result: ToolResult): void
  /** Follows these instructions from its next turn on. */
  instruct(instructions: string): void
  /** Somebody of the account tells it this, besides its instructions: it counts from its next turn on, and the caller hears nothing of it. */
  whisper(text: string): void
  /**
   * This was said in the call before the session began, and is only known now: a former process had kept it. It counts from the next turn on; nobody
   * answers it.
   */
  recall(said: Said): void
  /**
   * The line is closed: what it brought is all, and the agent says nothing more. Resolves when the final text of what the caller was saying, and the
   * values that it established, have been told or will never be. Whoever waits bounds the wait. Idempotent; never rejects.
   */
  hearOut(): Promise<void>
  /** Idempotent; nothing is said after it. */
  close(): void
}

/** A call in which a person speaks in the agent's place. */
export type AttendConfig = Pick<EngineConfig, 'callId' | 'direction' | 'language' | 'worker'>
/** Of texts at least the final ones. */
export type AttendEvent = Extract<EngineEvent, { type: 'user_text' | 'used' | 'failed' }>
/** It takes `attendedSound`. */
export type Attending = Pick<EngineSession, 'hear' | 'hearOut' | 'close'>
export const attendedSound = { encoding: 'pcm16', rateHz: 16_000 } as const satisfies AudioFormat

export type VoiceEngine = {
  /** The `source` of transcripts. */
  readonly name: string
  /** What it takes and gives, the best first, at least one of each; a leg that has a later one at hand takes that, untouched. */
  readonly hears: readonly AudioFormat[]
  readonly speaks: readonly AudioFormat[]
  /** It follows a script and nothing else. */
  readonly ignoresWhispers?: true
  /** Opens a session; it speaks by itself as its configuration says. Throws when it cannot (outcome `voice_session_creation_failed`). */
  open(config: EngineConfig, emit: (event: EngineEvent) => void): Promise<EngineSession>
  /** Only hears the caller, and tells what they say. Throws as `open` does. Absent: whoever it hears it answers. */
  attend?(config: AttendConfig, emit: (event: AttendEvent) => void): Promise<Attending>
  /**
   * Of a memory of its own that is larger than `maxBytes` of JSON what a new session needs most: the oldest is left out first, where there is an
   * order. Absent, or not short enough: such a memory is not taken, and the one before it counts.
   */
  shorten?(memory: Json, maxBytes: number): Json
  close(): Promise<void>
}

/** Why a session cannot be opened. `isRetryable`: a moment later it may well be. Its message is for the log and carries no key. */
export class EngineRefusal extends Error {
  override readonly name = 'EngineRefusal'
  readonly isRetryable: boolean
  constructor(message: string, isRetryable: boolean) {
    super(message)
    this.isRetryable = isRetryable
  }
}

/**
 * Owns what the talk of a hosted engine needs of its provider. A wire translates one provider's protocol and no more: who speaks first, what is
 * said word for word, silence, tools of the engine itself and the end of a call are the talk's (talk.ts), alike for every provider.
 */
import type { JsonObject } from '../../../model/json.ts'
import type { EngineConfig, EngineEvent, EngineSession, Said } from '../../../model/voice-engine.ts'

/** What the talk needs not know of: its provider's count. */
export type WireTold = WireEvent | Extract<EngineEvent, { type: 'used' }>

/** `instructions` is the whole prompt; `tools` are the worker's and the engine's own. */
export type WireSetup = Omit<EngineConfig, 'instructions' | 'script' | 'context' | 'customer'> & {
  readonly instructions: string
  /** The model answers nothing: nobody asks it, and the caller's words do not either. Absent: it does. */
  readonly attends?: true
}

/** As in EngineEvent, and: */
export type WireEvent =
  | Extract<
      EngineEvent,
      {
        type:
          | 'audio'
          | 'agent_text'
          | 'item_done'
          | 'user_speech_started'
          | 'user_speech_stopped'
          | 'user_text'
          | 'tool_canceled'
          | 'memory'
          | 'expiring'
          | 'failed'
      }
    >
  /** `arguments` null: what the model wrote is no JSON object. */
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; readonly arguments: JsonObject | null }
  /** A reply of the model, asked for or not, has begun; the next one begins after its `reply_done`. `says`: one that `say` asked for. */
  | { readonly type: 'reply_started'; readonly says: boolean }
  /** All of it has come: its items are done, its tools have been called. Cut off or failed ones end so too. */
  | { readonly type: 'reply_done' }

export type Wire = Pick<EngineSession, 'hear' | 'interrupt' | 'close'> & {
  /** The model follows these from its next turn on. `added`: what is new in them, for a provider that cannot change those of a session. */
  instruct(instructions: string, added?: string): void
  /** The model learns that this was said before all that this session has heard, and answers nothing of it. */
  recall(said: Said): void
  /** The caller's line is closed: of what it brought the provider is to make what it can. Only silence is heard from here on. */
  lineClosed(): void
  /** The model speaks, after a reply that is under way. `hint` is for this reply only, and no words of the caller's. */
  reply(hint: string | null): void
  /** The same, and it says this word for word. */
  say(text: string): void
  /** The model learns this as if the caller had said it, and answers when asked by `reply`. */
  tell(text: string): void
  /** `wantsReply` false: the model has said what it wanted with the call of the tool. An id that is not of this session is news to the model (`tell`), unless its memory knows the call. */
  answerTool(id: string, name: string, output: JsonObject, wantsReply: boolean): void
}

/**
 * Resolves when the provider has taken the setup; rejects with EngineRefusal. What comes before it resolves is emitted all the same. A setup with
 * history has been told to the model by then; nothing is said before `reply` or the caller's voice asks for it. After `failed` nothing is emitted.
 */
export type OpenWire = (setup: WireSetup, emit: (event: WireTold) => void) => Promise<Wire>

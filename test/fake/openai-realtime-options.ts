/** Owns what a test says of the fake OpenAI Realtime: its model's words, what it understands, and how fast it is. */
import type { ConversationItem } from 'openai/resources/realtime/realtime'

/** What the model is asked. `instructions`: those of this response only. */
export type Asked = {
  readonly count: number
  readonly instructions: string | null
  readonly last: ConversationItem | null
}

/**
 * `broken`: the call ends with its reply, before it is complete; its arguments are told as done all the same, cut or whole. `fails`: with this code.
 * `filtered`: the provider's filter ends the reply here. Nothing at all: a reply that is complete and empty.
 */
export type Said =
  | { readonly text: string }
  | { readonly call: string; readonly arguments: string; readonly broken?: 'cancelled' | 'incomplete' }
  | { readonly fails: string; readonly type?: string }
  | { readonly filtered: true }

export type Transcript = {
  readonly text: string
  readonly logprob?: number
  readonly after?: number
  readonly outcome?: 'completed' | 'failed' | 'never'
}

export type RealtimeOptions = {
  model(asked: Asked): readonly Said[]
  /** Of the nth utterance, from 0. */
  transcript?(count: number): Transcript
  /** Fixed delays in ms, for benches. */
  readonly firstAudioAfter?: number
  readonly transcriptAfter?: number
  readonly speechStartAfter?: number
  readonly setupAfter?: number
  /** Silence that ends a turn, ms, whatever was asked for: as where the meaning is judged. */
  readonly patience?: number
  /** Between two pieces of 100 ms of sound. */
  readonly pace?: number
  /** Seconds since the epoch. */
  readonly expiresAt?: number
  /** Every session is refused so once it is connected. */
  readonly refusal?: { readonly type: string; readonly code: string; readonly message?: string }
  /** Sent in one packet with `session.updated`, before the client has said anything else. */
  readonly withSetup?: readonly object[]
  /** As servers do that are only alike: responses have no `metadata`. */
  readonly hasNoMetadata?: boolean
  /** As servers do that are only alike: speech has no times. */
  readonly hasNoTimes?: boolean
  /** As servers do that are only alike: each response names itself, its items and its calls as the one before. */
  readonly reusesIds?: boolean
  /** As servers do that are only alike: a call is told by its arguments and nowhere else. */
  readonly tellsCallsByArguments?: boolean
  /** As models do that do not think. Which words they refuse it in is not documented: the code is a guess. */
  readonly refusesReasoning?: boolean
  readonly tls?: boolean
}

export const realtimeModel = 'gpt-realtime-2.1'

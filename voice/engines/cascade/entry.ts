/** Owns the shape of what happened in a talk, one thing after another: words, news, and calls of tools with their results. */
import type { JsonObject } from '../../../model/json.ts'

/** One utterance of the agent; its text is what the caller heard or will hear, and shrinks when that is less. Only the history writes it. */
export type AgentEntry = { readonly kind: 'agent'; text: string }

export type ToolCall = {
  /** Ours: never used again in a call. */
  readonly id: string
  /** As the endpoint knows it. */
  readonly wireId: string
  readonly name: string
  readonly arguments: JsonObject | null
}
/** `output`: as the model is told. */
export type Asked = ToolCall & { output: string | null; wantsReply: boolean }
export type Entry =
  | AgentEntry
  | { readonly kind: 'caller'; readonly text: string }
  | { readonly kind: 'news'; readonly text: string }
  | { readonly kind: 'calls'; readonly calls: readonly Asked[] }

/** Owns reading what a provider sends: nothing of it is believed to be there, or to be of its type. */

/** The fields that are read, of all messages and of the objects within them. */
export type Message = { readonly [Name in Field]?: unknown }

type Field =
  | 'arguments'
  | 'audio_end_ms'
  | 'audio_start_ms'
  | 'call_id'
  | 'code'
  | 'delta'
  | 'error'
  | 'event_id'
  | 'expires_at'
  | 'id'
  | 'item'
  | 'item_id'
  | 'logprob'
  | 'logprobs'
  | 'message'
  | 'metadata'
  | 'name'
  | 'output'
  | 'param'
  | 'reason'
  | 'reply'
  | 'response'
  | 'response_id'
  | 'session'
  | 'status'
  | 'status_details'
  | 'transcript'
  | 'type'
  | 'usage'

const nothing: Message = {}

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export const objectOf = (value: unknown): Message =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : nothing

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Whole milliseconds from 0 on; null when none are told. */
export const msOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? Math.max(0, Math.round(value)) : null

/**
 * Owns the reading of one chat completion, streamed or in one piece: chunks become text and calls of tools. Pure. OpenAI API reference, "Chat
 * completion chunk". Reasoning that comes in fields of its own is not read.
 */
import { flawOf, type JsonObject } from '../../../model/json.ts'
import type { UsedUnits } from '../../../model/usage.ts'
import { chatUsageIn } from './chat-usage.ts'
import { errorBodyOf, type ErrorBody } from './error-body.ts'
import { fieldsOf, isJson, isText, parsedObject, type Fields } from './fields.ts'

/** `arguments` null: what the model wrote is no JSON object, or far too long. */
export type ModelCall = { readonly id: string | null; readonly name: string; readonly arguments: JsonObject | null }

export type ChatReply = {
  /** Takes the `data` of one event, or a whole answer. Text it brings; null for what no endpoint may send: the reply is lost. */
  take(event: string): string | null
  /** The endpoint has said that this is all. */
  isComplete(): boolean
  /** It has said that nothing comes after this, not even its bill. */
  isLast(): boolean
  /** It stopped before the model did. */
  isCut(): boolean
  /** Why the endpoint itself gave up; null while it has not. */
  error(): ErrorBody | null
  calls(): ModelCall[]
  /** As the endpoint told it; null when it did not. */
  usage(): UsedUnits | null
}

const maxCalls = 16
const maxArguments = 64 * 1024

type Draft = { readonly id: string | null; readonly index: unknown; readonly name: string; written: string }

export function createChatReply(): ChatReply {
  const drafts: Draft[] = []
  let finish: string | null = null
  let last = false
  let error: ErrorBody | null = null
  let usage: UsedUnits | null = null

  const takeCall = (delta: Fields): void => {
    const { index, id, function: given } = delta
    const { name, arguments: written } = fieldsOf(given) ?? {}
    // Some write an object instead of its text.
    const piece = fieldsOf(written) === null ? written : JSON.stringify(written)
    let draft = draftOf(drafts, index, id)
    if (isText(name) && (!draft || isAnother(draft, id, name)) && drafts.length < maxCalls) {
      draft = { id: isText(id) ? id.slice(0, 128) : null, index, name: name.slice(0, 64), written: '' }
      drafts.push(draft)
    }
    if (draft && typeof piece === 'string' && draft.written.length <= maxArguments) draft.written += piece
  }
  return {
    take(event) {
      if (event === '[DONE]') {
        last = true
        return ''
      }
      const chunk = parsedObject(event)
      error = errorBodyOf(chunk)
      if (chunk === null || error !== null) return null
      usage = chatUsageIn(fieldsOf(chunk['usage'])) ?? usage
      // The last one may have no choices, but counts.
      const choice = fieldsOf(Array.isArray(chunk['choices']) ? chunk['choices'][0] : null)
      if (choice === null) return ''
      const delta = fieldsOf(choice['delta']) ?? fieldsOf(choice['message']) ?? {}
      const calls: unknown = delta['tool_calls']
      if (Array.isArray(calls)) for (const call of calls) takeCall(fieldsOf(call) ?? {})
      if (isText(choice['finish_reason'])) finish = choice['finish_reason']
      return textIn(delta['content'])
    },
    isComplete: () => finish !== null || last,
    isLast: () => last,
    isCut: () => finish === 'length',
    error: () => error,
    usage: () => usage,
    calls: () =>
      drafts.map(({ id, name, written }) => ({ id, name, arguments: written === '' ? {} : argumentsOf(written) })),
  }
}

/** By the index that the endpoint gave; some give the same one to several calls, or none. */
function draftOf(drafts: readonly Draft[], index: unknown, id: unknown): Draft | undefined {
  if (typeof index === 'number') return drafts.findLast((draft) => draft.index === index)
  return drafts.findLast((draft) => isText(id) && draft.id === id) ?? drafts.at(-1)
}

/** A call that begins although one of the same index is there. Without an id it does when the other one is complete or has another name. */
const isAnother = (draft: Draft, id: unknown, name: string): boolean =>
  isText(id) ? id !== draft.id : name !== draft.name || isJson(draft.written)

/** A text, or parts of which some are text and others, as a rule, thoughts. */
function textIn(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part) => fieldsOf(part))
    .map((part) => (part?.['type'] === 'text' && isText(part['text']) ? part['text'] : ''))
    .join('')
}

function argumentsOf(written: string): JsonObject | null {
  const given = written.length > maxArguments ? null : parsedObject(written)
  return given === null || flawOf(given) !== null ? null : (given as JsonObject)
}

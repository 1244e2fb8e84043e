/** Owns the reading of one streamed chat completion: chunks become text and calls of tools. Pure. OpenAI API reference, "Chat completion chunk". */
import type { JsonObject } from '../../../model/json.ts'

/** `arguments` null: what the model wrote is no JSON object, or far too long. */
export type ModelCall = { readonly id: string | null; readonly name: string; readonly arguments: JsonObject | null }

export type ChatReply = {
  /** Takes the `data` of one event. Text it brings; null for what no endpoint may send: the reply is lost. */
  take(event: string): string | null
  /** The endpoint has said that this is all. */
  isComplete(): boolean
  /** Why the endpoint itself gave up, as a code; null while it has not. */
  errorCode(): string | null
  calls(): ModelCall[]
}

const maxCalls = 16
const maxArguments = 64 * 1024

type Draft = { readonly id: string | null; readonly name: string; written: string }
type Fields = Readonly<Record<string, unknown>>

export function createChatReply(): ChatReply {
  const drafts: Draft[] = []
  /** By the index that the endpoint gave; some give the same one to several calls, or none. */
  const byIndex = new Map<unknown, Draft>()
  let complete = false
  let error: string | null = null

  const takeCall = (delta: Fields): void => {
    const { index, id, function: given } = delta
    const { name, arguments: piece } = fieldsOf(given) ?? {}
    let draft = byIndex.get(index)
    const isNew = typeof name === 'string' && name !== '' && (!draft || (isText(id) && id !== draft.id))
    if (isNew && drafts.length < maxCalls) {
      draft = { id: isText(id) ? id : null, name: name.slice(0, 64), written: '' }
      drafts.push(draft)
      byIndex.set(index, draft)
    }
    if (draft && typeof piece === 'string' && draft.written.length <= maxArguments) draft.written += piece
  }
  return {
    take(event) {
      if (event === '[DONE]') {
        complete = true
        return ''
      }
      const chunk = parsedObject(event)
      if (chunk === null) return null
      if (chunk['error'] !== undefined && chunk['error'] !== null) {
        error = codeOf(chunk['error'])
        return null
      }
      // The last one may have no choices, but counts.
      const choice = fieldsOf(Array.isArray(chunk['choices']) ? chunk['choices'][0] : null)
      if (choice === null) return ''
      const delta = fieldsOf(choice['delta']) ?? {}
      const calls: unknown = delta['tool_calls']
      if (Array.isArray(calls)) for (const call of calls) takeCall(fieldsOf(call) ?? {})
      complete ||= isText(choice['finish_reason'])
      return isText(delta['content']) ? delta['content'] : ''
    },
    isComplete: () => complete,
    errorCode: () => error,
    calls: () =>
      drafts.map(({ id, name, written }) => ({ id, name, arguments: written === '' ? {} : argumentsOf(written) })),
  }
}

/** What a program may know of an error, and no words of it: they may repeat what was asked. */
export function codeOf(error: unknown): string {
  const { code, type } = fieldsOf(error) ?? {}
  const known = [code, type].find((value) => isText(value) && /^[\w.-]{1,64}$/.test(value))
  return typeof known === 'string' ? known : 'error'
}

export function parsedObject(text: string): Fields | null {
  try {
    return fieldsOf(JSON.parse(text))
  } catch {
    return null
  }
}

export const fieldsOf = (value: unknown): Fields | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

const argumentsOf = (written: string): JsonObject | null =>
  written.length > maxArguments ? null : (parsedObject(written) as JsonObject | null)

/** Owns the functions that the model has called and waits for. A caller who goes on speaking cancels them. */
import { randomBytes } from 'node:crypto'
import { JsonObject } from '../../../model/json.ts'
import type { WireEvent } from '../hosted/wire.ts'
import { textOf, type Message } from './fields.ts'

export type ToolCalls = {
  /** What comes now are other calls than those before, whatever they are named. */
  replyBegun(): void
  /** A call may be told more than once and counts once. */
  called(call: Message): void
  /** False: it is not of this session. */
  answer(id: string, output: JsonObject): boolean
  /** The caller has said something. */
  cancelAll(): void
  atWork(): boolean
}

const maxArguments = 64 * 1024
const maxPending = 32
/** Of one reply. */
const maxKnown = 256
const canceled = { canceled: true, reason: 'The caller went on speaking. Call it again if it is still wanted.' }

type Deps = { send(message: object): void; emit(event: WireEvent): void }

export function createToolCalls({ send, emit }: Deps): ToolCalls {
  // The provider's ids need not be unique over the sessions of a call, and those of providers that are only alike not over its replies.
  const session = randomBytes(6).toString('hex')
  const pending = new Map<string, string>()
  const known = new Set<string>()
  let count = 0

  const output = (callId: string, result: object): void =>
    send({
      type: 'conversation.item.create',
      item: { type: 'function_call_output', call_id: callId, output: JSON.stringify(result) },
    })
  return {
    replyBegun: () => known.clear(),
    called(call) {
      const callId = textOf(call.call_id)
      const name = textOf(call.name)
      if (callId === '' || name === '' || known.has(callId)) return
      known.add(callId)
      if (known.size > maxKnown) known.delete([...known][0]!)
      if (pending.size >= maxPending) return output(callId, { error: 'Too many calls at once.' })
      const id = `${session}.${++count}`
      pending.set(id, callId)
      emit({ type: 'tool_call', id, name, arguments: argumentsOf(textOf(call.arguments)) })
    },
    answer(id, result) {
      const callId = pending.get(id)
      if (callId === undefined) return false
      pending.delete(id)
      output(callId, result)
      return true
    },
    cancelAll() {
      for (const [id, callId] of pending) {
        pending.delete(id)
        output(callId, canceled)
        emit({ type: 'tool_canceled', id })
      }
    },
    atWork: () => pending.size > 0,
  }
}

/** A call that was broken off is none. */
export const isCall = ({ type, status }: Message): boolean => type === 'function_call' && status !== 'incomplete'

function argumentsOf(text: string): JsonObject | null {
  if (text.length > maxArguments) return null
  try {
    return JsonObject.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}

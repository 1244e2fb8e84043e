/** Owns the functions that the model has called and waits for. A caller who goes on speaking cancels them. */
import { randomBytes } from 'node:crypto'
import { JsonObject } from '../../../model/json.ts'
import type { WireEvent } from '../hosted/wire.ts'
import { listOf, objectOf, textOf, type Message } from './fields.ts'

export type ToolCalls = {
  /** What comes now are other calls than those before, whatever they are named. */
  replyBegun(): void
  /** `response.function_call_arguments.done`, which is told of calls that were broken off as well: not to be run yet. */
  written(call: Message): void
  /** `response.output_item.done`: a call whose item is complete is run. */
  itemDone(item: Message): void
  /** `response.done`: so are all calls of a complete response that were not broken off. Some providers tell their calls nowhere else. */
  responseDone(response: Message): void
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

type Deps = {
  send(message: object): void
  emit(event: WireEvent): void
  /** The model has called one. */
  onCalled(): void
}

export function createToolCalls({ send, emit, onCalled }: Deps): ToolCalls {
  // The provider's ids need not be unique over the sessions of a call, and those of providers that are only alike not over its replies.
  const session = randomBytes(6).toString('hex')
  const pending = new Map<string, string>()
  const known = new Set<string>()
  /** Whole arguments, of calls of which nobody has said that they are complete. */
  const drafts = new Map<string, Message>()
  let count = 0

  const output = (callId: string, result: object): void =>
    send({
      type: 'conversation.item.create',
      item: { type: 'function_call_output', call_id: callId, output: JSON.stringify(result) },
    })
  /** A call may be told more than once and counts once. */
  const run = (call: Message): void => {
    const callId = textOf(call.call_id)
    const name = textOf(call.name)
    drafts.delete(callId)
    if (callId === '' || name === '' || known.has(callId)) return
    known.add(callId)
    if (known.size > maxKnown) known.delete([...known][0]!)
    onCalled()
    if (pending.size >= maxPending) return output(callId, { error: 'Too many calls at once.' })
    const id = `${session}.${++count}`
    pending.set(id, callId)
    emit({ type: 'tool_call', id, name, arguments: argumentsOf(textOf(call.arguments)) })
  }
  return {
    replyBegun() {
      known.clear()
      drafts.clear()
    },
    written(call) {
      if (drafts.size < maxPending) drafts.set(textOf(call.call_id), call)
    },
    itemDone(item) {
      if (!isCall(item)) return
      if (item.status === 'completed') run(item)
      else if (item.status !== undefined) drafts.delete(textOf(item.call_id))
    },
    responseDone(response) {
      const calls = listOf(response.output).map(objectOf).filter(isCall)
      const isWhole = response.status === 'completed'
      for (const call of calls) {
        if (call.status === 'completed' || (isWhole && call.status !== 'incomplete')) run(call)
        else drafts.delete(textOf(call.call_id))
      }
      if (isWhole) drafts.forEach(run)
      drafts.clear()
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

const isCall = ({ type }: Message): boolean => type === 'function_call'

function argumentsOf(text: string): JsonObject | null {
  if (text.length > maxArguments) return null
  try {
    return JsonObject.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}

/**
 * Owns the worker's tools that a model has called and waits for: results go back once, canceled ones nowhere, and a caller who waits long hears a few
 * words. Pure.
 */
import { frameMs } from '../../../model/frame.ts'
import { storableText, type JsonObject } from '../../../model/json.ts'
import type { ToolResult } from '../../../model/tool.ts'
import { callerSpeaks, isSilent, type TurnTaking } from './turn-taking.ts'

export type ToolWork = {
  readonly pending: readonly { readonly id: string; readonly name: string }[]
  /** Calls of the past whose results may still come and go nowhere, oldest first. */
  readonly forgotten: readonly string[]
  /** The frame at which the first of those that are pending was called. */
  readonly since: number
  /** Nothing more is said while they run. */
  readonly isFilled: boolean
}

export const initialToolWork: ToolWork = { pending: [], forgotten: [], since: 0, isFilled: true }

const fillAfter = 1_500 / frameMs
const maxForgotten = 256
/** Letters of one result's JSON: some 4,000 tokens, which a model of 32,000 takes beside a prompt and a talk. An integrator's tool may answer 256 KiB. */
const maxOutput = 16_000

/** What a model is told of tools that it calls when nothing else is to be said. */
export const overForTools: JsonObject = { error: 'The call is over.' }

export const isBusy = ({ pending }: ToolWork): boolean => pending.length > 0

/** `hasSpoken`: the model has said something before it. */
export const toolCalled = (tools: ToolWork, id: string, name: string, hasSpoken: boolean, now: number): ToolWork => ({
  ...tools,
  ...(isBusy(tools) ? {} : { since: now, isFilled: hasSpoken }),
  pending: [...without(tools, id), { id, name }],
})

export const isPending = ({ pending }: ToolWork, id: string): boolean => pending.some((call) => call.id === id)

/** Nobody waits for its result any more. */
export const toolForgotten = (tools: ToolWork, id: string): ToolWork => ({
  ...tools,
  pending: without(tools, id),
  forgotten: [...tools.forgotten.filter((other) => other !== id), id].slice(-maxForgotten),
})

export const isForgotten = ({ forgotten }: ToolWork, id: string): boolean => forgotten.includes(id)

export const toolAnswered = (tools: ToolWork, id: string): ToolWork => ({
  ...tools,
  pending: without(tools, id),
  forgotten: tools.forgotten.filter((other) => other !== id),
})

const without = ({ pending }: ToolWork, id: string) => pending.filter((call) => call.id !== id)

/** Frame `now` has passed: true when the caller has waited long, and nobody speaks. */
export const isFillerDue = (tools: ToolWork, turns: TurnTaking, now: number): boolean =>
  isBusy(tools) && !tools.isFilled && now - tools.since >= fillAfter && isSilent(turns) && !callerSpeaks(turns, now)

export const toolsFilled = (tools: ToolWork): ToolWork => ({ ...tools, isFilled: true })

/** What the model is told of a result. */
export const outputOf = ({ status, data, error }: ToolResult): JsonObject =>
  status === 'success'
    ? bounded({ ...data })
    : { error: error?.message ?? 'The tool failed.', code: error?.code ?? 'TOOL_FAILED' }

function bounded(output: JsonObject): JsonObject {
  const text = JSON.stringify(output)
  if (text.length <= maxOutput) return output
  return {
    note: 'It is too long: this is its beginning. Call the tool for less at once.',
    beginning: storableText(text, maxOutput),
  }
}

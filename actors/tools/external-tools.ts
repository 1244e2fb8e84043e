/**
 * Owns `external`: tools that were bound to a call and are reached at an address of the integrator. Each call of one is asked there once, signed with
 * the tool's own secret, and told to subscribers by a copy. docs/contract/tools.md "External tools".
 */
import type { Clock } from '../../model/clock.ts'
import { ToolCallAnswer, type ToolCallData } from '../../model/events.ts'
import type { NewId } from '../../model/ids.ts'
import type { JsonObject } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import type { Issue } from '../../model/problem.ts'
import type { ToolDescriptor, ToolResult, ToolWork } from '../../model/tool.ts'
import { defaultHookTimeout } from '../../model/webhook.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { enqueueToolCall, toolSecretPlace, type CallAtHand, type SealedTool } from '../../store/tool-calls.ts'
import { askHook, type HookAnswer } from '../webhooks/ask-hook.ts'
import type { WebhookSender } from '../webhooks/sender.ts'
import { argumentIssues } from './argument-schema.ts'
import { callNotActive, failure, isActive, success, type OfferContext, type WorkerTool } from './worker-tool.ts'

export type ExternalDeps = {
  readonly sql: Sql
  readonly box: SecretBox
  readonly sender: Pick<WebhookSender, 'send'>
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
  readonly wakeDeliveries: () => void
}

/** Who asks, where it is a call. */
type Asking = Pick<ToolWork, 'announce' | 'toolCallId'>

/** Its call is all that it takes of the context. */
type ExternalTool = Omit<WorkerTool, 'prepare'> & {
  prepare(given: JsonObject): ((context: unknown, signal: AbortSignal) => Promise<ToolResult>) | Issue[]
}

/** Of several tools with one name the first is bound. */
export function externalTools(deps: ExternalDeps & Asking, { call }: Pick<OfferContext, 'call'>): ExternalTool[] {
  if (!call) return []
  const bound = call.externalTools.filter(
    ({ name }, index, all) => all.findIndex((other) => other.name === name) === index,
  )
  return bound.map((tool) => toWorkerTool(deps, call, tool))
}

function toWorkerTool(deps: ExternalDeps & Asking, call: CallAtHand, tool: SealedTool): ExternalTool {
  return {
    provider: 'external',
    name: tool.name,
    description: tool.description,
    inputSchema: inputSchemaOf(tool),
    refusal: async () => null,
    prepare(given) {
      const issues = argumentIssues(tool.inputSchema ?? {}, given)
      if (issues.length > 0) return issues
      return (_context, signal) => askTool(deps, call, tool, given, signal)
    },
  }
}

function inputSchemaOf({ inputSchema }: SealedTool): ToolDescriptor['inputSchema'] {
  return {
    ...inputSchema,
    type: 'object',
    properties: inputSchema?.properties ?? {},
    required: inputSchema?.required ?? [],
  }
}

async function askTool(
  deps: ExternalDeps & Asking,
  call: CallAtHand,
  tool: SealedTool,
  given: JsonObject,
  signal: AbortSignal,
): Promise<ToolResult> {
  if (!isActive(call)) return callNotActive()
  const { id: callId, accountId } = call
  const secret = deps.box.open(tool.signingSecret, toolSecretPlace({ accountId, callId, name: tool.name }))
  const data = toolCallOf(call, tool, given, deps.toolCallId ?? deps.newId())
  if (!(await written(deps, call, data))) return callNotActive()
  const answer = await askHook(
    { ...deps, now: deps.clock.now },
    {
      type: 'call.tool_call',
      url: tool.deliveryUrl,
      secret,
      headers: {},
      timeout: defaultHookTimeout,
      accountId: call.accountId,
      callId,
      requestId: call.requestId,
      data,
      signal,
    },
  )
  const result = resultOf(answer)
  if (result.status === 'error') {
    const details = answer.kind === 'failed' ? answer.details : 'the answer has no result'
    deps.log.warn('call.tool_call failed', { callId: call.id, tool: tool.name, toolCallId: data.toolCallId, details })
  }
  return result
}

/**
 * Before anybody is asked. By the log of a call that somebody runs, which its copies are told by, so that who takes the call over knows whether somebody was
 * asked; of others there is nothing to write but copies. False: the call is over.
 */
async function written(deps: ExternalDeps & Asking, call: CallAtHand, data: ToolCallData): Promise<boolean> {
  const { toolCallId, name, arguments: given } = data
  if (deps.announce) return deps.announce({ toolCallId, name, arguments: given })
  if (!call.isToolCallCopied) return true
  const isCopied = await enqueueToolCall(deps.sql, call, { data, now: deps.clock.now(), newId: deps.newId })
  if (isCopied) deps.wakeDeliveries()
  return isCopied
}

function toolCallOf(call: CallAtHand, tool: SealedTool, given: JsonObject, toolCallId: string): ToolCallData {
  const { id: callId, accountId, workerId, metadata } = call
  return { callId, accountId, workerId, toolCallId, name: tool.name, arguments: given, ...(metadata && { metadata }) }
}

function resultOf(answer: HookAnswer): ToolResult {
  if (answer.kind === 'failed' && answer.timedOut) return failure('TOOL_TIMEOUT', 'The tool did not answer in time.')
  const parsed = answer.kind === 'answered' ? ToolCallAnswer.safeParse(answer.json) : null
  return parsed?.success ? success({ result: parsed.data.result }) : failure('TOOL_FAILED', 'The tool failed.')
}

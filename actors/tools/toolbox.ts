/**
 * Owns the tools of a worker as one set: what is offered for whom, and one call of one tool, checked, bounded in time and number, answered
 * whatever happens inside. docs/contract/tools.md "Tool dispatch" and "Results".
 */
import { deadline } from '../../model/deadline.ts'
import type { CallId } from '../../model/ids.ts'
import type { Knowledge } from '../../model/knowledge.ts'
import { flawOf } from '../../model/json.ts'
import { Problem, type Issue } from '../../model/problem.ts'
import type { Toolbox, ToolCallRequest, ToolDescriptor, ToolResult } from '../../model/tool.ts'
import { callTools, type CallToolDeps } from './call-tools.ts'
import { emailTools } from './email-tools.ts'
import type { Email } from './email.ts'
import { externalTools, type ExternalDeps } from './external-tools.ts'
import { knowledgeBaseTools } from './knowledge-tools.ts'
import { personTools } from './person-tools.ts'
import { createToolContexts } from './tool-context.ts'
import { failure, type OfferContext, type Run, type ToolContext, type WorkerTool } from './worker-tool.ts'

export type ToolboxDeps = ExternalDeps &
  CallToolDeps & {
    /** Null where no SMTP server is configured: then no worker has the tool. */
    readonly email: Email | null
    readonly knowledge: Knowledge
  }

/** Whoever speaks to the caller waits no longer. */
const toolTimeout = 10_000
/** Of one call, in this process. */
const maxUnderWay = 8

export function createToolbox(deps: ToolboxDeps): Toolbox {
  const own = [...knowledgeBaseTools(deps), ...emailTools(deps), ...callTools(deps), ...personTools(deps)]
  const toolsFor = (context: OfferContext): WorkerTool[] => [...own, ...externalTools(deps, context)]
  const contexts = createToolContexts(deps.sql)
  const places = createPlaces(maxUnderWay)
  return {
    async list(accountId, workerId, caller) {
      const context = await contexts.toOffer({ accountId, workerId, caller })
      const tools = toolsFor(context)
      const refusals = await Promise.all(tools.map((tool) => tool.refusal(context)))
      return tools.filter((_, index) => refusals[index] === null).map(toDescriptor)
    },
    async call(accountId, workerId, request, signal, committed) {
      const look = async () => {
        const context = await contexts.toRun({ accountId, workerId, caller: request })
        const tool = findTool(toolsFor(context), request)
        return { context, tool, run: prepare(tool, request) }
      }
      const { context, tool, run } = await (committed ? lookMeanwhile(look, committed) : look())
      const place = places.take(context.call?.id ?? null)
      if (!place) return failure('TOOL_FAILED', 'Too many tools of this call are under way; try again in a moment.')
      return perform(deps, { tool, context, run, done: place, ...(signal && { signal }) })
    },
  }
}

/** What could not be looked up meanwhile may well be by then. */
async function lookMeanwhile<Found>(look: () => Promise<Found>, committed: Promise<void>): Promise<Found> {
  const early = look().catch(() => null)
  await committed
  return (await early) ?? look()
}

const toDescriptor = ({ name, provider, description, inputSchema }: WorkerTool): ToolDescriptor => ({
  name,
  provider,
  description,
  inputSchema,
  capabilityKey: `${provider}.${name}`,
})

function findTool(tools: readonly WorkerTool[], { provider, toolName, phoneCallId }: ToolCallRequest): WorkerTool {
  const provided = tools.filter((tool) => tool.provider === provider)
  const tool = provided.find(({ name }) => name === toolName)
  if (tool) return tool
  if (provider === 'external') throw invalidTool([{ path: 'toolName', message: unboundMessage(phoneCallId) }])
  if (provided.length === 0) throw invalidTool([{ path: 'provider', message: 'is no provider of tools' }])
  throw invalidTool([{ path: 'toolName', message: 'is no tool of this provider' }])
}

const unboundMessage = (phoneCallId: string | undefined): string =>
  phoneCallId === undefined ? 'is bound to a call: name it as phoneCallId' : 'is not bound to this call'

function prepare(tool: WorkerTool, { arguments: given }: ToolCallRequest): Run {
  const flaw = flawOf(given)
  const prepared = flaw ? [{ path: flaw.path.join('.'), message: flaw.message }] : tool.prepare(given)
  if (!Array.isArray(prepared)) return prepared
  throw invalidTool(prepared.map(({ path, message }) => ({ path: argumentPath(path), message })))
}

const argumentPath = (path: string): string => {
  if (path === '' || path === 'arguments') return 'arguments'
  return path.startsWith('arguments.') ? path : `arguments.${path}`
}

const invalidTool = (issues: readonly Issue[]): Problem =>
  new Problem('INVALID_TOOL', 'There is no such tool, or it does not take these arguments; see issues.', issues)

type Performance = {
  readonly tool: WorkerTool
  readonly context: ToolContext
  readonly run: Run
  /** When the tool has really ended, which may be after its answer was given up. */
  readonly done: () => void
  readonly signal?: AbortSignal
}

/** Whoever speaks to the caller must go on, so that every ending is a result. */
async function perform(deps: ToolboxDeps, { tool, context, run, done, signal }: Performance): Promise<ToolResult> {
  const overdue = new AbortController()
  const attempt = async (): Promise<ToolResult> =>
    (await tool.refusal(context)) ?? run(context, signal ? AbortSignal.any([overdue.signal, signal]) : overdue.signal)
  const log = deps.log.with({ callId: context.call?.id, workerId: context.worker.id, tool: tool.name })
  const work = attempt()
    .catch((error: unknown) => {
      if (!overdue.signal.aborted && signal?.aborted !== true)
        log.error('a tool failed', { provider: tool.provider, error })
      return failure('TOOL_FAILED', 'The tool failed.')
    })
    .finally(done)
  return deadline(deps.clock, toolTimeout, work, () => {
    log.warn('a tool took too long', { provider: tool.provider })
    overdue.abort()
    return failure('TOOL_TIMEOUT', 'The tool did not answer in time.')
  })
}

/** Counts what is under way for each call; without a call nothing is counted. `take` gives the way to free the place, or null. */
function createPlaces(limit: number) {
  const taken = new Map<CallId, number>()
  return {
    take(callId: CallId | null): (() => void) | null {
      if (callId === null) return () => {}
      const before = taken.get(callId) ?? 0
      if (before >= limit) return null
      taken.set(callId, before + 1)
      return () => {
        const left = (taken.get(callId) ?? 1) - 1
        if (left > 0) taken.set(callId, left)
        else taken.delete(callId)
      }
    },
  }
}

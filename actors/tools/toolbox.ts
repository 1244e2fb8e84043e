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
  const contexts = createToolContexts(deps)
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
      // What could not be looked up meanwhile may well be by then.
      const early = committed && look().catch(() => null)
      await committed
      return perform(deps, { find: async () => (await early) ?? look(), places, ...(signal && { signal }) })
    },
  }
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

type Found = { readonly tool: WorkerTool; readonly context: ToolContext; readonly run: Run }

type Performance = {
  /** Throws a Problem when there is nothing to run. */
  find(): Promise<Found>
  readonly places: ReturnType<typeof createPlaces>
  readonly signal?: AbortSignal
}

/** Whoever speaks to the caller must go on, so that every ending is a result; finding the tool is part of the time. */
async function perform(deps: ToolboxDeps, { find, places, signal }: Performance): Promise<ToolResult> {
  const overdue = new AbortController()
  let found: Found | null = null
  const logOf = ({ context, tool }: Found) =>
    deps.log.with({ callId: context.call?.id, workerId: context.worker.id, tool: tool.name })
  const attempt = async ({ context, tool, run }: Found): Promise<ToolResult> =>
    (await tool.refusal(context)) ?? run(context, signal ? AbortSignal.any([overdue.signal, signal]) : overdue.signal)
  const work = async (): Promise<ToolResult> => {
    const it = (found = await find())
    // Nobody hears of it any more: it is not begun.
    if (overdue.signal.aborted) return tookTooLong
    const done = places.take(it.context.call?.id ?? null)
    if (!done) return failure('TOOL_FAILED', 'Too many tools of this call are under way; try again in a moment.')
    return (
      attempt(it)
        .catch((error: unknown) => {
          if (!overdue.signal.aborted && signal?.aborted !== true)
            logOf(it).error('a tool failed', { provider: it.tool.provider, error })
          return failure('TOOL_FAILED', 'The tool failed.')
        })
        // It has really ended, which may be after its answer was given up.
        .finally(done)
    )
  }
  return deadline(deps.clock, toolTimeout, work(), () => {
    if (found) logOf(found).warn('a tool took too long', { provider: found.tool.provider })
    else deps.log.warn('a tool could not be looked up in time')
    overdue.abort()
    return tookTooLong
  })
}

const tookTooLong = failure('TOOL_TIMEOUT', 'The tool did not answer in time.')

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

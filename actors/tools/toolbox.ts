/**
 * Owns the tools of a worker as one set: what is offered for whom, and one call of one tool, checked, bounded in time and number, answered
 * whatever happens inside. docs/contract/tools.md "Tool dispatch" and "Results".
 */
import { deadline } from '../../model/deadline.ts'
import type { CallId, WorkerId } from '../../model/ids.ts'
import type { Knowledge } from '../../model/knowledge.ts'
import { flawOf, type JsonObject } from '../../model/json.ts'
import { retry } from '../../model/retry.ts'
import { Problem, type Issue } from '../../model/problem.ts'
import type { Toolbox, ToolCallRequest, ToolDescriptor, ToolResult, ToolWork } from '../../model/tool.ts'
import { createRecent } from '../../net/recent.ts'
import { databaseUnreachable } from '../../store/database-unreachable.ts'
import type { CallAtHand } from '../../store/tool-calls.ts'
import { callTools, type CallToolDeps } from './call-tools.ts'
import { emailTools } from './email-tools.ts'
import type { Email } from './email.ts'
import { externalTools, type ExternalDeps } from './external-tools.ts'
import { knowledgeBaseTools } from './knowledge-tools.ts'
import { personTools } from './person-tools.ts'
import { createToolContexts } from './tool-context.ts'
import { failure, type OfferContext, type WorkerTool } from './worker-tool.ts'

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
/** Calls with tools of their own that are known without the database. */
const maxKnown = 1_000
/** Ms that what is known waits for what the database says. */
const lookPatience = 1_000
const lookAgain = 250

export function createToolbox(deps: ToolboxDeps): Toolbox {
  const own = [...knowledgeBaseTools(deps), ...emailTools(deps), ...callTools(deps), ...personTools(deps)]
  const toolsFor = (context: OfferContext, work?: ToolWork): WorkerTool[] => [
    ...own,
    ...externalTools({ ...deps, ...work }, context),
  ]
  const contexts = createToolContexts(deps)
  const places = createPlaces(maxUnderWay)
  const known = createRecent<CallAtHand>(maxKnown)
  /** Of a call that is going on here. Null: there is no such tool that would do without the database. */
  const knownTool = (workerId: WorkerId, request: ToolCallRequest, work: ToolWork): Found | null => {
    const { provider, phoneCallId = '' } = request
    const call = work.announce && provider === 'external' ? known.get(phoneCallId) : undefined
    if (call?.workerId !== workerId) return null
    const tool = findTool(externalTools({ ...deps, ...work }, { call }), request)
    const run = prepare(tool, request)
    return { tool, workerId, callId: call.id, refusal: async () => null, run: (until) => run(null, until) }
  }
  return {
    async list(accountId, workerId, caller) {
      const context = await contexts.toOffer({ accountId, workerId, caller })
      const { call } = context
      if (call && call.externalTools.length > 0) known.set(call.id, whatToolsTake(call, deps.clock.now()))
      const tools = toolsFor(context)
      const refusals = await Promise.all(tools.map((tool) => tool.refusal(context)))
      return tools.filter((_, index) => refusals[index] === null).map(toDescriptor)
    },
    async call(accountId, workerId, request, work = {}) {
      const { committed, signal } = work
      const look = async (): Promise<Found> => {
        const context = await contexts.toRun({ accountId, workerId, caller: request })
        const tool = findTool(toolsFor(context, work), request)
        const run = prepare(tool, request)
        const refusal = () => tool.refusal(context)
        return { tool, workerId, callId: context.call?.id ?? null, refusal, run: (until) => run(context, until) }
      }
      // What could not be looked up meanwhile may well be by then.
      const early = committed && look().catch(() => null)
      await committed
      const stored = async () => (await early) ?? look()
      const find: Performance['find'] = async (overdue) => {
        if (!committed) return look()
        const fromMemory = knownTool(workerId, request, work)
        if (!fromMemory) return patiently(deps, stored, overdue)
        return work.isAway?.() ? fromMemory : unlessAway(deps, stored(), fromMemory)
      }
      return perform(deps, { find, places, ...(signal && { signal }) })
    },
  }
}

/** Kept while the call goes on, and some time after it: nothing but what its tools are asked with. */
const whatToolsTake = (call: CallAtHand, now: number): CallAtHand => ({
  ...call,
  fromNumber: null,
  toNumber: null,
  personId: null,
  customer: null,
  request: {},
  hookAnswer: {},
  startedAt: call.startedAt ?? now,
  outcome: null,
})

/** Who speaks to a caller would rather wait, as long as a tool may take, than say that it does not work. */
const patiently = <Value>(deps: ToolboxDeps, look: () => Promise<Value>, signal: AbortSignal): Promise<Value> =>
  retry({ clock: deps.clock, wait: (error) => (databaseUnreachable(error) ? lookAgain : null), signal }, look)

async function unlessAway(deps: ToolboxDeps, looking: Promise<Found>, fromMemory: Found): Promise<Found> {
  try {
    return await deadline(deps.clock, lookPatience, looking, () => fromMemory)
  } catch (error) {
    if (databaseUnreachable(error)) return fromMemory
    throw error
  }
}

const toDescriptor = ({ name, provider, description, inputSchema }: WorkerTool): ToolDescriptor => ({
  name,
  provider,
  description,
  inputSchema,
  capabilityKey: `${provider}.${name}`,
})

function findTool<Tool extends WorkerTool>(
  tools: readonly Tool[],
  { provider, toolName, phoneCallId }: ToolCallRequest,
): Tool {
  const provided = tools.filter((tool) => tool.provider === provider)
  const tool = provided.find(({ name }) => name === toolName)
  if (tool) return tool
  if (provider === 'external') throw invalidTool([{ path: 'toolName', message: unboundMessage(phoneCallId) }])
  if (provided.length === 0) throw invalidTool([{ path: 'provider', message: 'is no provider of tools' }])
  throw invalidTool([{ path: 'toolName', message: 'is no tool of this provider' }])
}

const unboundMessage = (phoneCallId: string | undefined): string =>
  phoneCallId === undefined ? 'is bound to a call: name it as phoneCallId' : 'is not bound to this call'

/** What is to be done with these arguments. */
function prepare<Prepared>(
  tool: { prepare(given: JsonObject): Prepared | Issue[] },
  { arguments: given }: ToolCallRequest,
): Prepared {
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

type Found = {
  readonly tool: Pick<WorkerTool, 'name' | 'provider'>
  readonly workerId: WorkerId
  readonly callId: CallId | null
  /** Null: it is to be had. */
  refusal(): Promise<ToolResult | null>
  run(signal: AbortSignal): Promise<ToolResult>
}

type Performance = {
  /** Throws a Problem when there is nothing to run. */
  find(overdue: AbortSignal): Promise<Found>
  readonly places: ReturnType<typeof createPlaces>
  readonly signal?: AbortSignal
}

/** Whoever speaks to the caller must go on, so that every ending is a result; finding the tool is part of the time. */
async function perform(deps: ToolboxDeps, { find, places, signal }: Performance): Promise<ToolResult> {
  const overdue = new AbortController()
  let found: Found | null = null
  const logOf = ({ callId, workerId, tool }: Found) =>
    deps.log.with({ ...(callId && { callId }), workerId, tool: tool.name })
  const attempt = async ({ refusal, run }: Found): Promise<ToolResult> =>
    (await refusal()) ?? run(signal ? AbortSignal.any([overdue.signal, signal]) : overdue.signal)
  const work = async (): Promise<ToolResult> => {
    const it = (found = await find(overdue.signal))
    // Nobody hears of it any more: it is not begun.
    if (overdue.signal.aborted || signal?.aborted) return tookTooLong
    const done = places.take(it.callId)
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

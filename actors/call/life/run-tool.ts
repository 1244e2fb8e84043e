/**
 * Owns the tools of a call that goes on: what its engine is offered, and one call of one of them, begun by the machine once and never again.
 * docs/contract/tools.md "During a call".
 */
import type { Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import { Problem } from '../../../model/problem.ts'
import { labelOf, noTelemetry, spans, type Telemetry } from '../../../model/telemetry.ts'
import {
  maxToolsAtOnce,
  type AskedTool,
  type Toolbox,
  type ToolDescriptor,
  type ToolResult,
  type ToolWork,
} from '../../../model/tool.ts'
import type { EngineTool } from '../../../model/voice-engine.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import type { LoggedTool } from '../../../store/call-steps.ts'
import type { CalledTool, Effect } from '../call-event.ts'
import { engineNamesOf } from '../engine-tool-name.ts'
import type { CallEnd } from './performer-deps.ts'

/** The name that an engine knows, and the tool behind it. */
type OfferedTool = EngineTool & Pick<ToolDescriptor, 'provider'> & { readonly toolName: string }

type RunTool = Extract<Effect, { type: 'run_tool' }>

/** Ms. Whoever was to ask it and lived on for longer may have asked while its log could not be written. */
const unaskedFor = 5_000

/** An engine ends its call by itself, after its last words: this would cut them off. */
const notOffered: readonly string[] = ['call.hang_up']

/** When the tools cannot be listed now, the talk goes on without any. */
export async function offeredTools(
  { tools, log }: { readonly tools: Toolbox; readonly log: Log },
  { id, accountId, workerId }: CallFactsRow,
): Promise<OfferedTool[]> {
  try {
    const descriptors = await tools.list(accountId, workerId, { phoneCallId: id })
    const offered = descriptors.filter(({ capabilityKey }) => !notOffered.includes(capabilityKey))
    const names = engineNamesOf(offered)
    return offered.map((descriptor, index) => toOffered(descriptor, names[index] as string))
  } catch (error) {
    log.error('the tools of a call could not be listed', { error })
    return []
  }
}

/** A model that is told to use a tool by the name its owner gave it finds that name in the description. */
function toOffered({ name: toolName, provider, description, inputSchema }: ToolDescriptor, name: string): OfferedTool {
  const offered = { name, description, inputSchema, provider, toolName }
  if (provider !== 'external' || name === toolName) return offered
  return { ...offered, givenName: toolName, description: `“${toolName}”. ${description}`.trim() }
}

export const toEngineTool = ({ provider: _, toolName: __, ...tool }: OfferedTool): EngineTool => tool

/** The tools of one conversation, and whose they are. */
export type Offer = { readonly call: CallFactsRow; readonly offered: readonly OfferedTool[] }

/** To the engine that called it. */
export type GiveResult = (id: string, name: string, result: ToolResult) => void

export type ToolRuns = {
  offer(offer: Offer): void
  /** The engine wants it; what it takes is looked up while the call takes note of that. It is not run unless `run` says so. */
  wanted(call: CalledTool): void
  /** Resolves when the result has been told and posted. */
  run(effect: RunTool, give: GiveResult): Promise<void>
  /** The same of one that a former actor had under way: run where nobody can have been asked, and otherwise told to be lost. */
  takeOver(tool: LoggedTool, give: GiveResult): Promise<void>
  cancel(id: string): void
  cancelAll(): void
}

/** Nothing of it is done before `commit`. */
type Run = { readonly controller: AbortController; readonly result: Promise<ToolResult>; commit(): void }

/** The tools that one actor has under way. */
export function createToolRuns(deps: Deps, end: CallEnd): ToolRuns {
  const wanted = new Map<string, Run>()
  const underWay = new Map<string, AbortController>()
  let offer: Offer | null = null
  const begin = (offered: Offer, call: CalledTool): Run => {
    const controller = new AbortController()
    const { promise: committed, resolve: commit } = Promise.withResolvers<void>()
    const announce = (asked: AskedTool): Promise<boolean> => end.deliver({ type: 'tool_asked', ...asked })
    const { toolCallId } = call
    const work = { signal: controller.signal, committed, announce, ...(toolCallId && { toolCallId }) }
    return { controller, result: runTool(deps, offered, call, work), commit }
  }
  const cancel = (id: string): void => {
    wanted.delete(id)
    underWay.get(id)?.abort()
    underWay.delete(id)
  }
  const isUnasked = ({ name, toolCallId, at, isAsked }: LoggedTool): boolean => {
    const provider = offer?.offered.find((tool) => tool.name === name)?.provider
    return provider === 'external' && toolCallId !== undefined && !isAsked && deps.clock.now() - at < unaskedFor
  }
  const runs: ToolRuns = {
    offer(given) {
      offer = given
      wanted.clear()
    },
    wanted(call) {
      const isKnown = wanted.has(call.id) || underWay.has(call.id)
      if (offer && !isKnown && wanted.size < maxToolsAtOnce) wanted.set(call.id, begin(offer, call))
    },
    async run(effect, give) {
      const { id, name } = effect
      const began = deps.clock.now()
      const run = wanted.get(id) ?? (offer && begin(offer, effect))
      wanted.delete(id)
      const controller = run?.controller ?? new AbortController()
      underWay.set(id, controller)
      run?.commit()
      const result = run ? await run.result : failed('The call goes on elsewhere.')
      if (underWay.get(id) !== controller) return
      underWay.delete(id)
      give(id, name, result)
      end.post({ type: 'tool_answered', id, status: result.status, tookMs: deps.clock.now() - began })
    },
    async takeOver(tool, give) {
      const { at: _, isAsked: __, ...called } = tool
      if (isUnasked(tool)) return runs.run({ type: 'run_tool', ...called }, give)
      give(tool.id, tool.name, lostResult)
      end.post({ type: 'tool_answered', id: tool.id, status: lostResult.status, tookMs: 0 })
    },
    cancel,
    cancelAll: () => [...wanted.keys(), ...underWay.keys()].forEach(cancel),
  }
  return runs
}

type Deps = {
  readonly tools: Toolbox
  readonly clock: Clock
  readonly log: Log
  readonly telemetry?: Telemetry
}

/** Every ending is a result: whoever speaks to the caller must go on. */
async function runTool(
  { tools, log, telemetry = noTelemetry }: Deps,
  { call, offered }: Offer,
  { name, arguments: given }: CalledTool,
  work: ToolWork,
): Promise<ToolResult> {
  const tool = offered.find((candidate) => candidate.name === name)
  if (!tool) return failed(`There is no tool "${name}".`)
  const { provider, toolName } = tool
  const label = labelOf(spans['tool.run'].labels.provider, provider)
  const span = telemetry.span('tool.run', { provider: label }, { callId: call.id, tool: toolName })
  const told = (result: ToolResult): ToolResult => {
    span.end(result.status === 'error' ? 'failed' : 'ok')
    return result
  }
  try {
    const request = { provider, toolName, arguments: given, phoneCallId: call.id }
    return told(await tools.call(call.accountId, call.workerId, request, work))
  } catch (error) {
    if (error instanceof Problem) return told(failed(wordsOf(error)))
    log.error('a tool could not be run', { tool: name, error })
    return told(failed('The tool failed.'))
  }
}

/** Of a tool that was under way when its actor was gone: it may have been done, and is not done again by itself. */
const lostResult = {
  status: 'error',
  error: {
    code: 'TOOL_FAILED',
    message:
      'The connection was lost while this was under way: it may have been done or not. Do not do it again unasked; say so, and ask or look it up.',
  },
} as const satisfies ToolResult

const failed = (message: string): ToolResult => ({ status: 'error', error: { code: 'TOOL_FAILED', message } })

/** Told to the model, which can correct its arguments. */
const wordsOf = ({ message, issues }: Problem): string =>
  [message, ...(issues ?? []).map((issue) => `${issue.path}: ${issue.message}`)].join(' ')

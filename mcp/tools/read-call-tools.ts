/** Owns the tools that read calls. docs/contract/mcp.md "Calls and confirmations". */
import { z } from 'zod'
import { CallStatus, Direction } from '../../model/call.ts'
import { toIso } from '../../model/clock.ts'
import { toId, type AccountId, type CallId } from '../../model/ids.ts'
import { Instant, msOf } from '../../model/instant.ts'
import type { JsonObject } from '../../model/json.ts'
import { TerminalStatus } from '../../model/outcome.ts'
import { FilterText } from '../../model/paging.ts'
import { PhoneCallQuery } from '../../model/phone-call.ts'
import { WrittenNumber } from '../../model/phone-number.ts'
import type { Problem } from '../../model/problem.ts'
import { effectiveConfigOf } from '../../model/worker.ts'
import { withoutNulls } from '../../model/without-nulls.ts'
import type { CallFactsRow, DatedCall } from '../../store/call-rows.ts'
import { findCallFacts } from '../../store/call-steps.ts'
import { countCalls, findDatedCall, listHappenings, searchCalls, type CallHappening } from '../../store/call-reports.ts'
import { listCalls } from '../../store/calls.ts'
import type { Sql } from '../../store/sql.ts'
import { listTurns } from '../../store/transcripts.ts'
import { analyticsOf, CallAnalytics } from './call-analytics.ts'
import { CallDetails, CallResult, toCallResult, toTranscript } from './call-fields.ts'
import { idGiven, noSuch } from './reach.ts'
import { mostOf, SearchLimit } from './search-limit.ts'
import { invalidArguments } from './served-tool.ts'
import { adminPrefix, defineMcpTool, hints, type McpTool } from './tool.ts'
import { WorkerId } from './worker-tools.ts'

const maxEvents = 500

const Limit = z.number().int().min(1).max(100).default(20).describe('How many at most: 20 unless named, 100 at most.')
export const CallIdGiven = z.string().describe('The id of the call.')
const CallList = z.object({
  calls: z.array(CallResult).describe('Newest first.'),
  has_more: z.boolean().describe('There are more than the limit.'),
})

/** A date alone is a day in UTC: from its beginning, or to its end. */
const Day = z.iso.date().refine((day) => !day.startsWith('0000'), 'must be a real day of the years 1 to 9999')
const Moment = z.union([Day, Instant])

export const readCallTools = ({ sql }: { readonly sql: Sql }): McpTool[] => [
  defineMcpTool({
    name: `${adminPrefix}list_recent_calls`,
    title: 'List recent calls',
    description:
      'The newest calls of the account, optionally of one worker, in one status or with one outcome, or of one direction.',
    annotations: hints.reads,
    scopes: ['account_admin'],
    input: z.strictObject({
      worker_id: WorkerId.optional(),
      status: z
        .enum([...CallStatus.options, ...TerminalStatus.exclude(['completed']).options])
        .optional()
        .describe('A status (scheduled, queued, in_progress, completed) or how a call ended.'),
      direction: Direction.optional(),
      limit: Limit,
    }),
    output: CallList,
    async run({ worker_id, status, direction, limit }, { access: { accountId } }) {
      const filters = withoutNulls({ workerId: worker_id, status, direction })
      const calls = await listCalls(sql, accountId, PhoneCallQuery.parse({ ...filters, limit }))
      return { content: listOf(calls, limit) }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}search_phone_calls`,
    title: 'Search calls',
    description:
      'Calls from or to a number, with an id of another system (metadata.externalCallId, or the SIP Call-ID), or of a worker; newest first. All that is named must fit.',
    annotations: hints.reads,
    scopes: ['account_admin'],
    input: z.strictObject({
      phone_number: WrittenNumber.optional().describe('In any spelling, on either side of the call.'),
      external_call_id: FilterText.optional(),
      worker_id: WorkerId.optional(),
      limit: SearchLimit,
    }),
    output: CallList,
    async run({ phone_number: phoneNumber, external_call_id: externalCallId, worker_id, limit: asked }, { access }) {
      const limit = mostOf(asked)
      const workerId = worker_id === undefined ? undefined : toId<'worker'>(worker_id)
      // A filter finds nothing where an id would name nothing.
      if (workerId === null) return { content: { calls: [], has_more: false } }
      const calls = await searchCalls(sql, access.accountId, { phoneNumber, externalCallId, workerId, limit })
      return { content: listOf(calls, limit) }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}get_call_details`,
    title: 'Get a call',
    description: 'Everything of one call: transcript, events, customer, configuration, context and what came of it.',
    annotations: hints.reads,
    scopes: ['account_admin'],
    input: z.strictObject({ call_id: CallIdGiven }),
    output: CallDetails,
    async run({ call_id }, { access: { accountId } }) {
      const details = await detailsOf(sql, accountId, idGiven<'call'>(call_id, 'call_id', 'call'))
      if (!details) throw noSuch('call_id', 'call')
      return { content: details }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}get_phone_call_analytics`,
    title: 'Count calls',
    description: 'How many calls there were by status, outcome and direction, and how long they lasted on average.',
    annotations: hints.reads,
    scopes: ['account_admin'],
    input: z.strictObject({
      worker_id: WorkerId.optional(),
      from_date: Moment.optional().describe(
        'ISO 8601: a date (that day in UTC and later) or a time. By when calls were made.',
      ),
      to_date: Moment.optional().describe('ISO 8601: a date (that day in UTC, all of it) or a time (not itself).'),
    }),
    output: CallAnalytics,
    async run({ worker_id, from_date, to_date }, { access: { accountId } }) {
      const workerId = worker_id === undefined ? undefined : toId<'worker'>(worker_id)
      const from = from_date === undefined ? undefined : beginningOf(from_date)
      const to = to_date === undefined ? undefined : endOf(to_date)
      if (from !== undefined && to !== undefined && from >= to) throw emptySpan()
      const counts = workerId === null ? [] : await countCalls(sql, accountId, { workerId, from, to })
      return { content: analyticsOf(counts, { from, to }) }
    },
  }),
]

const listOf = (calls: readonly DatedCall[], limit: number) => ({
  calls: calls.slice(0, limit).map(toCallResult),
  has_more: calls.length > limit,
})

const day = 24 * 3_600_000
/** The last moment that can be stored. */
const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
const isDay = (moment: string): boolean => moment.length === 10
const beginningOf = (moment: string): number => (isDay(moment) ? Date.parse(moment) : msOf(moment))
const endOf = (moment: string): number => (isDay(moment) ? Math.min(Date.parse(moment) + day, latest) : msOf(moment))

const emptySpan = (): Problem => invalidArguments([{ path: 'to_date', message: 'must be later than from_date' }])

async function detailsOf(sql: Sql, accountId: AccountId, callId: CallId) {
  const call = await findDatedCall(sql, accountId, callId)
  if (!call) return null
  const [facts, turns, happenings] = await Promise.all([
    findCallFacts(sql, callId),
    listTurns(sql, accountId, callId),
    listHappenings(sql, { accountId, callId, limit: maxEvents + 1 }),
  ])
  // It was deleted just now.
  if (!facts) return null
  return {
    ...toCallResult(call),
    ...toTranscript(turns),
    events: happenings.slice(0, maxEvents).map(toEvent),
    events_truncated: happenings.length > maxEvents,
    customer: call.customer as JsonObject | null,
    ...configuredOf(facts),
    metadata: call.metadata,
    ...withoutNulls({ next_action_data: call.nextAction?.data, evidence: call.evidence as JsonObject | null }),
    warnings: [...call.warnings],
  }
}

const toEvent = ({ at, type, status, tool }: CallHappening) => ({
  at: toIso(at),
  type,
  ...withoutNulls({ status, tool }),
})

function configuredOf({ workerConfig, request, hookAnswer, context, scriptIds }: CallFactsRow) {
  return {
    config: effectiveConfigOf(workerConfig, request.config ?? {}, hookAnswer.config ?? {}) as JsonObject,
    ...withoutNulls({ instructions: hookAnswer.instructions ?? request.instructions }),
    call_script_document_ids: [...scriptIds],
    context: contextOf(context),
  }
}

/** REST takes a text, tools take an object: what reads as an object is one. */
function contextOf(context: string | null): JsonObject | string | null {
  if (context === null || !context.startsWith('{')) return context
  try {
    return JSON.parse(context) as JsonObject
  } catch {
    return context
  }
}

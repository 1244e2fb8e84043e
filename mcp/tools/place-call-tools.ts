/** Owns the tools that place outbound calls, and those that take that back. docs/contract/mcp.md "Calls and confirmations". */
import { z } from 'zod'
import { toIso, type Clock } from '../../model/clock.ts'
import type { AccountId, CallId, NewId } from '../../model/ids.ts'
import type { McpAccess } from '../../model/mcp-access.ts'
import {
  confirmationLifetime,
  maxCallsAtOnce,
  maxPendingConfirmations,
  type ConfirmationHolder,
  type ConfirmationKind,
  type OutboundCalls,
  type WantedCall,
} from '../../model/outbound-calls.ts'
import type { EndCall, PhoneCall } from '../../model/phone-call.ts'
import { Problem } from '../../model/problem.ts'
import { findAccount } from '../../store/accounts.ts'
import { findDatedCall } from '../../store/call-reports.ts'
import type { DatedCall } from '../../store/call-rows.ts'
import {
  issueConfirmation,
  listPendingConfirmations,
  revokeConfirmation,
  type IssuedConfirmation,
} from '../../store/confirmations.ts'
import { databaseUnreachable } from '../../store/database-unreachable.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { newCallTask } from '../call-tasks.ts'
import { followsTasks, showsPages } from '../client-abilities.ts'
import { askApproval } from '../confirmations/ask-approval.ts'
import { summaryOf } from '../confirmations/call-summary.ts'
import { CallArguments, CallBatchArguments, namingArguments, toWantedCall } from './call-arguments.ts'
import { CallResult, toCallResult } from './call-fields.ts'
import { CallIdGiven } from './read-call-tools.ts'
import { idGiven, noSuch } from './reach.ts'
import { adminPrefix, defineMcpTool, hints, type McpTool, type ToolContext, type ToolOutcome } from './tool.ts'

export type PlaceCallToolDeps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly newId: NewId
  readonly box: SecretBox
  readonly outboundCalls: OutboundCalls
  readonly endCall: EndCall
}

const scopes = ['account_admin'] as const
/** People are called. */
const calls = { ...hints.destroys, openWorldHint: true }

const asked = {
  status: z.literal('confirmation_required'),
  expires_at: z.string().describe('The token works until then, once.'),
  summary: z.string().describe('Show it to the user, and confirm only when they agree.'),
}
const Token = z.string().describe('For confirm_phone_call, or for cancel_pending_confirmation.')
const BatchToken = z.string().describe('For confirm_phone_call_batch, or for cancel_pending_confirmation.')
const Asked = z.object({ ...asked, confirmation_token: Token })
const AskedBatch = z.object({ ...asked, batch_confirmation_token: BatchToken, call_count: z.number().int() })

/** `scheduled`: for a time; `placed`: it is dialed as soon as it has its turn. */
const Placed = z.object({ status: z.enum(['placed', 'scheduled']), call_id: z.string(), call: CallResult })
const PlacedOrAsked = z.object({
  status: z.enum(['confirmation_required', 'placed', 'scheduled']),
  confirmation_token: Token.optional(),
  expires_at: asked.expires_at.optional(),
  summary: asked.summary.optional(),
  call_id: z.string().optional(),
  call: CallResult.optional(),
})
const PlacedBatch = z.object({
  status: z.literal('scheduled'),
  call_ids: z.array(z.string()),
  calls: z.array(CallResult).describe('In the order of the entries.'),
})

const holderOf = ({ accountId, userId, clientId }: McpAccess): ConfirmationHolder => ({ accountId, userId, clientId })

export const placeCallTools = (deps: PlaceCallToolDeps): McpTool[] => [
  ...singleCallTools(deps),
  ...batchTools(deps),
  ...takeBackTools(deps),
]

const singleCallTools = (deps: PlaceCallToolDeps): McpTool[] => [
  defineMcpTool({
    name: `${adminPrefix}initiate_phone_call`,
    title: 'Place a call',
    description:
      'Places an outbound call, now or at a time. Unless the account needs no confirmations, it answers confirmation_required with a token and a summary: show the summary to the user, and call confirm_phone_call when they agree.',
    annotations: calls,
    scopes,
    input: CallArguments,
    output: PlacedOrAsked,
    async run(given, context) {
      const { accountId } = context.access
      const wanted = toWantedCall(given)
      if (await needsConfirmation(deps.sql, accountId)) return { content: await ask(deps, wanted, context) }
      const call = await namingArguments(false, () => deps.outboundCalls.place(accountId, wanted))
      return placed(deps, call, context)
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}prepare_phone_call`,
    title: 'Prepare a call',
    description:
      'Checks an outbound call and answers with a confirmation token and a summary for the user, without placing it. confirm_phone_call places it.',
    annotations: hints.creates,
    scopes,
    input: CallArguments,
    output: Asked,
    run: async (given, context) => ({ content: await ask(deps, toWantedCall(given), context) }),
  }),
  defineMcpTool({
    name: `${adminPrefix}confirm_phone_call`,
    title: 'Confirm a call',
    description:
      'Places, or schedules, the call that a token of initiate_phone_call or prepare_phone_call stands for. Only after the user has agreed to its summary. The token works once.',
    annotations: calls,
    scopes,
    input: z.strictObject({ confirmation_token: z.string() }),
    output: Placed,
    async run({ confirmation_token: token }, context) {
      const holder = holderOf(context.access)
      const waiting = await askApproval(deps, { holder, token, context })
      if (waiting) return waiting
      const [call] = await confirm(deps, 'single', token, context)
      if (!call) throw new Error('a confirmation of one call placed none')
      return placed(deps, call, context)
    },
  }),
]

const batchTools = (deps: PlaceCallToolDeps): McpTool[] => [
  defineMcpTool({
    name: `${adminPrefix}prepare_phone_call_batch`,
    title: 'Prepare calls',
    description:
      'Checks up to 100 outbound calls, all of them or none, and answers with one token and a summary for the user. confirm_phone_call_batch schedules them.',
    annotations: hints.creates,
    scopes,
    input: CallBatchArguments,
    output: AskedBatch,
    async run({ calls: given }, context) {
      const { summary, issued } = await prepare(deps, 'batch', given.map(toWantedCall), context)
      const told = { status: 'confirmation_required', expires_at: toIso(issued.expiresAt), summary } as const
      return { content: { ...told, batch_confirmation_token: issued.token, call_count: given.length } }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}confirm_phone_call_batch`,
    title: 'Confirm calls',
    description:
      'Schedules every call that a token of prepare_phone_call_batch stands for. Only after the user has agreed to its summary. The token works once.',
    annotations: calls,
    scopes,
    input: z.strictObject({ batch_confirmation_token: z.string() }),
    output: PlacedBatch,
    async run({ batch_confirmation_token: token }, context) {
      const holder = holderOf(context.access)
      const waiting = await askApproval(deps, { holder, token, context })
      if (waiting) return waiting
      const batch = await confirm(deps, 'batch', token, context)
      const callIds = batch.map(({ id }) => id as CallId)
      const reading = callIds.map((id) => readCall(deps.sql, context.access.accountId, id))
      const read = await unlessAway(Promise.all(reading))
      if (!read) return placedUnread(callIds)
      return { content: { status: 'scheduled' as const, call_ids: callIds, calls: read.map(toCallResult) }, callIds }
    },
  }),
]

const takeBackTools = ({ sql, clock, endCall }: PlaceCallToolDeps): McpTool[] => [
  defineMcpTool({
    name: `${adminPrefix}cancel_pending_confirmation`,
    title: 'Cancel a confirmation',
    description: 'Revokes a token, of one call or of a batch: it can place nothing any more.',
    annotations: hints.changes,
    scopes,
    input: z.strictObject({ token: z.string() }),
    output: z.object({ status: z.enum(['revoked', 'denied']), type: z.enum(['single', 'batch']) }),
    async run({ token }, { access }) {
      const { kind, state } = await revokeConfirmation(sql, holderOf(access), token, clock.now())
      return { content: { status: state === 'denied' ? ('denied' as const) : ('revoked' as const), type: kind } }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}cancel_scheduled_call`,
    title: 'Cancel a scheduled call',
    description: 'Cancels an outbound call before it goes out.',
    annotations: hints.destroys,
    scopes,
    input: z.strictObject({ call_id: CallIdGiven }),
    output: z.object({ status: z.literal('canceled'), call_id: z.string(), call: CallResult }),
    async run({ call_id }, { access: { accountId } }) {
      const callId = idGiven<'call'>(call_id, 'call_id', 'call')
      const call = await findDatedCall(sql, accountId, callId)
      if (!call) throw noSuch('call_id', 'call')
      if (call.direction !== 'outbound') throw notCancelable('must be an outbound call')
      await endCall.cancel(accountId, callId).catch((error: unknown) => {
        throw error instanceof Problem && error.type === 'CONFLICT' ? notCancelable(error.message) : error
      })
      const canceled = await readCall(sql, accountId, callId)
      return {
        content: { status: 'canceled' as const, call_id: callId, call: toCallResult(canceled) },
        callIds: [callId],
      }
    },
  }),
]

const notCancelable = (message: string): Problem =>
  new Problem('CONFLICT', 'The call cannot be canceled.', [{ path: 'call_id', message }])

const Pending = z.object({
  confirmation_id: z.string(),
  type: z.enum(['single', 'batch']),
  status: z
    .enum(['pending', 'approved'])
    .describe('approved: the user has approved it on the page, and it was not placed yet.'),
  call_count: z.number().int(),
  summary: z.string().describe('Its beginning, where it is long.'),
  summary_truncated: z.boolean(),
  created_at: z.string(),
  expires_at: z.string(),
})

export const policyTools = ({ sql, clock }: Pick<PlaceCallToolDeps, 'sql' | 'clock'>): McpTool[] => [
  defineMcpTool({
    name: `${adminPrefix}get_outbound_call_policy`,
    title: 'Get the policy of outbound calls',
    description:
      'Whether outbound calls wait for a confirmation, and the confirmations of this client and user that wait for one. Their tokens are not told again.',
    annotations: hints.reads,
    scopes,
    input: z.strictObject({}),
    output: z.object({
      require_confirmation_for_outbound_calls: z.boolean(),
      confirmation_lifetime_seconds: z.number().int(),
      max_pending_confirmations: z.number().int(),
      max_calls_per_batch: z.number().int(),
      pending_confirmations: z.array(Pending).describe('Oldest first.'),
    }),
    async run(_, { access }) {
      const [isRequired, pending] = await Promise.all([
        needsConfirmation(sql, access.accountId),
        listPendingConfirmations(sql, holderOf(access), clock.now()),
      ])
      return {
        content: {
          require_confirmation_for_outbound_calls: isRequired,
          confirmation_lifetime_seconds: confirmationLifetime / 1000,
          max_pending_confirmations: maxPendingConfirmations,
          max_calls_per_batch: maxCallsAtOnce,
          pending_confirmations: pending.map(
            ({ id, kind, state, callCount, summary, isCut, createdAt, expiresAt }) => ({
              confirmation_id: id,
              type: kind,
              status: state === 'approved' ? ('approved' as const) : ('pending' as const),
              call_count: callCount,
              summary,
              summary_truncated: isCut,
              created_at: toIso(createdAt),
              expires_at: toIso(expiresAt),
            }),
          ),
        },
      }
    },
  }),
]

async function needsConfirmation(sql: Sql, accountId: AccountId): Promise<boolean> {
  const account = await findAccount(sql, accountId)
  return account?.config.require_confirmation_for_outbound_calls ?? true
}

async function prepare(
  { sql, clock, newId, outboundCalls }: PlaceCallToolDeps,
  kind: ConfirmationKind,
  wanted: readonly WantedCall[],
  { access }: ToolContext,
): Promise<{ summary: string; issued: IssuedConfirmation }> {
  const { calls: planned, limits } = await namingArguments(kind === 'batch', () =>
    outboundCalls.plan(access.accountId, wanted),
  )
  const summary = summaryOf(planned, limits)
  const { clientName } = access
  const given = { holder: holderOf(access), clientName, kind, calls: planned, summary }
  return { summary, issued: await issueConfirmation(sql, { ...given, newId, now: clock.now() }) }
}

async function ask(deps: PlaceCallToolDeps, wanted: WantedCall, context: ToolContext): Promise<z.infer<typeof Asked>> {
  const { summary, issued } = await prepare(deps, 'single', [wanted], context)
  const { token, expiresAt } = issued
  return { status: 'confirmation_required', confirmation_token: token, expires_at: toIso(expiresAt), summary }
}

const confirm = (
  { outboundCalls }: PlaceCallToolDeps,
  kind: ConfirmationKind,
  token: string,
  { access, protocol }: ToolContext,
): Promise<PhoneCall[]> =>
  namingArguments(kind === 'batch', () =>
    outboundCalls.confirm({ holder: holderOf(access), kind, token, mustBeApproved: showsPages(protocol) }),
  )

/** A task where the client follows tasks, else the call as it begins. */
async function placed(
  deps: PlaceCallToolDeps,
  { id }: PhoneCall,
  { access, protocol }: ToolContext,
): Promise<ToolOutcome<z.infer<typeof Placed>>> {
  const callIds = [id as CallId]
  const call = await unlessAway(readCall(deps.sql, access.accountId, id as CallId))
  if (!call) return placedUnread(callIds)
  if (followsTasks(protocol)) return { instead: newCallTask(deps, access, call), callIds }
  const status = call.progress === 'scheduled' ? 'scheduled' : 'placed'
  return { content: { status, call_id: id, call: toCallResult(call) }, callIds }
}

/** Null: the database went away. */
const unlessAway = <Answer>(reading: Promise<Answer>): Promise<Answer | null> =>
  reading.catch((error: unknown) => {
    if (databaseUnreachable(error)) return null
    throw error
  })

/** A client that was told no more than a failure would place the same again. */
const placedUnread = (callIds: readonly CallId[]) => ({
  failed: {
    code: 'SERVICE_UNAVAILABLE',
    message: `Placed, do not try again: ${callIds.join(', ')}. It cannot be read now; ask get_call_details in a moment.`,
  },
  callIds,
})

async function readCall(sql: Sql, accountId: AccountId, callId: CallId): Promise<DatedCall> {
  const call = await findDatedCall(sql, accountId, callId)
  if (!call) throw noSuch('call_id', 'call')
  return call
}

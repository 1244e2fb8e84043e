/**
 * Owns what the database knows of the course of one call, for who diagnoses it. Of the log only what names no words: facts and effects of a call are
 * read in part, by the server, because what an engine remembers may be large.
 */
import { toIso } from '../model/clock.ts'
import {
  diagnosticsLimit,
  type CallDiagnostics,
  type DiagnosedDelivery,
  type DiagnosedEngine,
  type DiagnosedHook,
  type DiagnosedStep,
  type DiagnosedTenure,
  type DiagnosedTurn,
  type DiagnosticsQuery,
} from '../model/call-diagnostics.ts'
import { endingOf } from '../model/call-ending.ts'
import type { PriceTable } from '../model/price-table.ts'
import { toCallQuality } from '../model/call-quality.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import { toPhoneCall } from '../model/phone-call.ts'
import { listMessages } from './call-messages.ts'
import { findUsedCall, pricedUseOf } from './call-usage.ts'
import type { AttemptFacts } from './delivery-verdicts.ts'
import type { Sql } from './sql.ts'

type Asked = Place & { /** Null: nobody knows what calls cost. */ readonly prices: PriceTable | null }
type Place = { readonly accountId: AccountId; readonly callId: CallId }

/** Null: the account has no such call. */
export async function findCallDiagnostics(
  sql: Sql,
  { prices, ...place }: Asked,
  { fromTurn, fromStep, fromDelivery, fromHook }: DiagnosticsQuery,
): Promise<CallDiagnostics | null> {
  const call = await findUsedCall(sql, place.accountId, place.callId)
  if (!call) return null
  const [turns, steps, engines, tenures, hooks, deliveries, messages] = await Promise.all([
    listTurns(sql, place, fromTurn),
    listSteps(sql, place, fromStep),
    listEngines(sql, place),
    listTenures(sql, place),
    listHooks(sql, place, fromHook),
    listDeliveries(sql, place, fromDelivery),
    listMessages(sql, place.accountId, place.callId),
  ])
  return {
    callId: call.id,
    ending: endingOf(toPhoneCall(call)),
    createdAt: toIso(call.createdAt),
    startedAt: isoOrNull(call.startedAt),
    endedAt: isoOrNull(call.endedAt),
    quality: call.quality && toCallQuality(call.quality),
    turns: pageOf(turns, ({ turnIndex }) => turnIndex),
    steps: pageOf(steps, ({ seq }) => seq),
    engines,
    tenures,
    hooks: hooks.slice(0, diagnosticsLimit).map(toHook),
    nextHook: hooks[diagnosticsLimit]?.seq ?? null,
    deliveries: pageOf(deliveries, ({ seq }) => seq, toDelivery),
    messages: {
      data: messages.map(({ leftOut: _, ...message }) => ({ ...message, at: toIso(message.at) })),
      leftOut: messages.reduce((sum, { leftOut }) => sum + leftOut, 0),
    },
    usage: pricedUseOf(call, prices),
  }
}

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))

/** `rows` are one more than the limit when there is more. */
function pageOf<Row, Item = Row>(
  rows: readonly Row[],
  placeOf: (row: Row) => number,
  toItem: (row: Row) => Item = (row) => row as unknown as Item,
): { data: Item[]; next: number | null } {
  const beyond = rows[diagnosticsLimit]
  return { data: rows.slice(0, diagnosticsLimit).map(toItem), next: beyond === undefined ? null : placeOf(beyond) }
}

const beyond = diagnosticsLimit + 1

async function listTurns(sql: Sql, { accountId, callId }: Place, from: number): Promise<DiagnosedTurn[]> {
  return sql<DiagnosedTurn[]>`
    select turn_index, role as speaker, from_ms as "from", to_ms as "to", source, confidence, latency from transcript_turns
    where account_id = ${accountId} and call_id = ${callId} and turn_index >= ${from} order by turn_index limit ${beyond}`
}

/** What is said is in `turns`; it would be the most of a log. */
const saidFacts = ['turn_committed', 'turn_shown', 'caller_heard', 'noted']
/** Of a fact, where it has them: numbers and words of ours, and what was wrong. */
const toldFields =
  'cause deadline endCause endedBy fallsBackTo name providerStatus required status silentFor tookMs recordedMs ' +
  'direction transport completed playedMs nextAction gone lost'
/** Of which it is told whose listening they are about. */
const supervisedFacts = ['supervisor_joined', 'supervisor_left', 'voice_taken', 'voice_returned']
const longestDetails = 500

async function listSteps(sql: Sql, { accountId, callId }: Place, from: number): Promise<DiagnosedStep[]> {
  const rows = await sql<(Omit<DiagnosedStep, 'at'> & { at: number })[]>`
    select seq, epoch, at, event ->> 'type' as fact, ignored, coalesce(
      (select jsonb_object_agg(key, value) from jsonb_each(event)
        where key = any(${toldFields.split(' ')}::text[]) and jsonb_typeof(value) in ('string', 'number', 'boolean')), '{}')
      || case when jsonb_typeof(event -> 'details') = 'string'
        then jsonb_build_object('details', left(event ->> 'details', ${longestDetails}::integer)) else '{}' end
      || case when event ->> 'type' = any(${supervisedFacts}::text[])
        then jsonb_build_object('supervisor', event ->> 'id') else '{}' end as details
    from call_events
    where account_id = ${accountId} and call_id = ${callId} and seq >= ${from} and event ->> 'type' <> all(${saidFacts}::text[])
    order by seq limit ${beyond}`
  return rows.map((row) => ({ ...row, at: toIso(row.at) }))
}

type EngineRow = Pick<DiagnosedEngine, 'engine' | 'purpose' | 'ending' | 'details'> & {
  readonly at: number
  readonly endedAt: number | null
}

/** An engine's session begins with the effect that asks for it; whatever begins another, or winds the call up, ends it. */
async function listEngines(sql: Sql, { accountId, callId }: Place): Promise<DiagnosedEngine[]> {
  const rows = await sql<EngineRow[]>`
    with asked as materialized (
      select seq, at, event ->> 'type' as fact, event ->> 'details' as details, effect.value as effect
      from call_events cross join lateral jsonb_array_elements(effects) as effect
      where account_id = ${accountId} and call_id = ${callId}
        and effect.value ->> 'type' in ('start_conversation', 'disclose', 'step_aside', 'wind_up', 'redirect')
      order by seq limit ${beyond}
    ), sessions as (
      select *, lead(at) over (order by seq) as ended_at, lead(fact) over (order by seq) as ending,
        lead(details) over (order by seq) as ended_with
      from asked
    )
    select at, ended_at, ending, left(ended_with, ${longestDetails}::integer) as details,
      case effect ->> 'type' when 'disclose' then 'disclosure' else 'talk' end as purpose,
      coalesce(effect ->> 'engine', (
        select source from transcript_turns
        where call_id = ${callId} and role = 'agent' and turn_index >= coalesce((effect ->> 'turns')::integer, 0)
        order by turn_index limit 1)) as engine
    from sessions where effect ->> 'type' in ('start_conversation', 'disclose') order by seq`
  return rows.map(({ at, endedAt, ...row }) => ({ from: toIso(at), to: isoOrNull(endedAt), ...row }))
}

async function listTenures(sql: Sql, { accountId, callId }: Place): Promise<DiagnosedTenure[]> {
  const rows = await sql<(Omit<DiagnosedTenure, 'from' | 'to'> & { begun: number; ended: number })[]>`
    select epoch, min(at) as begun, max(at) as ended, count(*)::integer as steps,
      bool_or(event ->> 'type' = 'taken_over') as taken_over
    from call_events where account_id = ${accountId} and call_id = ${callId}
    group by epoch order by epoch limit ${diagnosticsLimit}`
  return rows.map(({ begun, ended, ...row }) => ({ ...row, from: toIso(begun), to: toIso(ended) }))
}

type HookRow = Omit<DiagnosedHook, 'at' | 'tookMs'> & {
  readonly seq: number
  readonly at: number
  readonly answeredAt: number | null
  readonly tookMs: number | null
}

/** What the call asked and waited for, with the first answer behind it. */
async function listHooks(sql: Sql, { accountId, callId }: Place, from: number): Promise<HookRow[]> {
  return sql<HookRow[]>`
    with log as materialized (
      select seq, at, event, event ->> 'type' as fact, event ->> 'id' as id, effects @> '[{"type": "ask_worker_request"}]' as asks
      from call_events
      where account_id = ${accountId} and call_id = ${callId} and seq >= ${from} and not ignored and (
        event ->> 'type' in ('tool_called', 'tool_answered', 'tool_canceled', 'worker_request_answered', 'worker_request_failed')
        or effects @> '[{"type": "ask_worker_request"}]')
    ), asked as (
      select seq, at, 'call.worker_request' as type, null as name, null as id from log where asks
      union all
      select seq, at, 'tool', event ->> 'name', id from log where fact = 'tool_called'
      order by seq limit ${beyond}
    )
    select asked.seq, asked.at, asked.type, asked.name, answer.at as answered_at, answer.took_ms, answer.verdict,
      left(answer.details, ${longestDetails}::integer) as details
    from asked left join lateral (
      select at, (event ->> 'tookMs')::double precision as took_ms, event ->> 'details' as details,
        case fact when 'tool_canceled' then 'canceled' when 'tool_answered' then event ->> 'status'
          when 'worker_request_failed' then 'failed' else 'answered' end as verdict
      from log where seq > asked.seq and case when asked.id is null
        then fact in ('worker_request_answered', 'worker_request_failed')
        else fact in ('tool_answered', 'tool_canceled') and id = asked.id end
      order by seq limit 1) answer on true
    order by asked.seq`
}

function toHook({ seq: _, at, answeredAt, tookMs, ...row }: HookRow): DiagnosedHook {
  const took = tookMs ?? (answeredAt === null ? null : answeredAt - at)
  return { at: toIso(at), ...row, tookMs: took === null ? null : Math.max(0, Math.round(took)) }
}

type DeliveryRow = Pick<DiagnosedDelivery, 'id' | 'subscriptionId' | 'eventType' | 'status'> & {
  readonly seq: number
  readonly eventAt: number
  readonly deliveredAt: number | null
  readonly attempts: readonly AttemptFacts[]
}

async function listDeliveries(sql: Sql, { accountId, callId }: Place, from: number): Promise<DeliveryRow[]> {
  const rows = await sql<Omit<DeliveryRow, 'attempts'>[]>`
    select id, seq, subscription_id, event_type, status, event_at, delivered_at from deliveries
    where account_id = ${accountId} and call_id = ${callId} and seq >= ${from} order by seq limit ${beyond}`
  const attempts = await sql<(AttemptFacts & { readonly deliveryId: string })[]>`
    select delivery_id, attempt, at, duration_ms, status_code, left(error, ${longestDetails}::integer) as error
    from delivery_attempts where delivery_id = any(${rows.map(({ id }) => id)}::text[]) order by delivery_id, attempt`
  const byDelivery = Map.groupBy(attempts, ({ deliveryId }) => deliveryId)
  return rows.map((row) => ({ ...row, attempts: byDelivery.get(row.id) ?? [] }))
}

const toDelivery = (row: DeliveryRow): DiagnosedDelivery => ({
  id: row.id,
  subscriptionId: row.subscriptionId,
  eventType: row.eventType,
  status: row.status,
  eventAt: toIso(row.eventAt),
  deliveredAt: isoOrNull(row.deliveredAt),
  attempts: row.attempts.map(({ attempt, at, durationMs, statusCode, error }) => ({
    attempt,
    at: toIso(at),
    durationMs,
    statusCode,
    error,
  })),
})

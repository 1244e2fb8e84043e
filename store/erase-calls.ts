/**
 * Owns what is left of a call whose person is erased: that there was one, when, with which worker, how it went and ended, as numbers and words of ours.
 * Its log keeps its structure and replays; its turns and its recording go; what is still to be delivered is delivered without what is personal. Whatever
 * column a later version adds is emptied, unless it is named here.
 */
import type { ErasedCounts } from '../model/erasure.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import { removeMessages } from './call-messages.ts'
import { isOver } from './delete-calls.ts'
import { rewriteAnswers, type RewriteAnswers } from './idempotency.ts'
import { orderRecordingRemovals } from './recording-removals.ts'
import type { Sql, Transaction } from './sql.ts'
import { resetting, textColumnsOf } from './text-columns.ts'

/** What is left of what is logged, of a snapshot, of a body. */
export type Blanking = {
  readonly log: (json: Json) => Json
  readonly snapshot: (json: Json) => Json
  readonly body: (body: string) => string
  readonly answers: RewriteAnswers
}

/** Of each table the columns that are emptied. */
export type ErasedColumns = Readonly<Record<keyof typeof kept, readonly string[]>>

/** As the tables are now. */
export async function findErasedColumns(sql: Sql): Promise<ErasedColumns> {
  const of = async (table: keyof typeof kept) =>
    (await textColumnsOf(sql, table)).filter((name) => !kept[table].has(name))
  return { calls: await of('calls'), call_events: await of('call_events'), deliveries: await of('deliveries') }
}

type Erasing = {
  readonly columns: ErasedColumns
  readonly accountId: AccountId
  readonly callIds: readonly CallId[]
  readonly blanking: Blanking
  readonly now: number
}

/** Text columns that stay, or are written by name below. Of quality and usage only numbers and names of models. */
const kept = {
  calls: new Set([
    'id',
    'account_id',
    'worker_id',
    'session_id',
    'direction',
    'transport',
    'progress',
    'outcome',
    'failed_reason',
    'post_processing_status',
    'ended_by',
    'owner',
    'trunk_id',
    'script_ids',
    'recording_state',
    'provider_status',
    'end_cause',
    'from_number',
    'to_number',
    'next_action',
    'snapshot',
    'quality',
    'usage',
    'extraction_usage',
  ]),
  call_events: new Set(['call_id', 'account_id', 'event', 'effects']),
  deliveries: new Set(['id', 'account_id', 'subscription_id', 'call_id', 'event_type', 'status', 'claimed_by', 'body']),
}

/** Steps of a log at a time: a process that carries calls is not held up by more. */
const stepsAtOnce = 100

/**
 * Of calls that are over; the others stay as they are. Steps first, a few at a time, then the rest in one transaction, in which the calls cease to be
 * the person's and `done` is asked to note it; gives what it does. An erasure that was broken off finds those again that it had not finished.
 */
export async function eraseCalls<Noted>(
  sql: Sql,
  erasing: Erasing,
  done: (tx: Transaction, counts: Partial<ErasedCounts>) => Promise<Noted>,
): Promise<Noted | null> {
  const over = await sql<{ id: CallId }[]>`
    select id from calls where account_id = ${erasing.accountId} and id = any(${[...erasing.callIds]}::text[]) and ${isOver(sql)}`
  const callIds = over.map(({ id }) => id)
  if (callIds.length === 0) return null
  await blankLogs(sql, { ...erasing, callIds })
  return sql.begin(async (tx) => done(tx, await eraseRows(tx, { ...erasing, callIds }))) as Promise<Noted>
}

type Step = { readonly callId: CallId; readonly seq: number; readonly event: Json; readonly effects: Json }

async function blankLogs(sql: Sql, { callIds, blanking, columns }: Erasing): Promise<void> {
  const { log: blank } = blanking
  const reset = resetting(sql, columns.call_events)
  let [callId, seq]: [string, number] = ['', -1]
  for (;;) {
    const steps = await sql<Step[]>`
      select call_id, seq, event, effects from call_events
      where call_id = any(${[...callIds]}::text[]) and (call_id, seq) > (${callId}, ${seq})
      order by call_id, seq limit ${stepsAtOnce}`
    const blanked = steps.map((step) => ({ ...step, event: blank(step.event), effects: blank(step.effects) }))
    await sql`
      update call_events set ${reset} event = r.event, effects = r.effects
      from jsonb_to_recordset(${sql.json(blanked)}) as r("callId" text, seq integer, event jsonb, effects jsonb)
      where call_events.call_id = r."callId" and call_events.seq = r.seq`
    const last = steps.at(-1)
    if (!last || steps.length < stepsAtOnce) return
    ;[callId, seq] = [last.callId, last.seq]
  }
}

async function eraseRows(tx: Transaction, erasing: Erasing): Promise<Partial<ErasedCounts>> {
  const { accountId, callIds, blanking, columns, now } = erasing
  const ids = [...callIds]
  const calls = await tx<{ id: CallId; snapshot: Json; isRecorded: boolean }[]>`
    select id, snapshot, recording_key is not null as is_recorded from calls
    where account_id = ${accountId} and id = any(${ids}::text[]) and ${isOver(tx)} order by id for update`
  const [events] = await tx<{ count: number }[]>`
    select count(*)::int as count from call_events where call_id = any(${ids}::text[])`
  const turns = await tx`delete from transcript_turns where call_id = any(${ids}::text[])`
  await removeMessages(tx, callIds)
  const refusals = await tx`
    delete from call_refusals where account_id = ${accountId} and call_id = any(${ids}::text[])`
  const deliveries = await blankDeliveries(tx, erasing)
  const idempotentAnswers = await rewriteAnswers(tx, { accountId, callIds, ...blanking.answers })
  await orderRecordingRemovals(tx, { accountId, callIds, now })
  const left = calls.map(({ id, snapshot }) => ({ id, snapshot: blanking.snapshot(snapshot) }))
  await tx`
    update calls set ${resetting(tx, columns.calls)}
      snapshot = r.snapshot, recorded_ms = null, erased_at = ${now}::timestamptz,
      from_number = case when direction = 'inbound' then null else from_number end,
      to_number = case when direction = 'inbound' then to_number end,
      provider_status = substring(provider_status from '^(?:[1-6][0-9]{2}(?![0-9])|[a-z_-]{1,24}$)'),
      end_cause = substring(end_cause from '^(?:Q\\.850|SIP) [0-9]{1,3}$'),
      next_action = case when next_action ? 'key' then
        jsonb_build_object('key', next_action->'key', 'name', next_action->'name') end
    from jsonb_to_recordset(${tx.json(left)}) as r(id text, snapshot jsonb) where calls.id = r.id`
  return {
    calls: calls.length,
    events: events?.count ?? 0,
    transcriptTurns: turns.count,
    callRefusals: refusals.count,
    deliveries,
    idempotentAnswers,
    recordings: calls.filter(({ isRecorded }) => isRecorded).length,
  }
}

/** Locked in the order in which attempts lock them. What is being sent at this moment is sent as it was. */
async function blankDeliveries(tx: Transaction, { callIds, blanking, columns }: Erasing): Promise<number> {
  const rows = await tx<{ id: string; body: string }[]>`
    select id, body from deliveries where call_id = any(${[...callIds]}::text[]) order by id for update`
  const blanked = rows.map(({ id, body }) => ({ id, body: blanking.body(body) }))
  await tx`
    update deliveries set ${resetting(tx, columns.deliveries)} body = r.body
    from jsonb_to_recordset(${tx.json(blanked)}) as r(id text, body text) where deliveries.id = r.id`
  // What receivers answered may be what they were told.
  await tx`
    update delivery_attempts set response_excerpt = null, error = null
    where delivery_id = any(${rows.map(({ id }) => id)}::text[])`
  return rows.length
}

/**
 * Owns what accounts keep for a limited time: recordings, transcripts with event logs, whole calls; how long each account keeps them, and what was
 * removed on which day. A call counts from its end, and while it is worked on or something of it is to be delivered, all of it stays.
 */
import { toIso } from '../model/clock.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import type { Retention, RetentionChange, RetentionPolicy, RetentionReport } from '../model/retention.ts'
import { changeAccountConfig, findAccount, type AccountRow } from './accounts.ts'
import { removeMessages } from './call-messages.ts'
import { deleteRows, isOver } from './delete-calls.ts'
import { orderRecordingRemovals } from './recording-removals.ts'
import type { Sql, Transaction } from './sql.ts'
import { resetting, textColumnsOf } from './text-columns.ts'

const reportDays = 90
/** Of calls: what repeats the transcript. */
const quotingColumns = new Set(['evidence', 'summary'])

const policyOf = ({ config }: Pick<AccountRow, 'config'>): RetentionPolicy => ({
  recordingDays: config.recordingRetentionDays ?? null,
  transcriptDays: config.transcriptRetentionDays ?? null,
  callDays: config.callRetentionDays ?? null,
  auditLogDays: config.auditLogRetentionDays ?? null,
})

/** Accounts that keep something for a limited time. */
export async function listRetentionPolicies(sql: Sql): Promise<({ accountId: AccountId } & RetentionPolicy)[]> {
  const rows = await sql<Pick<AccountRow, 'id' | 'config'>[]>`
    select id, config from accounts
    where config ?| array['recordingRetentionDays', 'transcriptRetentionDays', 'callRetentionDays', 'auditLogRetentionDays'] order by id`
  return rows.map((row) => ({ accountId: row.id, ...policyOf(row) }))
}

/** Null: there is no such account. */
export async function findRetention(sql: Sql, accountId: AccountId): Promise<Retention | null> {
  const account = await findAccount(sql, accountId)
  return account && toRetention(sql, account)
}

export async function changeRetention(
  sql: Sql,
  accountId: AccountId,
  { recordingDays, transcriptDays, callDays, auditLogDays }: RetentionChange,
  now: number,
): Promise<Retention | null> {
  const named = {
    recordingRetentionDays: recordingDays,
    transcriptRetentionDays: transcriptDays,
    callRetentionDays: callDays,
    auditLogRetentionDays: auditLogDays,
  }
  const change = Object.fromEntries(Object.entries(named).filter(([, days]) => days !== undefined))
  const account = await changeAccountConfig(sql, accountId, change, now)
  return account && toRetention(sql, account)
}

async function toRetention(sql: Sql, account: AccountRow): Promise<Retention> {
  const report = await sql<RetentionReport[]>`
    select day::text as day, recordings, transcripts, calls from retention_reports
    where account_id = ${account.id} order by day desc limit ${reportDays}`
  const days = Object.entries(policyOf(account)).filter(([, value]) => value !== null)
  return { ...(Object.fromEntries(days) as Partial<Retention>), report: [...report] }
}

export type Forgetting = {
  readonly accountId: AccountId
  /** Calls that ended earlier. */
  readonly before: number
  readonly now: number
  /** Calls in one transaction. */
  readonly limit: number
}

/** Each returns how many there were; less than the limit: there are no more. Several processes may do this at once. */
export function forgetRecordings(sql: Sql, forgetting: Forgetting): Promise<number> {
  return forget(sql, forgetting, {
    kind: 'recordings',
    which: (tx) => tx`and started_at is not null and recording_removed_at is null`,
    async remove(tx, callIds) {
      await orderRecordingRemovals(tx, { ...forgetting, callIds })
      await tx`
        update calls set recording_key = null, recorded_ms = null, recording_removed_at = ${forgetting.now}
        where id = any(${callIds}::text[])`
    },
  })
}

/** Turns, event log, deliveries that were sent, and what the machine remembers. Results of the call stay with it. */
export function forgetTranscripts(
  sql: Sql,
  forgetting: Forgetting,
  blankedSnapshot: (snapshot: Json) => Json,
): Promise<number> {
  return forget(sql, forgetting, {
    kind: 'transcripts',
    which: (tx) => tx`and log_removed_at is null`,
    async remove(tx, callIds) {
      await tx`delete from call_events where call_id = any(${callIds}::text[])`
      await tx`delete from transcript_turns where call_id = any(${callIds}::text[])`
      await removeMessages(tx, callIds)
      await tx`select from deliveries where call_id = any(${callIds}::text[]) order by id for update`
      await tx`delete from deliveries where call_id = any(${callIds}::text[])`
      const rows = await tx<{ id: CallId; snapshot: Json }[]>`
        select id, snapshot from calls where id = any(${callIds}::text[])`
      const left = rows.map(({ id, snapshot }) => ({ id, snapshot: blankedSnapshot(snapshot) }))
      const quoting = (await textColumnsOf(tx, 'calls')).filter((name) => quotingColumns.has(name))
      await tx`
        update calls set ${resetting(tx, quoting)} snapshot = r.snapshot, log_removed_at = ${forgetting.now}::timestamptz
        from jsonb_to_recordset(${tx.json(left)}) as r(id text, snapshot jsonb) where calls.id = r.id`
    },
  })
}

export function forgetCalls(sql: Sql, forgetting: Forgetting): Promise<number> {
  const { accountId, now } = forgetting
  return forget(sql, forgetting, {
    kind: 'calls',
    which: (tx) => tx``,
    async remove(tx, callIds) {
      await tx`
        delete from idempotency_keys where account_id = ${accountId} and call_id = any(${callIds}::text[])`
      await deleteRows(tx, { accountId, callIds, now })
    },
  })
}

type Kind = {
  readonly kind: 'recordings' | 'transcripts' | 'calls'
  /** As the index of the kind has it. */
  readonly which: (tx: Transaction) => ReturnType<Transaction>
  remove(tx: Transaction, callIds: CallId[]): Promise<void>
}

function forget(
  sql: Sql,
  { accountId, before, now, limit }: Forgetting,
  { kind, which, remove }: Kind,
): Promise<number> {
  return sql.begin(async (tx) => {
    const rows = await tx<{ id: CallId }[]>`
      select id from calls
      where account_id = ${accountId} and created_at < ${before} and coalesce(ended_at, created_at) < ${before}
        and ${isOver(tx)} ${which(tx)}
        and not exists (select from deliveries where call_id = calls.id and status = 'pending')
      order by created_at limit ${limit} for update skip locked`
    if (rows.length === 0) return 0
    await remove(
      tx,
      rows.map(({ id }) => id),
    )
    await note(tx, { accountId, kind, count: rows.length, now })
    return rows.length
  })
}

async function note(
  tx: Transaction,
  { accountId, kind, count, now }: { accountId: AccountId; kind: Kind['kind']; count: number; now: number },
): Promise<void> {
  const column = tx(kind)
  await tx`
    insert into retention_reports (account_id, day, ${column}) values (${accountId}, ${toIso(now).slice(0, 10)}, ${count})
    on conflict (account_id, day) do update set ${column} = retention_reports.${column} + excluded.${column}`
}

/** Why there is no log of a call. Null: there is no such call. */
export async function findLogRemoval(
  sql: Sql,
  callId: CallId,
): Promise<{ readonly logRemovedAt: number | null } | null> {
  const [row] = await sql<{ logRemovedAt: number | null }[]>`select log_removed_at from calls where id = ${callId}`
  return row ?? null
}

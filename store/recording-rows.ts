/**
 * Owns the rows of recordings: where each is, and what is still to be done with it. A row belongs to the folder that the recording was written to; processes
 * that share the folder share its work, each under a claim that runs out when the process dies.
 */
import { toIso } from '../model/clock.ts'
import type { NodeId } from '../model/ids.ts'
import { recordingOfKey, wholeKeyOf } from '../model/recording-store.ts'
import { inTime } from './in-time.ts'
import { relaxedCommit } from './relaxed-commit.ts'
import type { Sql } from './sql.ts'

/** waiting: for its copies, or to be shipped. kept: as it is to stay in the folder. failed: given up, and told. removing: an order. */
export type RecordingState = 'waiting' | 'kept' | 'shipped' | 'failed' | 'removing'

/** Of an order for what may be in any folder but those that were asked: where a machine that is away has it, nobody knows. */
export const anyFolder = ''

export type RecordingRow = {
  /** Of its sound. */
  readonly key: string
  readonly folder: string
  readonly state: RecordingState
  /** Those that can be made are. */
  readonly hasCopies: boolean
  /** The storage may have something of it. */
  readonly inStorage: boolean
  /** Counts this claim. */
  readonly attempts: number
}

const columns = (sql: Sql) => sql`key, folder, state, has_copies, in_storage, attempts`

type Written = { readonly key: string; readonly at: number }

/** Those of calls there are; whoever has a row already keeps it, but for one that was only begun: now it is complete. */
export const noteRecordings = (sql: Sql, folder: string, written: readonly Written[], now: number): Promise<void> =>
  insertRecordings(sql, folder, written, now)

/** Parts of calls, which are told of from their beginning: nobody else would know that there are any. Until one is noted nobody works on it. */
export const beginParts = (sql: Sql, folder: string, begun: readonly Written[], now: number): Promise<void> =>
  insertRecordings(sql, folder, begun, now + longestPart)

/** Ms; no call takes as long. */
const longestPart = 86_400_000

async function insertRecordings(sql: Sql, folder: string, written: readonly Written[], runAt: number): Promise<void> {
  if (written.length === 0) return
  const rows = written.map(({ key, at }) => ({ key, at, callId: recordingOfKey(key).callId }))
  await sql`
    insert into recordings as known (key, call_id, folder, state, created_at, run_at)
    select given.key, calls.id, ${folder},
      case when calls.erased_at is null and calls.recording_removed_at is null then 'waiting' else 'removing' end, to_timestamp(given.at / 1000.0), ${runAt}::timestamptz
    from jsonb_to_recordset(${sql.json(rows)}) as given (key text, at double precision, "callId" text)
    join calls on calls.id = given."callId" and ${inTime(sql)}
    on conflict (key) do update set run_at = least(known.run_at, excluded.run_at)
      where known.state = 'waiting' and known.attempts = 0 and known.claimed_by is null and known.folder = excluded.folder`
}

export function findRecordings(sql: Sql, keys: readonly string[]): Promise<RecordingRow[]> {
  return sql<RecordingRow[]>`select ${columns(sql)} from recordings where key = any(${keys as string[]})`
}

/** Of these calls, by the keys of their sound: the recording as it was begun, and all its further parts. */
export async function findWholeRecordings(
  sql: Sql,
  wholeKeys: readonly string[],
): Promise<Map<string, RecordingRow[]>> {
  const callIds = wholeKeys.map((key) => recordingOfKey(key).callId)
  const rows = await sql<RecordingRow[]>`
    select ${columns(sql)} from recordings where key = any(${wholeKeys as string[]})
    union all
    select ${columns(sql)} from recordings where call_id = any(${callIds}) and key like '%.%.wav'`
  return Map.groupBy(rows, ({ key }) => wholeKeyOf(key))
}

type Claim = { readonly folder: string; readonly nodeId: NodeId; readonly now: number; readonly lease: number }

export type ClaimedRecording = RecordingRow & {
  /** Its call was processed where the recording could not be read, and has no link to it. */
  readonly lacksLink: boolean
  /** Its call went on by other legs. */
  readonly hasParts: boolean
}

/**
 * What is to be removed first, then the newest. A recording waits until its call is processed. `withoutStorage`: what takes the storage is left out.
 * A claim that is lost with the server's memory is made again.
 */
export function claimRecordings(
  sql: Sql,
  { folder, nodeId, now, lease }: Claim,
  limit: number,
  withoutStorage: boolean,
): Promise<ClaimedRecording[]> {
  return sql<ClaimedRecording[]>`
    with ${relaxedCommit(sql)}, due as materialized (
      select key from recordings
      where folder = ${folder} and run_at <= ${now} and (claimed_until is null or claimed_until <= ${now})
        and state in ('waiting', 'removing')
        and not (${withoutStorage} and case state when 'waiting' then has_copies else in_storage end)
        and (state = 'removing' or exists (
          select from calls where id = recordings.call_id and post_processing_status in ('completed', 'failed')))
      order by state, created_at desc, key limit ${limit} for update skip locked)
    update recordings set claimed_by = ${nodeId}, claimed_until = ${now + lease}, attempts = attempts + 1 from relaxed
    where key = any(array(select key from due)) and ${inTime(sql)}
    returning ${columns(sql)}, exists (select from calls where id = recordings.call_id and recording_key is null) as lacks_link,
      exists (select from recordings part where part.call_id = recordings.call_id and part.key like '%.%.wav') as has_parts`
}

/** Of those that this node still has. */
export async function prolongClaims(sql: Sql, nodeId: NodeId, keys: readonly string[], until: number): Promise<void> {
  await sql`
    update recordings set claimed_until = ${until} where key = any(${keys as string[]}) and claimed_by = ${nodeId}`
}

export type RecordingChange = {
  readonly key: string
  readonly state?: RecordingState
  readonly hasCopies?: boolean
  readonly inStorage?: boolean
  /** Absent: begins anew. */
  readonly attempts?: number
  readonly runAt?: number
  readonly problem?: string | null
  /** Gives the claim back. */
  readonly isOver: boolean
}

/**
 * Of these, the ones that were changed: what is to be removed, or is somebody else's by now, stays as it was. Each once. Where all are kept as they are, and
 * that is lost with the server's memory, their copies are made again.
 */
export async function changeRecordings(
  sql: Sql,
  nodeId: NodeId,
  changes: readonly RecordingChange[],
): Promise<ReadonlySet<string>> {
  const given = changes.map(({ runAt, ...change }) => ({
    ...change,
    runAt: runAt === undefined ? null : toIso(runAt),
    tellsProblem: change.problem !== undefined,
  }))
  const relaxed = changes.every(({ state }) => state === 'kept') ? relaxedCommit(sql) : sql`relaxed as (select)`
  const changed = await sql<{ key: string }[]>`
    with ${relaxed}, given as materialized (
      select * from jsonb_to_recordset(${sql.json(given as never)}) as g(key text, state text, "hasCopies" boolean, "inStorage" boolean,
        attempts integer, "runAt" timestamptz, problem text, "tellsProblem" boolean, "isOver" boolean)
    ), held as materialized (
      select key from recordings where key = any(${changes.map(({ key }) => key)}::text[]) order by key for no key update
    )
    update recordings r set
      state = coalesce(g.state, r.state),
      has_copies = coalesce(g."hasCopies", r.has_copies),
      in_storage = coalesce(g."inStorage", r.in_storage),
      attempts = coalesce(g.attempts, r.attempts),
      run_at = coalesce(g."runAt", r.run_at),
      problem = case when g."tellsProblem" then g.problem else r.problem end,
      claimed_by = case when g."isOver" then null else r.claimed_by end,
      claimed_until = case when g."isOver" then null else r.claimed_until end
    from relaxed, given g
    where r.key = any(array(select key from held)) and g.key = r.key and r.claimed_by = ${nodeId} and r.state = 'waiting'
      and ${inTime(sql)}
    returning r.key`
  return new Set(changed.map(({ key }) => key))
}

/** For a call that was processed where its recording, or the end of it, could not be read: from now on it has its link, and its length. */
export async function tellCallOfRecording(sql: Sql, key: string, recordedMs: number): Promise<void> {
  const { callId } = recordingOfKey(key)
  await sql`
    update calls set recording_key = ${wholeKeyOf(key)}, recorded_ms = ${recordedMs}
    where id = ${callId} and (recording_key is null or recorded_ms < ${recordedMs}) and post_processing_status in ('completed', 'failed')
      and erased_at is null and recording_removed_at is null`
}

/** Nobody reads it from now on. The row as it was, and whether somebody is at work on it; null: there is none. */
export async function orderRemoval(
  sql: Sql,
  key: string,
  now: number,
): Promise<(RecordingRow & { readonly claimedBy: NodeId | null }) | null> {
  const [row] = await sql<(RecordingRow & { claimedBy: NodeId | null })[]>`
    with known as materialized (select * from recordings where key = ${key} for update)
    update recordings set state = 'removing', run_at = ${now}, attempts = 0
    from known where recordings.key = known.key
    returning known.key, known.folder, known.state, known.has_copies, known.in_storage, known.attempts,
      case when known.claimed_until > ${now} then known.claimed_by end as claimed_by`
  return row ?? null
}

/** An order for a recording that has no row yet: it is being written, or `anyFolder` may have it. */
export async function orderRemovalAhead(sql: Sql, folder: string, key: string, now: number): Promise<void> {
  const { callId } = recordingOfKey(key)
  await sql`
    insert into recordings (key, call_id, folder, state, created_at, run_at)
    values (${key}, ${callId}, ${folder}, 'removing', ${now}, ${now})
    on conflict (key) do update set state = 'removing', run_at = ${now}`
}

/** A folder that recordings are written to. */
export async function noteFolder(sql: Sql, folder: string): Promise<void> {
  await sql`insert into recording_folders (id) values (${folder}) on conflict do nothing`
}

/**
 * The recording is gone from this folder, and from the storage. Where there are other folders one of them may have a part of it, of a browser that came
 * by another machine, and of which a process that was killed has told nobody: then it is an order for any. False: there is no other folder, or the call
 * is there and keeps what it has.
 */
export async function orderElsewhere(sql: Sql, folder: string, key: string, now: number): Promise<boolean> {
  const { callId } = recordingOfKey(key)
  const { count } = await sql`
    insert into recordings (key, call_id, folder, state, created_at, run_at)
    select ${key}, ${callId}, ${anyFolder}, 'removing', ${now}::timestamptz, ${now}::timestamptz
    where exists (select from recording_folders where id <> ${folder})
      and not exists (select from calls where id = ${callId} and erased_at is null and recording_removed_at is null)
    on conflict (key) do update set folder = excluded.folder, state = excluded.state, created_at = excluded.created_at,
      in_storage = false, claimed_by = null, claimed_until = null`
  return count > 0
}

/** Orders of so long ago: every folder has been looked through since. */
export async function forgetOldOrders(sql: Sql, before: number): Promise<void> {
  await sql`delete from recordings where folder = ${anyFolder} and state = 'removing' and created_at < ${before}`
}

/** The order could not be carried out. */
export async function delayRemoval(sql: Sql, key: string, runAt: number, problem: string): Promise<void> {
  await sql`
    update recordings set run_at = ${runAt}, problem = ${problem}, claimed_by = null, claimed_until = null
    where key = ${key} and state = 'removing'`
}

export async function forgetRecording(sql: Sql, key: string): Promise<void> {
  await sql`delete from recordings where key = ${key}`
}

/** What was given up is tried again, and with a storage what stayed in the folder is shipped. How many there are. */
export async function reopenRecordings(
  sql: Sql,
  { folder, ships, now }: { readonly folder: string | null; readonly ships: boolean; readonly now: number },
): Promise<number> {
  const { count } = await sql`
    update recordings set state = 'waiting', attempts = 0, run_at = ${now}
    where (state = 'failed' or (${ships} and state = 'kept')) and ${folder === null ? sql`true` : sql`folder = ${folder}`}`
  return count
}

export type RecordingsInState = {
  readonly state: RecordingState
  readonly count: number
  readonly oldest: number
  /** Of the one that was tried last. */
  readonly problem: string | null
}

export function countRecordings(sql: Sql): Promise<RecordingsInState[]> {
  return sql<RecordingsInState[]>`
    select state, count(*)::int as count, min(created_at) as oldest,
      (array_agg(problem order by run_at desc) filter (where problem is not null))[1] as problem
    from recordings where folder <> ${anyFolder} group by state order by state`
}

/** Owns who runs a call, and how its log is read. How it is born: call-births.ts; how its steps are written: write-steps.ts. */
import { callColumns, workerConfigOf, type CallFactsRow } from './call-rows.ts'
import { isCaptureWanted } from './standing-captures.ts'
import type { Json, JsonObject } from '../model/json.ts'
import type { AccountId, CallId, NodeId } from '../model/ids.ts'
import { inTime } from './in-time.ts'
import { leaseLength, nothingSeen, type NodeSightings } from './nodes.ts'
import type { Sql, Transaction } from './sql.ts'
import { turnsColumn, type TurnRow } from './transcripts.ts'

export type Claim = {
  readonly accountId: AccountId
  readonly epoch: number
  readonly version: number
  readonly snapshot: Json
  /** Ms since the former owner was last alive, as its lease or its last step tells; null: it had none. */
  readonly leftFor: number | null
}

export type LoggedStep = {
  readonly event: Json
  readonly effects: Json
  readonly ignored: boolean
  readonly at: number
}

/**
 * Makes `nodeId` the owner, with a higher epoch, unless another node that is alive has it. Null: it is another's, finished or unknown.
 * Claiming a call that is already this node's own raises the epoch too: the former actor is fenced.
 */
export async function claimCall(
  sql: Sql,
  callId: CallId,
  nodeId: NodeId,
  seen: NodeSightings = nothingSeen,
): Promise<Claim | null> {
  const from: ReturnType<Sql> = sql`select ${callId}::text as id`
  const [claimed] = await claimFrom(sql, { from, nodeId, seen }, sql`true`)
  if (!claimed) return null
  const { id: _, ...claim } = claimed
  return claim
}

/** The same as claimCall, of many at once. What somebody else holds just now is not among them, nor waited for. */
export function claimCalls(
  sql: Sql,
  callIds: readonly CallId[],
  nodeId: NodeId,
  seen: NodeSightings = nothingSeen,
): Promise<ReadonlyMap<CallId, Claim>> {
  return claimMany(sql, { callIds, nodeId, seen }, sql`true`)
}

/** The same for calls that had been left in the middle of something. One that only waits by now is not among them, which is nobody's loss. */
export function claimOrphans(
  sql: Sql,
  callIds: readonly CallId[],
  nodeId: NodeId,
  seen: NodeSightings = nothingSeen,
): Promise<ReadonlyMap<CallId, Claim>> {
  return claimMany(sql, { callIds, nodeId, seen }, sql`owner is not null`)
}

type Claiming = { readonly nodeId: NodeId; readonly seen: NodeSightings }

async function claimMany(
  sql: Sql,
  { callIds, ...claiming }: Claiming & { readonly callIds: readonly CallId[] },
  condition: ReturnType<Sql>,
): Promise<ReadonlyMap<CallId, Claim>> {
  const from: ReturnType<Sql> = sql`
    select id from calls where id = any(${[...callIds]}::text[]) order by id for no key update skip locked`
  const claims = await claimFrom(sql, { from, ...claiming }, condition)
  return new Map(claims.map(({ id, ...claim }) => [id, claim]))
}

/** `from`: a query for the ids of those that may be claimed. */
function claimFrom(
  sql: Sql,
  { from, nodeId, seen }: Claiming & { readonly from: ReturnType<Sql> },
  condition: ReturnType<Sql>,
) {
  return sql<(Claim & { readonly id: CallId })[]>`
    with asked as materialized (${from}), former as (
      select id, case when owner is not null then greatest(0, extract(epoch from clock_timestamp() - coalesce(
        (select lease_until - ${leaseLength}::int * interval '1 ms' from nodes
          where nodes.id = calls.owner and isfinite(lease_until)),
        (select max(at) from call_events where call_id = calls.id))) * 1000)::float8 end as left_for
      from calls where id = any(array(select id from asked)))
    update calls set owner = ${nodeId}, epoch = epoch + 1 from former
    where calls.id = former.id and not finished and ${condition}
      and (owner is null or owner = ${nodeId} or not ${ownerIsAlive(sql, seen)}) and ${inTime(sql)}
    returning calls.id, account_id, epoch, version, snapshot, left_for`
}

/** Of those that are not over. Null for `owner`: nobody that is alive has it. */
export async function findOwners(
  sql: Sql,
  callIds: readonly CallId[],
  seen: NodeSightings = nothingSeen,
): Promise<ReadonlyMap<CallId, { readonly owner: NodeId | null }>> {
  const rows = await sql<{ id: CallId; owner: NodeId | null }[]>`
    select id, case when ${ownerIsAlive(sql, seen)} then owner end as owner from calls
    where id = any(${[...callIds]}::text[]) and not finished`
  return new Map(rows.map(({ id, owner }) => [id, { owner }]))
}

/** By the clock of the database, which measures the leases, and by what was heard. */
const ownerIsAlive = (sql: Sql, { silent, heard }: NodeSightings) => sql`
  (calls.owner = any(${[...heard]}::text[]) or exists (select from nodes where nodes.id = calls.owner
    and lease_until > clock_timestamp() and (off_bus or nodes.id <> all(${[...silent]}::text[]))))`

export type OrphanQuestion = {
  /** Of the node that asks. */
  readonly nodeId: NodeId
  /** Calls that it has, or cannot run. */
  readonly passedOver: readonly CallId[]
  readonly seen?: NodeSightings
}

/** A call in the middle of something without an actor: left behind by a dead node, or lost by the one that asks. */
export const isOrphan = (sql: Sql, { nodeId, passedOver, seen = nothingSeen }: OrphanQuestion) => sql`
  not finished and owner is not null and id <> all(${[...passedOver]}::text[])
    and (owner = ${nodeId} or not ${ownerIsAlive(sql, seen)})`

export async function findOrphans(
  sql: Sql,
  { limit, ...question }: OrphanQuestion & { readonly limit: number },
): Promise<{ readonly id: CallId; readonly owner: NodeId; readonly epoch: number }[]> {
  return sql<{ id: CallId; owner: NodeId; epoch: number }[]>`
    select id, owner, epoch from calls where ${isOrphan(sql, question)} limit ${limit}`
}

/** Of these, the ones that are not over: a call is from the moment that its ending is decided, except while it says its last words. */
export async function listAlive(sql: Sql, callIds: readonly CallId[]): Promise<CallId[]> {
  const rows = await sql<{ id: CallId }[]>`
    select id from calls
    where id = any(${[...callIds]}::text[]) and outcome is null
      and progress in ('scheduled', 'queued', 'ringing', 'in_progress')`
  return rows.map((row) => row.id)
}

/** Of these, the ones that are not there: they were deleted, or wait on a disk to be written. */
export async function listUnstored(sql: Sql, callIds: readonly CallId[]): Promise<CallId[]> {
  const rows = await sql<{ id: CallId }[]>`select id from calls where id = any(${[...callIds]}::text[])`
  const stored = new Set(rows.map(({ id }) => id))
  return callIds.filter((id) => !stored.has(id))
}

export async function findCallFacts(sql: Sql | Transaction, callId: CallId): Promise<CallFactsRow | null> {
  const [row] = await sql<CallFactsRow[]>`
    select ${callFactColumns(sql)} from ${callsWithFacts(sql)} where calls.id = ${callId}`
  return row ?? null
}

/** The same of many calls, by their ids. */
export async function findFactsOfCalls(
  sql: Sql,
  callIds: readonly CallId[],
): Promise<ReadonlyMap<CallId, CallFactsRow>> {
  const rows = await sql<CallFactsRow[]>`
    select ${callFactColumns(sql)} from ${callsWithFacts(sql)} where calls.id = any(${[...callIds]}::text[])`
  return new Map(rows.map((row) => [row.id, row]))
}

const callFactColumns = (sql: Sql | Transaction) => sql`
  ${callColumns(sql)}, context, request, hook_answer, script_ids, sip, caller_verified, workers.language,
  ${workerConfigOf(sql)} as worker_config, ${isCaptureWanted(sql)} as is_capture_wanted`

const callsWithFacts = (sql: Sql | Transaction) => sql`
  calls join workers on workers.id = calls.worker_id join accounts on accounts.id = calls.account_id`

export type CallOver = CallFactsRow & {
  readonly snapshot: Json
  readonly owner: NodeId | null
  readonly turns: readonly TurnRow[]
}

/** With all that was said, by their ids. */
export async function findCallsOver(sql: Sql, callIds: readonly CallId[]): Promise<ReadonlyMap<CallId, CallOver>> {
  const rows = await sql<CallOver[]>`
    select ${callFactColumns(sql)}, snapshot, owner, ${turnsColumn(sql)} as turns from ${callsWithFacts(sql)}
    where calls.id = any(${[...callIds]}::text[])`
  return new Map(rows.map((row) => [row.id, row]))
}

/** Of these, the ones that still wait for a fact. */
export async function findUnfinished(sql: Sql, callIds: readonly CallId[]): Promise<ReadonlyMap<CallId, true>> {
  const rows = await sql<{ id: CallId }[]>`
    select id from calls where id = any(${[...callIds]}::text[]) and not finished`
  return new Map(rows.map(({ id }) => [id, true]))
}

/** Is the call there, in whatever state, and nobody has removed what was said in it? */
export async function callHasWords(sql: Sql, callId: CallId): Promise<boolean> {
  const found = await sql`select from calls where id = ${callId} and erased_at is null and log_removed_at is null`
  return found.count > 0
}

export async function findSnapshot(sql: Sql, callId: CallId): Promise<Json> {
  const [row] = await sql<{ snapshot: Json }[]>`select snapshot from calls where id = ${callId}`
  return row?.snapshot ?? null
}

export type LoggedEvent = LoggedStep & { readonly seq: number; readonly epoch: number }

export function listCallEvents(sql: Sql, callId: CallId): Promise<LoggedEvent[]> {
  return sql<LoggedEvent[]>`
    select seq, epoch, at, event, effects, ignored from call_events where call_id = ${callId} order by seq`
}

/** A part of the log: so many steps from one on. */
export function listEventsFrom(
  sql: Sql,
  callId: CallId,
  { from, limit }: { readonly from: number; readonly limit: number },
): Promise<LoggedEvent[]> {
  return sql<LoggedEvent[]>`
    select seq, epoch, at, event, effects, ignored from call_events
    where call_id = ${callId} and seq >= ${from} order by seq limit ${limit}`
}

/** Ms since the answer, when an actor of a later epoch first wrote something of the call; null: none has. */
export async function takenAfter(sql: Sql, callId: CallId, epoch: number): Promise<number | null> {
  const [row] = await sql<{ at: number | null }[]>`
    select (extract(epoch from min(call_events.at) - calls.started_at) * 1000)::float8 as at from calls
    join call_events on call_id = calls.id and call_events.epoch > ${epoch} where calls.id = ${callId} group by calls.started_at`
  return row?.at ?? null
}

/** A call of a tool, as the log of its phone call has it. */
export type LoggedTool = {
  readonly id: string
  readonly name: string
  readonly arguments: JsonObject
  /** Absent: of an older version. */
  readonly toolCallId?: string
  /** By the clock of who took note of it. */
  readonly at: number
  /** By a `tool_asked` behind it somebody was about to be asked. */
  readonly isAsked: boolean
}

/** Calls of tools by these ids, in their order. */
export async function findToolCalls(sql: Sql, callId: CallId, ids: readonly string[]): Promise<LoggedTool[]> {
  const rows = await sql<(LoggedTool & { toolCallId: string | null })[]>`
    select event ->> 'id' as id, event ->> 'name' as name, event -> 'arguments' as arguments, event ->> 'toolCallId' as tool_call_id, at,
      exists (
        select from call_events asked
        where asked.call_id = called.call_id and asked.event ->> 'type' = 'tool_asked' and not asked.ignored
          and asked.event ->> 'toolCallId' = called.event ->> 'toolCallId') as is_asked
    from call_events called
    where call_id = ${callId} and event ->> 'type' = 'tool_called' and not ignored and event ->> 'id' = any(${[...ids]}::text[])
    order by seq`
  return rows.map(({ toolCallId, ...row }) => ({ ...row, ...(toolCallId !== null && { toolCallId }) }))
}

/**
 * Owns who of the calls that wait is next: the longest waiting first, within the places of account, worker and trunks, and within what account
 * and trunks may begin in a second. All of one account happens under the lock of its row, so it holds for any number of nodes.
 */
import type { AccountId, CallId, NewId, TrunkId, WorkerId } from '../model/ids.ts'
import { countAllRunning, lockPlaces, runs, waits } from './call-capacity.ts'
import { insertJobs } from './jobs.ts'
import type { Sql, Transaction } from './sql.ts'
import { dialsOut } from './telephony.ts'
import { hasRoom, paceOf, roomOf, trunkRoomColumns, turnsOf, type TrunkRoom } from './trunk-room.ts'

export type Grant = {
  readonly granted: number
  /** There may be more to give at once. */
  readonly more: boolean
  /** Ms since the epoch: when the limit of calls a second lets the next waiting call begin. */
  readonly nextAt: number | null
}

type Asked = { readonly accountId: AccountId; readonly now: number; readonly atMost: number; readonly newId: NewId }
type Waiting = { readonly id: CallId; readonly workerId: WorkerId }
/** A trunk that dials out, and what is left of it. */
type Way = { readonly id: TrunkId; room: TrunkRoom }

const nothing: Grant = { granted: 0, more: false, nextAt: null }

/**
 * Gives the free places of one account to those that wait longest, `atMost` of them; each gets a trunk, and a job that dials it, in the same
 * transaction. A worker at its limit is passed over, and one whose trunks have no room.
 */
export function grantSlots(sql: Sql, asked: Asked): Promise<Grant> {
  const { accountId, now, atMost, newId } = asked
  return sql.begin(async (tx) => {
    const { limit, maxCallsPerSecond } = await lockPlaces(tx, accountId)
    const free = limit - (await countAllRunning(tx, accountId))
    if (free <= 0) return nothing
    const turnsAfter = await paceOfAccount(tx, asked, maxCallsPerSecond)
    const turns = turnsAfter(0)
    const places = Math.min(atMost, free, turns.count)
    if (places <= 0) return { ...nothing, nextAt: turns.nextAt }
    const ways = await listWays(tx, accountId, now)
    const next = await listLongestWaiting(tx, { accountId, now, places, ways })
    const chosen = await holdTrunks(tx, await chooseTrunks(tx, asked, next, ways))
    const granted = await takeSlots(tx, chosen, now)
    await insertJobs(
      tx,
      granted.map((callId) => ({ id: newId(), accountId, callId, kind: 'dial', runAt: now })),
    )
    // Those passed over leave room for others behind them, in the next round.
    const missed = granted.length < next.length
    const later = [turnsAfter(granted.length), ...ways.map(({ room }) => roomOf(room, now))]
    return { granted: granted.length, more: next.length === atMost || missed, nextAt: earliestOf(later) }
  })
}

/** How many calls of the account may begin after so many more that begin now. */
async function paceOfAccount(tx: Transaction, { accountId, now }: Asked, perSecond: number | null) {
  if (perSecond === null) return () => ({ count: Infinity, nextAt: null })
  const pace = paceOf(perSecond)
  const rows = await tx<{ at: number }[]>`
    select slot_granted_at as at from calls where account_id = ${accountId} and slot_granted_at > ${now - pace.window}
    order by slot_granted_at desc limit ${pace.calls}`
  const lately = rows.map(({ at }) => at)
  return (begun: number) => turnsOf(pace, [...Array<number>(begun).fill(now), ...lately], now)
}

const earliestOf = (turns: readonly { nextAt: number | null }[]): number | null =>
  turns.reduce<number | null>(
    (first, { nextAt }) => (first === null || (nextAt ?? Infinity) < first ? nextAt : first),
    null,
  )

async function listWays(tx: Transaction, accountId: AccountId, now: number): Promise<Way[]> {
  const rows = await tx<(TrunkRoom & { id: TrunkId })[]>`
    select id, ${trunkRoomColumns(tx, now)} from trunks
    where account_id = ${accountId} and is_active and ${dialsOut(tx)} order by created_at, id`
  return rows.map(({ id, ...room }) => ({ id, room }))
}

/** Of each worker no more than it has room for, none of those whose trunks are all full; of all of them the first. */
async function listLongestWaiting(
  tx: Transaction,
  { accountId, now, places, ways }: { accountId: AccountId; now: number; places: number; ways: readonly Way[] },
): Promise<Waiting[]> {
  const open = ways.filter(({ room }) => hasRoom(room, now)).map(({ id }) => id)
  const full = ways.filter(({ room }) => !hasRoom(room, now)).map(({ id }) => id)
  const has = (trunkIds: readonly TrunkId[]) =>
    tx`exists (select from trunk_workers where worker_id = workers.id and trunk_id = any(${[...trunkIds]}::text[]))`
  return tx<Waiting[]>`
    with rooms as (
      select id, greatest(0, least(${places}::bigint, max_concurrent_calls - (
        select count(*) from calls where calls.account_id = ${accountId} and calls.worker_id = workers.id and ${runs(tx)}
      ))) as room
      from workers where account_id = ${accountId} ${full.length === 0 ? tx`` : tx`and (${has(open)} or not ${has(full)})`})
    select waiting.id, rooms.id as worker_id from rooms cross join lateral (
      select calls.id, coalesce(scheduled_at, created_at) as since from calls
      where calls.account_id = ${accountId} and calls.worker_id = rooms.id and ${waits(tx, now)}
      order by coalesce(scheduled_at, created_at), calls.id limit rooms.room) waiting
    order by waiting.since, waiting.id limit ${places}`
}

type Chosen = { readonly id: CallId; readonly trunkId: TrunkId | null }

/**
 * In the order of their turns each gets the first trunk of its worker that has room. Without any trunk the call goes on, and fails where its
 * creator hears of it; when the others took the room, it waits.
 */
async function chooseTrunks(
  tx: Transaction,
  { accountId, now }: Asked,
  next: readonly Waiting[],
  ways: readonly Way[],
): Promise<Chosen[]> {
  if (next.length === 0 || ways.length === 0) return next.map(({ id }) => ({ id, trunkId: null }))
  const workerIds = [...new Set(next.map(({ workerId }) => workerId))]
  const links = await tx<{ workerId: WorkerId; trunkId: TrunkId }[]>`
    select worker_id, trunk_id from trunk_workers
    where account_id = ${accountId} and worker_id = any(${workerIds}) and trunk_id = any(${ways.map(({ id }) => id)})`
  const linked = Map.groupBy(links, ({ workerId }) => workerId)
  return next.flatMap(({ id, workerId }): Chosen[] => {
    const own = new Set(linked.get(workerId)?.map(({ trunkId }) => trunkId))
    if (own.size === 0) return [{ id, trunkId: null }]
    const way = ways.find((candidate) => own.has(candidate.id) && hasRoom(candidate.room, now))
    if (!way) return []
    way.room = { ...way.room, carried: way.room.carried + 1, lately: [now, ...way.room.lately] }
    return [{ id, trunkId: way.id }]
  })
}

/** Before the calls, as by everybody. Those whose trunk was deleted a moment ago are let go, for the next round. */
async function holdTrunks(tx: Transaction, chosen: readonly Chosen[]): Promise<Chosen[]> {
  const wanted = [...new Set(chosen.flatMap(({ trunkId }) => trunkId ?? []))]
  if (wanted.length === 0) return [...chosen]
  const rows = await tx<{ id: TrunkId }[]>`
    select id from trunks where id = any(${wanted}) order by id for key share`
  const held = new Set(rows.map(({ id }) => id))
  return chosen.filter(({ trunkId }) => trunkId === null || held.has(trunkId))
}

/**
 * Asked once more: a call that was canceled a moment ago is let go, and its place is for the next round. Rows are locked in one order, as by
 * who deletes a person with its calls.
 */
async function takeSlots(tx: Transaction, chosen: readonly Chosen[], now: number): Promise<CallId[]> {
  if (chosen.length === 0) return []
  const rows = await tx<{ id: CallId }[]>`
    with still as (
      select id from calls where id = any(${chosen.map(({ id }) => id)}) and ${waits(tx, now)} order by id for no key update)
    update calls set slot_granted_at = ${now}, trunk_id = chosen."trunkId"
    from still join jsonb_to_recordset(${tx.json(chosen as never)}) as chosen (id text, "trunkId" text) on chosen.id = still.id
    where calls.id = still.id returning calls.id`
  return rows.map(({ id }) => id)
}

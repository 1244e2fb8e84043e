/** Owns how a call's row is read for answers. Who writes it is the call's actor: call-steps.ts, call-effects.ts. */
import { callStatusOf, Direction, ProgressStatus } from '../model/call.ts'
import { toId, type AccountId, type CallId, type WorkerId } from '../model/ids.ts'
import { msOf } from '../model/instant.ts'
import { placeOf } from '../model/paging.ts'
import type { PhoneCallQuery } from '../model/phone-call.ts'
import { answerColumns, type CallRow, type DatedCall } from './call-rows.ts'
import { findCallsByWords } from './found-calls.ts'
import type { Fragment, Sql, Transaction } from './sql.ts'

export async function findCall(sql: Sql | Transaction, accountId: AccountId, callId: CallId): Promise<CallRow | null> {
  const [row] = await sql<CallRow[]>`
    select ${answerColumns(sql)} from calls where account_id = ${accountId} and id = ${callId}`
  return row ?? null
}

/**
 * Newest first; one more than the limit when there is more. Only the filters that are asked for stand in the query, so that each finds its
 * index.
 */
export async function listCalls(sql: Sql, accountId: AccountId, query: PhoneCallQuery): Promise<DatedCall[]> {
  const { status, direction, q: text, from, to, limit } = query
  const workerId = query.workerId === undefined ? null : toId<'worker'>(query.workerId)
  if (query.workerId !== undefined && workerId === null) return []
  const place = placeOf<'call'>(query)
  const none = sql``
  const afterIn = (id: Fragment) =>
    place &&
    sql`and (created_at, ${id}) < (${place.at ?? sql`(select created_at from calls where account_id = ${accountId} and id = ${place.id})`}, ${place.id})`
  const inTime = sql`
    ${from === undefined ? none : sql`and created_at >= ${msOf(from)}`}
    ${to === undefined ? none : sql`and created_at < ${msOf(to)}`}`
  const within = sql`
    ${afterIn(sql`id`) ?? none} ${inTime}
    order by created_at desc, id desc limit ${limit + 1}`
  if (text !== undefined) {
    const others = otherFilters(sql, { ...query, workerId })
    const byTime = (id: Fragment) => sql`${afterIn(id) ?? none} ${inTime}`
    return findCallsByWords(sql, { accountId, text, within: byTime, others, limit })
  }
  const ofWorker = workerId === null ? none : sql`and worker_id = ${workerId}`
  if (direction === undefined && status === undefined)
    return sql<DatedCall[]>`
      select ${answerColumns(sql)}, created_at from calls where account_id = ${accountId} ${ofWorker} ${within}`
  const { progress, isOutcome } = endingOf(status)
  // With the state it says which one; the planner knows how many have one.
  const ended = isOutcome ? sql`and outcome is not null` : none
  const directions = direction === undefined ? Direction.options : [direction]
  const page = (keys: readonly string[], found: Fragment) => sql`
    select page.id, page.created_at from unnest(${[...keys]}::text[]) as wanted (key)
    cross join lateral (select id, created_at from calls where ${found} ${ended} ${within}) page`
  const keysOf = (states: readonly ProgressStatus[], whose: readonly string[]): string[] =>
    states.flatMap((state) => directions.map((one) => [...whose, state, one].join(' ')))
  const [over, open] = [progress.filter(isOver), progress.filter((state) => !isOver(state))]
  const pages =
    workerId === null
      ? page(keysOf(progress, [accountId]), inState(sql))
      : sql`
          ${page(keysOf(over, [accountId, workerId]), overOfWorker(sql))}
          union all ${page(keysOf(open, [accountId]), sql`${inState(sql)} ${ofWorker}`)}`
  // A page of each, and of those one.
  return sql<DatedCall[]>`
    select ${answerColumns(sql)}, created_at from calls
    where id = any(array(select id from (${pages}) pages order by created_at desc, id desc limit ${limit + 1}))
    order by created_at desc, id desc`
}

/** Of calls that are found by something else; null: there is none. */
function otherFilters(
  sql: Sql,
  { status, direction, workerId }: Pick<PhoneCallQuery, 'status' | 'direction'> & { workerId: WorkerId | null },
): Fragment | null {
  if (status === undefined && direction === undefined && workerId === null) return null
  const { progress, isOutcome } = endingOf(status)
  return sql`and progress = any(${[...progress]}::text[])
    ${isOutcome ? sql`and outcome is not null` : sql``}
    ${direction === undefined ? sql`` : sql`and direction = ${direction}`}
    ${workerId === null ? sql`` : sql`and worker_id = ${workerId}`}`
}

/** To the letter, as the indexes have it: 0037_lists.sql. */
const inState = (sql: Sql) => sql`account_id || ' ' || progress || ' ' || direction = wanted.key`
const overOfWorker = (sql: Sql) => sql`
  account_id || ' ' || worker_id || ' ' || progress || ' ' || direction = wanted.key
  and progress not in ('scheduled', 'queued', 'ringing', 'in_progress')`

const isOver = (progress: ProgressStatus): boolean => callStatusOf(progress) === 'completed'

/** A status of the resource stands for all that reads like it; any other is how the call ended. */
function endingOf(status: PhoneCallQuery['status']): {
  readonly progress: readonly ProgressStatus[]
  readonly isOutcome: boolean
} {
  if (status === undefined) return { progress: ProgressStatus.options, isOutcome: false }
  const progress = ProgressStatus.options.filter((option) => callStatusOf(option) === status)
  if (progress.length > 0) return { progress, isOutcome: false }
  return { progress: ProgressStatus.options.filter((option) => option === status), isOutcome: true }
}

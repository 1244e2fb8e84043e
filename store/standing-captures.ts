/** Owns the rows of captures that are asked for in advance (model/standing-capture.ts), and which calls have been taken for them. */
import type { CapturedRtp } from '../model/call-capture.ts'
import type { AccountId, CallId, NewId, WorkerId } from '../model/ids.ts'
import type { StandingCapture, StandingCaptureWish } from '../model/standing-capture.ts'
import type { Sql, Transaction } from './sql.ts'

/** Those that were over so long ago are forgotten when the next one is asked for. */
const keptFor = 30 * 86_400_000
const hour = 3_600_000

type Whose = { readonly accountId: AccountId; readonly workerId: WorkerId | null }

const whose = (sql: Sql | Transaction, { accountId, workerId }: Whose) =>
  sql`account_id = ${accountId} and worker_id is not distinct from ${workerId}::text`

/** In place of the one that there was. */
export async function setStandingCapture(
  sql: Sql,
  given: Whose & { readonly wish: StandingCaptureWish; readonly newId: NewId; readonly now: number },
): Promise<{ readonly endsAt: number }> {
  const { accountId, workerId, wish, newId, now } = given
  const { rtp, minutes, calls } = wish
  const endsAt = now + wish.hours * hour
  await sql.begin(async (tx) => {
    await tx`delete from standing_captures where ends_at < ${now - keptFor} or (${whose(tx, given)})`
    await tx`
      insert into standing_captures (id, account_id, worker_id, rtp, minutes, most_calls, ends_at, created_at)
      values (${newId()}, ${accountId}, ${workerId}, ${rtp}, ${minutes}, ${calls}, ${endsAt}, ${now})`
  })
  return { endsAt }
}

/** The newest first, those that are over too. */
export function listStandingCaptures(sql: Sql, accountId: AccountId | null): Promise<StandingCapture[]> {
  return sql<StandingCapture[]>`
    select account_id, worker_id, rtp, minutes, most_calls, call_ids, ends_at from standing_captures
    where ${accountId}::text is null or account_id = ${accountId} order by created_at desc, id`
}

/** False: there was none. */
export async function endStandingCapture(sql: Sql, given: Whose): Promise<boolean> {
  const { count } = await sql`delete from standing_captures where ${whose(sql, given)}`
  return count > 0
}

/** Is there one for calls such as this row of `calls`? Whether its time is over is looked at when the call is taken for it. */
export const isCaptureWanted = (sql: Sql | Transaction) => sql`
  exists (select from standing_captures where standing_captures.account_id = calls.account_id and is_open
    and (standing_captures.worker_id is null or standing_captures.worker_id = calls.worker_id))`

type TakenCall = Pick<StandingCapture, 'rtp' | 'minutes'>

type OpenRow = TakenCall & {
  readonly id: string
  readonly mostCalls: number
  readonly callIds: readonly CallId[]
  readonly endsAt: number
  readonly permitsSound: boolean
}

/**
 * Counts the call, once however often it is asked for, where one is open for it: that of its worker before that of all. Null: none is. Sound that the
 * account does not permit any more is left out.
 */
export function takeStandingCapture(
  sql: Sql,
  call: { readonly accountId: AccountId; readonly workerId: WorkerId; readonly callId: CallId; readonly now: number },
): Promise<TakenCall | null> {
  const { accountId, workerId, callId, now } = call
  return sql.begin(async (tx): Promise<TakenCall | null> => {
    const rows = await tx<OpenRow[]>`
      select id, rtp, minutes, most_calls, call_ids, ends_at,
        exists (select from accounts where id = ${accountId} and (config ->> 'captureSound')::boolean) as permits_sound
      from standing_captures
      where account_id = ${accountId} and (worker_id is null or worker_id = ${workerId}) and (is_open or ${callId} = any(call_ids))
      order by worker_id is null, id for update`
    const over = rows.flatMap(({ id, endsAt }) => (endsAt > now ? [] : [id]))
    if (over.length > 0) await tx`update standing_captures set is_open = false where id = any(${over}::text[])`
    const open = rows.filter(({ endsAt }) => endsAt > now)
    const taken = open.find(({ callIds }) => callIds.includes(callId)) ?? open[0]
    if (!taken) return null
    const { id, minutes, permitsSound, callIds, mostCalls } = taken
    if (!callIds.includes(callId))
      await tx`
        update standing_captures set call_ids = call_ids || ${callId}::text, is_open = ${callIds.length + 1 < mostCalls}
        where id = ${id}`
    const rtp: CapturedRtp = permitsSound ? taken.rtp : 'headers'
    return { rtp, minutes }
  }) as Promise<TakenCall | null>
}

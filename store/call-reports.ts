/** Owns how calls are looked for and counted for people: by number, by an id of another system, in a span of time; and what happened in one. */
import type { ProgressStatus, Direction } from '../model/call.ts'
import type { AccountId, CallId, WorkerId } from '../model/ids.ts'
import { invalidFields } from '../model/problem.ts'
import { numberFaultOf, readNumber } from '../net/read-number.ts'
import { countryToRead } from './accounts.ts'
import { answerColumns, type DatedCall } from './call-rows.ts'
import { spellingsOf } from './person-numbers.ts'
import type { Sql } from './sql.ts'

export type CallSearch = {
  /** On either side of the call, in any spelling. */
  readonly phoneNumber?: string | undefined
  /** What the creator noted as `externalCallId` in its metadata, or the Call-ID of the INVITE. */
  readonly externalCallId?: string | undefined
  readonly workerId?: WorkerId | undefined
  readonly limit: number
}

/** Newest first; one more than `limit` when there is more. Throws Problem VALIDATION_FAILED for a number that is none. */
export async function searchCalls(sql: Sql, accountId: AccountId, search: CallSearch): Promise<DatedCall[]> {
  const { phoneNumber, externalCallId, workerId, limit } = search
  const numbers = phoneNumber === undefined ? null : spellingsOf(await readGiven(sql, accountId, phoneNumber))
  const none = sql``
  const ofWorker = workerId === undefined ? none : sql`and worker_id = ${workerId}`
  const ofNumber =
    numbers === null
      ? [none]
      : [sql`and to_number = any(${numbers}::text[])`, sql`and from_number = any(${numbers}::text[])`]
  const ofId =
    externalCallId === undefined
      ? [none]
      : [sql`and metadata->>'externalCallId' = ${externalCallId}`, sql`and sip->>'callId' = ${externalCallId}`]
  // Each finds its index; what several find is one.
  const pages = ofNumber.flatMap((number) =>
    ofId.map(
      (id) => sql`
        (select id, created_at from calls where account_id = ${accountId} ${number} ${id} ${ofWorker}
          order by created_at desc, id desc limit ${limit + 1})`,
    ),
  )
  const found = pages.reduce((all, page) => sql`${all} union ${page}`)
  return sql<DatedCall[]>`
    select ${answerColumns(sql)}, created_at from calls
    where account_id = ${accountId} and id = any(array(
      select id from (${found}) found order by created_at desc, id desc limit ${limit + 1}))
    order by created_at desc, id desc`
}

async function readGiven(sql: Sql, accountId: AccountId, text: string): Promise<string> {
  const country = await countryToRead(sql, accountId, [text])
  const number = readNumber(text, country)
  if (number !== null) return number
  throw invalidFields([{ path: 'phoneNumber', message: numberFaultOf(country) }])
}

/** Null: the account has no such call. */
export async function findDatedCall(sql: Sql, accountId: AccountId, callId: CallId): Promise<DatedCall | null> {
  const [row] = await sql<DatedCall[]>`
    select ${answerColumns(sql)}, created_at from calls where account_id = ${accountId} and id = ${callId}`
  return row ?? null
}

export type CallCount = {
  readonly progress: ProgressStatus
  readonly direction: Direction
  readonly calls: number
  /** Those that were answered and are over, and how long they were together. */
  readonly talks: number
  readonly talkedMs: number
}

export type CountedSpan = {
  readonly workerId?: WorkerId | undefined
  /** Ms since the epoch; of their creation, `from` inclusive, `to` exclusive. */
  readonly from?: number | undefined
  readonly to?: number | undefined
}

/** Read from an index alone. */
export function countCalls(sql: Sql, accountId: AccountId, { workerId, from, to }: CountedSpan): Promise<CallCount[]> {
  const none = sql``
  return sql<CallCount[]>`
    select progress, direction, count(*)::int as calls,
      count(ended_at - started_at)::int as talks,
      coalesce(sum(extract(epoch from ended_at - started_at) * 1000), 0)::float8 as talked_ms
    from calls where account_id = ${accountId}
      ${from === undefined ? none : sql`and created_at >= ${from}`}
      ${to === undefined ? none : sql`and created_at < ${to}`}
      ${workerId === undefined ? none : sql`and worker_id = ${workerId}`}
    group by progress, direction`
}

export type CallHappening = {
  readonly at: number
  readonly type: string
  /** What the call became by it. */
  readonly status: string | null
  /** Which tool was called. */
  readonly tool: string | null
}

/** What the transcript tells better, or what only the machine is interested in. */
const leftOut = ['turn_committed', 'turn_found', 'turn_shown', 'caller_heard', 'noted', 'deadline_passed']

/** In order; none of the words that were said, and none of the caller's. */
export function listHappenings(
  sql: Sql,
  { accountId, callId, limit }: { accountId: AccountId; callId: CallId; limit: number },
): Promise<CallHappening[]> {
  return sql<CallHappening[]>`
    select at, event->>'type' as type,
      (select effect->>'status' from jsonb_array_elements(effects) effect where effect->>'type' = 'announce_status' limit 1) as status,
      case when event->>'type' = 'tool_called' then event->>'name' end as tool
    from call_events
    where call_id = ${callId} and account_id = ${accountId} and not ignored
      and (event->>'type' <> all(${leftOut}::text[])
        or jsonb_path_exists(effects, '$[*] ? (@.type == "announce_status")'))
    order by seq limit ${limit}`
}

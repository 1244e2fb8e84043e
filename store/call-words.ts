/**
 * Owns the words by which calls are found that are over: written behind the end of a call, and anew when what was said is changed; and those of
 * calls of before, read part by part. With what was said they are taken away by a trigger: 0048_call_words.sql.
 */
import type { CallId } from '../model/ids.ts'
import { searchWordsOf } from '../model/search-words.ts'
import type { Sql, Transaction } from './sql.ts'
import { listTurnsOf } from './transcripts.ts'

/** Of one transaction, which has a deadline. */
const callsAtOnce = 20

/** Of calls that are over or being processed, by what is stored of them now. Who takes words away holds the call: it waits, or finds none. */
export function renewCallWords(sql: Sql, callIds: readonly CallId[]): Promise<void> {
  return sql.begin((tx) => renewWithin(tx, callIds))
}

/** Of a call that is over, by all that was said in it; unless that has been changed or removed since it was read, when who did so has seen to its words. */
export async function keepCallWords(sql: Sql, callId: CallId, texts: readonly string[]): Promise<void> {
  const words = searchWordsOf(texts)
  if (words.length === 0) return
  await sql`
    insert into call_words (call_id, account_id, created_at, words)
    select id, account_id, created_at, ${words}::text[]
    from (select id, account_id, created_at from calls
      where id = ${callId} and outcome is not null and erased_at is null and log_removed_at is null for share) as call
    where not exists (select from transcript_turns where call_id = call.id and text <> all(${[...texts]}::text[]))
    on conflict (call_id) do update set words = excluded.words`
}

async function renewWithin(tx: Transaction, callIds: readonly CallId[]): Promise<void> {
  const calls = await tx<{ id: CallId }[]>`
    select id from calls where id = any(${[...callIds]}::text[]) and outcome is not null order by id for share`
  const turns = Map.groupBy(
    await listTurnsOf(
      tx,
      calls.map(({ id }) => id),
    ),
    ({ callId }) => callId,
  )
  const rows = calls.map(({ id }) => ({
    callId: id,
    words: searchWordsOf((turns.get(id) ?? []).map(({ text }) => text)),
  }))
  await removeCallWords(
    tx,
    rows.filter(({ words }) => words.length === 0).map(({ callId }) => callId),
  )
  const spoken = rows.filter(({ words }) => words.length > 0)
  await tx`
    insert into call_words (call_id, account_id, created_at, words)
    select id, account_id, created_at, array(select jsonb_array_elements_text(words))
    from jsonb_to_recordset(${tx.json(spoken)}) as given ("callId" text, words jsonb) join calls on id = "callId"
    on conflict (call_id) do update set words = excluded.words`
}

export async function removeCallWords(tx: Sql | Transaction, callIds: readonly CallId[]): Promise<void> {
  if (callIds.length > 0) await tx`delete from call_words where call_id = any(${[...callIds]}::text[])`
}

/** Of the calls that there were before words were kept: how many were read. Goes on where it was left; one process at a time does it. */
export async function readFormerCallWords(sql: Sql, signal?: AbortSignal): Promise<number> {
  let read = 0
  while (signal?.aborted !== true) {
    const count = await sql.begin(readPart)
    if (count === 0) break
    read += count
  }
  return read
}

async function readPart(tx: Transaction): Promise<number> {
  const [walk] = await tx<{ below: string }[]>`select below from call_words_walk for update skip locked`
  if (!walk) return 0
  const calls = await tx<{ id: CallId }[]>`
    select id from calls where id < ${walk.below} order by id desc limit ${callsAtOnce}`
  const last = calls.at(-1)
  if (!last) {
    await tx`delete from call_words_walk`
    return 0
  }
  await renewWithin(
    tx,
    calls.map(({ id }) => id),
  )
  await tx`update call_words_walk set below = ${last.id}`
  return calls.length
}

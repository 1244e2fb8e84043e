/** Owns how calls are found by words of what was said in them. docs/contract/rest.md "Lists". */
import type { AccountId } from '../model/ids.ts'
import { searchWordsOf } from '../model/search-words.ts'
import { answerColumns, type DatedCall } from './call-rows.ts'
import type { Fragment, Sql } from './sql.ts'

/** So many of the newest calls are looked through first, by their words as they are: what many calls say is on the page by then. */
const lookedThroughFirst = 2_000
/** A word that so many of those have is no rare one: its index would give most of the table. */
const many = 40
/** Of such a word, beside other filters. */
const mostLookedThrough = 10_000

type Wanted = {
  readonly accountId: AccountId
  readonly text: string
  /** Of the creation, on `created_at` and the column of the call's id that it is given. */
  readonly within: (callId: Fragment) => Fragment
  /** What else the call must meet; null: nothing. */
  readonly others: Fragment | null
  readonly limit: number
}

/** Newest first, those that have all the words; one more than the limit when there is more. */
export async function findCallsByWords(sql: Sql, wanted: Wanted): Promise<DatedCall[]> {
  const words = searchWordsOf([wanted.text])
  const newest = await lookThrough(sql, wanted, { words, most: lookedThroughFirst })
  if (newest.calls.length > wanted.limit || newest.looked < lookedThroughFirst) return newest.calls
  if (wanted.others === null || newest.having < many) return findByIndex(sql, wanted, words)
  return (await lookThrough(sql, wanted, { words, most: mostLookedThrough })).calls
}

type Looked = { readonly calls: DatedCall[]; readonly looked: number; readonly having: number }

/** `looked`: how many calls were; `having`: how many of them have the words, whatever else they are to meet. */
async function lookThrough(
  sql: Sql,
  { accountId, within, others, limit }: Wanted,
  { words, most }: { readonly words: readonly string[]; readonly most: number },
): Promise<Looked> {
  const rows = await sql<(DatedCall & Omit<Looked, 'calls'>)[]>`
    with newest as materialized (
      select call_id, words from call_words where account_id = ${accountId} ${within(sql`call_id`)}
      order by created_at desc, call_id desc limit ${most}),
    having_them as materialized (select call_id from newest where words @> ${[...words]}::text[]),
    page as materialized (
      select ${answerColumns(sql)}, created_at from calls
      where id in (select call_id from having_them) and account_id = ${accountId} ${others ?? sql``}
      order by created_at desc, id desc limit ${limit + 1})
    select (select count(*)::int from newest) as looked, (select count(*)::int from having_them) as having, page.*
    from (select) as one left join page on true order by page.created_at desc, page.id desc`
  const { looked = 0, having = 0 } = rows[0] ?? {}
  return {
    looked,
    having,
    calls: rows.filter(({ id }) => id !== null).map(({ looked: _, having: __, ...call }) => call),
  }
}

function findByIndex(sql: Sql, { accountId, within, others, limit }: Wanted, words: readonly string[]) {
  const keys = words.map((word) => `${accountId.slice(-12)}${word}`)
  const most = others === null ? limit + 1 : mostLookedThrough
  return sql<DatedCall[]>`
    with found as materialized (
      select call_id from call_words
      where account_id = ${accountId} and call_word_keys(account_id, words) @> ${keys}::text[] ${within(sql`call_id`)}
      order by created_at desc, call_id desc limit ${most})
    select ${answerColumns(sql)}, created_at from calls
    where id in (select call_id from found) and account_id = ${accountId} ${others ?? sql``}
    order by created_at desc, id desc limit ${limit + 1}`
}

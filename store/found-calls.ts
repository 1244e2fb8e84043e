/** Owns how calls are found by words of what was said in them. docs/contract/rest.md "Lists". */
import type { AccountId } from '../model/ids.ts'
import { searchWordsOf } from '../model/search-words.ts'
import { answerColumns, type DatedCall } from './call-rows.ts'
import type { Fragment, Sql } from './sql.ts'

/** Of a word that most calls have, so many of the newest are looked through for the other filters. */
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
export function findCallsByWords(sql: Sql, { accountId, text, within, others, limit }: Wanted): Promise<DatedCall[]> {
  const keys = searchWordsOf([text]).map((word) => `${accountId.slice(-12)}${word}`)
  const most = others === null ? limit + 1 : mostLookedThrough
  return sql<DatedCall[]>`
    with found as materialized (
      select call_id from call_words where call_word_keys(account_id, words) @> ${keys}::text[] ${within(sql`call_id`)}
      order by created_at desc, call_id desc limit ${most})
    select ${answerColumns(sql)}, created_at from calls
    where id in (select call_id from found) and account_id = ${accountId} ${others ?? sql``}
    order by created_at desc, id desc limit ${limit + 1}`
}

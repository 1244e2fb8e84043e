/** Owns that the numbers of persons stored before are brought into the one form of E.164, part by part; what is no number stays as it is. */
import type { AccountId, PersonId } from '../model/ids.ts'
import type { Country } from '../net/numbering-plans.ts'
import { readNumber } from '../net/read-number.ts'
import { findHomeCountry } from './accounts.ts'
import type { Sql } from './sql.ts'

const rowsAtOnce = 1_000

type Unread = { readonly id: PersonId; readonly accountId: AccountId; readonly phoneNumber: string }

/** How many were written anew. Idempotent: goes on where it was left, also beside another process that does the same. */
export async function readStoredNumbers(sql: Sql, signal?: AbortSignal): Promise<number> {
  let changed = 0
  while (signal?.aborted !== true) {
    const rows = await sql<Unread[]>`
      select id, account_id, phone_number from persons where number_unread and phone_number is not null order by id limit ${rowsAtOnce}`
    if (rows.length === 0) break
    const countries = await countriesOf(sql, rows)
    const numbers = rows.map(
      ({ accountId, phoneNumber }) => readNumber(phoneNumber, countries.get(accountId) ?? null) ?? phoneNumber,
    )
    changed += numbers.filter((number, index) => number !== rows[index]?.phoneNumber).length
    // A number that was changed meanwhile is read in the next part.
    await sql`
      update persons set phone_number = given.number, number_unread = false
      from unnest(${rows.map(({ id }) => id)}::text[], ${rows.map(({ phoneNumber }) => phoneNumber)}::text[], ${numbers}::text[])
        as given (id, former, number)
      where persons.id = given.id and persons.phone_number = given.former`
  }
  return changed
}

/** Of the accounts whose numbers cannot all be read without one. */
async function countriesOf(sql: Sql, rows: readonly Unread[]): Promise<Map<AccountId, Country | null>> {
  const asking = rows.filter(({ phoneNumber }) => readNumber(phoneNumber) === null).map(({ accountId }) => accountId)
  const countries = new Map<AccountId, Country | null>()
  for (const accountId of new Set(asking)) countries.set(accountId, await findHomeCountry(sql, accountId))
  return countries
}

/** Owns the telephone numbers of persons: how they are read before they are stored or looked for, and those that are none. */
import type { AccountId } from '../model/ids.ts'
import type { PersonQuery } from '../model/person.ts'
import { invalidFields, type Problem } from '../model/problem.ts'
import type { Country } from '../net/numbering-plans.ts'
import { canonicalNumber, numberFaultOf, readNumber } from '../net/read-number.ts'
import { countryToRead, findHomeCountry } from './accounts.ts'
import type { Sql, Transaction } from './sql.ts'

const maxIssues = 100

/** As they are stored, E.164. Throws Problem VALIDATION_FAILED with the path of each number that is none. */
export async function withNumbers<Given extends { readonly phoneNumber?: string | null | undefined }>(
  sql: Sql | Transaction,
  accountId: AccountId,
  given: readonly Given[],
  pathOf: (index: number, field: string) => string,
): Promise<Given[]> {
  const texts = given.map(({ phoneNumber }) => phoneNumber)
  const country = await countryToRead(sql, accountId, texts)
  const numbers = texts.map((text) => (typeof text === 'string' ? readNumber(text, country) : text))
  const wrong = texts.flatMap((text, index) =>
    typeof text === 'string' && numbers[index] === null ? [pathOf(index, 'phoneNumber')] : [],
  )
  if (wrong.length > 0) throw refusalOf(wrong, country)
  return given.map((person, index) =>
    texts[index] === undefined ? person : { ...person, phoneNumber: numbers[index] },
  )
}

type Asked = {
  /** Within which numbers in the text are read; null where there are none, too. */
  readonly country: Country | null
  readonly phoneNumber: string | null
}

/** Throws Problem VALIDATION_FAILED for a `phoneNumber` that is none. */
export async function readQueryNumbers(
  sql: Sql | Transaction,
  accountId: AccountId,
  { phoneNumber, query = '' }: PersonQuery,
): Promise<Asked> {
  const country = /\d/.test(query)
    ? await findHomeCountry(sql, accountId)
    : await countryToRead(sql, accountId, [phoneNumber])
  const number = phoneNumber === undefined ? null : readNumber(phoneNumber, country)
  if (phoneNumber !== undefined && number === null) throw refusalOf(['phoneNumber'], country)
  return { country, phoneNumber: number }
}

/** A stored number of before may stand as it was sent. */
export const spellingsOf = (number: string): string[] => [...new Set([canonicalNumber(number), number])]

function refusalOf(paths: readonly string[], country: Country | null): Problem {
  const message = numberFaultOf(country)
  const issues = paths.slice(0, maxIssues).map((path) => ({ path, message }))
  return invalidFields(issues)
}

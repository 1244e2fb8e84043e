/**
 * Owns how persons are searched by text: each word of the query stands anywhere in name, e-mail address, telephone number or company, whatever its
 * accents and case, and numbers are met in any spelling. docs/design/person-search.md "What is compared".
 */
import type { AccountId } from '../model/ids.ts'
import type { Country } from '../net/numbering-plans.ts'
import { readNumber } from '../net/read-number.ts'
import type { Fragment, Sql, Transaction } from './sql.ts'

/** One of its ways must be met; of a way all words must stand in the text of the person. */
export type Term = readonly (readonly string[])[]

/** As the database compares texts. `hasTrigrams`: longer words are found by the index of pg_trgm, else by that of pairs. */
export type Search = { readonly terms: readonly Term[]; readonly hasTrigrams: boolean }

/** A number as people write it: blanks within, brackets, a leading zero. */
const numberLike = /^[+(\d][\d\s().\-/]*\d[\d\s().\-/]*$/
/** Words that belong to one number stand together. */
const tokens = /[+(]?\d[\d\s().\-/]*\d(?=\s|$)|\S+/g

/** The terms of a query as it was written. `country`: within which a number without country code is read. */
export function termsOf(query: string, country: Country | null): Term[] {
  const found = (query.match(tokens) ?? []).map((token): Term => {
    const words = token.split(/\s+/).filter((word) => word !== '')
    return numberLike.test(token) ? [words, ...digitsOf(token, country).map((digits) => [digits])] : [words]
  })
  const unique = new Map(found.map((term) => [JSON.stringify(term), distinct(term)]))
  return [...unique.values()]
}

/** What of it stands in a stored number: its digits, without what is dialed in front of a national number or of a foreign one. */
function digitsOf(token: string, country: Country | null): string[] {
  const digits = token.replace(/\D/g, '')
  const read = readNumber(token, country)?.slice(1)
  const written = token.startsWith('+') ? digits : digits.replace(/^0+(?=\d)/, '')
  return [written, ...(read === undefined ? [] : [read])]
}

const distinct = (term: Term): Term => [...new Map(term.map((way) => [way.join(' '), way])).values()]

/** The terms as the database compares texts, and what it can find them by. */
export async function prepareSearch(sql: Sql | Transaction, terms: readonly Term[]): Promise<Search> {
  if (terms.length === 0) return { terms, hasTrigrams: false }
  const words = [...new Set(terms.flat(2))]
  const [row] = await sql<{ plain: string[]; hasTrigrams: boolean }[]>`
    select array(select person_plain(word) from unnest(${words}::text[]) with ordinality as given (word, place) order by place) as plain,
      to_regclass('persons_by_trigrams') is not null as has_trigrams`
  const plain = new Map(words.map((word, index) => [word, row?.plain[index] ?? '']))
  const plainly = (way: readonly string[]) =>
    [...new Set(way.map((word) => plain.get(word)?.trim() ?? ''))].filter((word) => word !== '')
  const told = terms.map((term) => term.map(plainly)).filter((term) => term.every((way) => way.length > 0))
  return { terms: told, hasTrigrams: row?.hasTrigrams ?? false }
}

const everybody = (sql: Sql | Transaction) => sql`true`

/** What a row must meet, whichever way it was found. What `like` has a meaning for stands for itself. */
export function matchesOf(sql: Sql | Transaction, { terms }: Search): Fragment {
  const allIn = (way: readonly string[]) => sql`search_text like all(${way.map(patternOf)}::text[])`
  return terms.reduce((met, term) => sql`${met} and (${anyOf(sql, term, allIn)})`, everybody(sql))
}

/** The same, as an index can find it: longer words by their trigrams where one has any, else all by their pairs of letters. */
export function indexedMatchesOf(
  sql: Sql | Transaction,
  accountId: AccountId,
  { terms, hasTrigrams }: Search,
): Fragment {
  const long = hasTrigrams ? terms.filter((term) => term.every((way) => way.some(hasTrigram))) : []
  const byTrigrams = (way: readonly string[]) =>
    way.filter(hasTrigram).reduce((met, word) => sql`${met} and search_text like ${patternOf(word)}`, everybody(sql))
  const byPairs = (way: readonly string[]) =>
    sql`person_pairs(account_id, search_text) @> ${way.flatMap((word) => pairsOf(accountId, word))}::text[]`
  const [chosen, by] = long.length > 0 ? [long, byTrigrams] : [terms, byPairs]
  return chosen.reduce((met, term) => sql`${met} and (${anyOf(sql, term, by)})`, everybody(sql))
}

/** Keys as `person_pairs` makes them: the end of the account's id, and one or two letters. */
function pairsOf(accountId: AccountId, word: string): string[] {
  const letters = Array.from(word)
  return letters.map((letter, index) => `${accountId.slice(-12)}${letter}${letters[index + 1] ?? ''}`)
}

const anyOf = (sql: Sql | Transaction, term: Term, by: (way: readonly string[]) => Fragment): Fragment => {
  const [first = [], ...others] = term
  return others.reduce((met, way) => sql`${met} or (${by(way)})`, sql`(${by(first)})`)
}

/** Letters that every database takes for letters: accents are gone, and others it may not know. */
const hasTrigram = (word: string): boolean => /[a-z0-9]{3}/.test(word)

const patternOf = (word: string): string => `%${word.replace(/[\\%_]/g, '\\$&')}%`

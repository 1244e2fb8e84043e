/** Owns the rows of persons: leads and customers, and the contacts of workers. docs/contract/rest.md "Persons". */
import { toId, type AccountId, type NewId, type PersonId, type WorkerId } from '../model/ids.ts'
import { cursorOf } from '../model/paging.ts'
import { Person, type PersonChange, type PersonFacts, type PersonQuery, type PersonRequest } from '../model/person.ts'
import { invalidFields, Problem, type Issue } from '../model/problem.ts'
import { givenColumns } from './given-columns.ts'
import { readQueryNumbers, spellingsOf, withNumbers } from './person-numbers.ts'
import { indexedMatchesOf, matchesOf, prepareSearch, termsOf, type Search } from './person-search.ts'
import { orderRemoval, walkRemoval } from './removals.ts'
import type { Fragment, Sql, Transaction } from './sql.ts'
import { requireWorkers } from './workers.ts'

export type NewPersons = {
  readonly accountId: AccountId
  readonly requests: readonly PersonRequest[]
  readonly newId: NewId
  readonly now: number
}

export type ChangedPerson = {
  readonly accountId: AccountId
  readonly personId: PersonId
  readonly change: PersonChange
  readonly now: number
}

/** More than a worker can tell apart. */
const maxContacts = 1000

/** Columns are named like the fields of an answer. */
const columnNames = Object.keys(Person.shape)

/** Throws Problem: VALIDATION_FAILED for a worker the account has not got, CONFLICT for an external id that is taken. */
export async function createPerson(
  sql: Sql,
  { request, ...rest }: Omit<NewPersons, 'requests'> & { readonly request: PersonRequest },
): Promise<PersonFacts> {
  const [person] = await insertPersons(sql, { ...rest, requests: [request] }, (_, field) => field)
  return person as PersonFacts
}

/** All or none, in the order of the requests. Problems like those of one, with the path `persons.<i>.<field>`. */
export async function createPersons(sql: Sql, persons: NewPersons): Promise<PersonFacts[]> {
  return insertPersons(sql, persons, (index, field) => `persons.${index}.${field}`)
}

export async function findPerson(
  sql: Sql | Transaction,
  accountId: AccountId,
  personId: PersonId,
): Promise<PersonFacts | null> {
  const [row] = await sql<PersonFacts[]>`
    select ${sql(columnNames)} from persons where account_id = ${accountId} and id = ${personId}`
  return row ?? null
}

/**
 * When several have the number: customers and leads before contacts, then the oldest. E.164. A number of before that was not read yet counts as it
 * stands.
 */
export async function findPersonByPhone(
  sql: Sql | Transaction,
  accountId: AccountId,
  phoneNumber: string,
): Promise<PersonFacts | null> {
  const [row] = await sql<PersonFacts[]>`
    select ${sql(columnNames)} from persons
    where account_id = ${accountId} and phone_number = any(${spellingsOf(phoneNumber)}::text[])
    order by type = 'phone_contact', created_at, id limit 1`
  return row ?? null
}

/** The same of many numbers, by the number that was asked for. */
export async function findPersonsByPhone(
  sql: Sql | Transaction,
  accountId: AccountId,
  phoneNumbers: readonly string[],
): Promise<ReadonlyMap<string, PersonFacts>> {
  const asked = phoneNumbers.map((number) => ({ number, spellings: spellingsOf(number) }))
  const rows = await sql<(PersonFacts & { askedNumber: string })[]>`
    select asked.number as asked_number, found.*
    from jsonb_to_recordset(${sql.json(asked)}) as asked(number text, spellings text[]) cross join lateral (
      select ${sql(columnNames)} from persons
      where account_id = ${accountId} and phone_number = any(asked.spellings)
      order by type = 'phone_contact', created_at, id limit 1) found`
  return new Map(rows.map(({ askedNumber, ...person }) => [askedNumber, person]))
}

/** Whom a worker may pass a caller on to, in the order they were made. */
export function listContacts(sql: Sql | Transaction, accountId: AccountId, workerId: WorkerId): Promise<PersonFacts[]> {
  return sql<PersonFacts[]>`
    select ${sql(columnNames)} from persons
    where account_id = ${accountId} and worker_id = ${workerId} and type = 'phone_contact'
    order by created_at, id limit ${maxContacts}`
}

/**
 * Newest first; one more than `limit` when there is more. `offset`: so many of the newest are left out. Throws Problem VALIDATION_FAILED for a
 * `phoneNumber` that is none.
 */
export async function listPersons(
  sql: Sql | Transaction,
  accountId: AccountId,
  query: PersonQuery & { readonly offset?: number },
): Promise<PersonFacts[]> {
  const { type, email, externalId, tag, limit, offset = 0 } = query
  const workerId = query.workerId === undefined ? null : toId<'worker'>(query.workerId)
  // A filter finds nothing where a path would name nothing.
  if (query.workerId !== undefined && workerId === null) return []
  const { country, phoneNumber } = await readQueryNumbers(sql, accountId, query)
  const cursor = cursorOf<'person'>(query)
  const filters = sql`
    (${type ?? null}::text is null or type = ${type ?? null})
    and (${workerId}::text is null or worker_id = ${workerId})
    and (${phoneNumber}::text is null or phone_number = ${phoneNumber})
    and (${email ?? null}::text is null or lower(email) = lower(${email ?? null}))
    and (${externalId ?? null}::text is null or external_id = ${externalId ?? null})
    and (${tag ?? null}::text is null or ${tag ?? null} = any(tags))`
  const search = await prepareSearch(sql, termsOf(query.query ?? '', country))
  const those = { accountId, cursor, filters, tag: tag ?? null, search, limit, offset }
  if (search.terms.length === 0 && tag === undefined) return listNewest(sql, { ...those, within: null })
  const newest = await listNewest(sql, { ...those, within: newestAtOnce })
  return newest.length > limit ? newest : searchAll(sql, those)
}

type Those = {
  readonly accountId: AccountId
  readonly cursor: PersonId | null
  readonly filters: Fragment
  readonly tag: string | null
  readonly search: Search
  readonly limit: number
  readonly offset: number
}

/** So many of the newest are looked through first: what many have is found there, and an index would bring them all. */
const newestAtOnce = 4_000

/** `within`: of so many of the newest; null: of all. */
function listNewest(sql: Sql | Transaction, those: Those & { readonly within: number | null }): Promise<PersonFacts[]> {
  const { accountId, cursor, filters, search, limit, offset, within } = those
  return sql<PersonFacts[]>`
    select ${sql(columnNames)} from (
      select * from persons
      where account_id = ${accountId} and (${cursor}::text is null or id < ${cursor}) ${within === null ? sql`and ${filters}` : sql``}
      order by id desc limit ${within ?? offset + limit + 1}) newest
    where ${filters} and ${matchesOf(sql, search)}
    order by id desc limit ${limit + 1} offset ${offset}`
}

/** By an index: `offset 0` keeps the database from reading all persons in their order until enough are found. */
function searchAll(
  sql: Sql | Transaction,
  { accountId, cursor, filters, tag, search, limit, offset }: Those,
): Promise<PersonFacts[]> {
  // As 0037_lists.sql makes keys.
  const isTagged =
    tag === null ? sql`` : sql`and person_tags(account_id, tags) @> ${[accountId.slice(-12) + tag]}::text[]`
  return sql<PersonFacts[]>`
    select ${sql(columnNames)} from (
      select * from persons
      where account_id = ${accountId} and (${cursor}::text is null or id < ${cursor}) and ${filters} ${isTagged}
        and ${indexedMatchesOf(sql, accountId, search)} and ${matchesOf(sql, search)}
      offset 0) found
    order by id desc limit ${limit + 1} offset ${offset}`
}

/** Null: the account has no such person. Throws Problem like createPerson; a transaction has failed then. */
export async function changePerson(sql: Sql, changed: ChangedPerson): Promise<PersonFacts | null> {
  const { accountId, personId, change, now } = changed
  const { workerId, ...given } = change
  if (!(await findPerson(sql, accountId, personId))) return null
  const [plain = given] = await withNumbers(sql, accountId, [given], (_, field) => field)
  const write = async (tx: Sql | Transaction, link: { readonly workerId?: WorkerId | null }) => {
    const columns = givenColumns({ ...plain, ...link, updatedAt: now })
    const [row] = await tx<PersonFacts[]>`
      update persons set ${tx(columns)} where account_id = ${accountId} and id = ${personId}
      returning ${tx(columnNames)}`.catch(conflictOf)
    return row ?? null
  }
  if (typeof workerId !== 'string') return write(sql, workerId === null ? { workerId } : {})
  return sql.begin(async (tx) => {
    const [worker = null] = await requireWorkers(tx, accountId, [{ path: 'workerId', id: workerId }])
    return write(tx, { workerId: worker })
  })
}

/**
 * False: there was none. Calls are kept and lose the link, which no read tells any more, within so many ms, or what is then left of them in the
 * background: the steps of a call wait for who writes its row.
 */
export async function deletePerson(
  sql: Sql,
  accountId: AccountId,
  personId: PersonId,
  within = Infinity,
): Promise<boolean> {
  const removal = await sql.begin(async (tx) => {
    const { count } = await tx`delete from persons where account_id = ${accountId} and id = ${personId}`
    return count === 0 ? null : orderRemoval(tx, { kind: 'person', accountId, subjectId: personId })
  })
  if (removal) await walkRemoval(sql, removal, within)
  return removal !== null
}

/** Where a field of the request with this index stands in what was sent. */
type PathOf = (index: number, field: string) => string

async function insertPersons(sql: Sql, persons: NewPersons, pathOf: PathOf): Promise<PersonFacts[]> {
  const { accountId } = persons
  const requests = await withNumbers(sql, accountId, persons.requests, pathOf)
  refuseTwins(requests, pathOf)
  const named = requests.map(({ workerId }, index) =>
    typeof workerId === 'string' ? [{ path: pathOf(index, 'workerId'), id: workerId }] : [],
  )
  const rows = requests.map((request) => rowOf(request, persons))
  // In one order for everybody: two batches with the same external ids would else wait for each other.
  const sorted = rows.toSorted((one, other) => orderOf(one.externalId ?? '', other.externalId ?? ''))
  return sql.begin(async (tx) => {
    // Every entry of a batch that is wrong is named.
    await requireWorkers(tx, accountId, named.flat(), requests.length)
    const inserted = await tx<PersonFacts[]>`
      insert into persons ${tx(sorted as never[])} on conflict (account_id, external_id) do nothing
      returning ${tx(columnNames)}`
    const facts = new Map(inserted.map((person) => [person.id, person]))
    const taken = rows.flatMap(({ id }, index) => (facts.has(id) ? [] : [index]))
    if (taken.length > 0) throw conflict(taken.map((index) => pathOf(index, 'externalId')))
    return rows.map(({ id }) => facts.get(id) as PersonFacts)
  })
}

const orderOf = (one: string, other: string): number => Number(one > other) - Number(one < other)

function rowOf(request: PersonRequest, { accountId, newId, now }: NewPersons) {
  const { externalId = null, tags = [], workerId = null, ...details } = request
  const id = newId<'person'>()
  const blank = Object.fromEntries(columnNames.map((name) => [name, null]))
  const links = { externalId, tags, workerId: workerId === null ? null : toId<'worker'>(workerId) }
  return { ...blank, ...details, ...links, id, accountId, createdAt: now, updatedAt: now }
}

/** Twins within one batch can never be stored, whatever else is. */
function refuseTwins(requests: readonly PersonRequest[], pathOf: PathOf): void {
  const ids = requests.map(({ externalId }) => externalId ?? null)
  const issues = ids.flatMap((id, index): Issue[] =>
    id !== null && ids.indexOf(id) < index
      ? [{ path: pathOf(index, 'externalId'), message: 'is in this batch already' }]
      : [],
  )
  if (issues.length > 0) throw invalidFields(issues)
}

const conflict = (paths: readonly string[]): Problem =>
  new Problem(
    'CONFLICT',
    'Another person has this externalId.',
    paths.map((path) => ({ path, message: 'belongs to another person' })),
  )

function conflictOf(error: unknown): never {
  const taken = error instanceof Error && 'constraint_name' in error && error.constraint_name === 'persons_external_id'
  throw taken ? conflict(['externalId']) : error
}

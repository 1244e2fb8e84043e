/** docs/contract/rest.md "Persons": who is found by which words, with and without the extensions of the database, and by nobody else. */
import { test, type Test } from 'tap'
import { PersonQuery, type PersonRequest } from '../../model/person.ts'
import { openDatabase } from '../../store/open-database.ts'
import { termsOf } from '../../store/person-search.ts'
import { createPerson, createPersons, findPersonByPhone, listPersons } from '../../store/persons.ts'
import { readStoredNumbers } from '../../store/read-stored-numbers.ts'
import { settlePersonSearch } from '../../store/settle-person-search.ts'
import { connect, type Sql, type Transaction } from '../../store/sql.ts'
import type { Log } from '../../model/log.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { openNetwork } from '../scenes/postgres-network.ts'
import { refusalOf } from '../scenes/refusal.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'

const start = Date.UTC(2026, 0, 1)

const people: PersonRequest[] = [
  { type: 'lead', firstName: 'Zoë', lastName: 'Müller-Lüdenscheidt', email: 'zoe@example.com' },
  { type: 'customer', firstName: 'Søren', lastName: 'Łukasiewicz', companyName: 'Weiß & Söhne' },
  { type: 'lead', firstName: 'Ada', lastName: 'Lovelace', phoneNumber: '+4930123456', companyName: '100% Engines' },
  { type: 'lead', firstName: 'Анна', lastName: 'Иванова', phoneNumber: '+491701234567' },
  { type: 'lead', firstName: 'back\\slash', lastName: "O'Hara", email: 'a_b@example.com' },
  { type: 'lead', firstName: 'José', lastName: 'Nuñez' },
]

const asked: [query: string, firstNames: string[]][] = [
  ['müller', ['Zoë']],
  ['MULLER zoe', ['Zoë']],
  ['lüden', ['Zoë']],
  ['u\u0308den', ['Zoë']],
  ['oe', ['Zoë']],
  ['ë', ['Zoë', 'Søren', 'Ada', 'back\\slash', 'José']],
  ['soren', ['Søren']],
  ['lukasiewicz', ['Søren']],
  ['weiss', ['Søren']],
  ['weiß sohne', ['Søren']],
  ['анна', ['Анна']],
  ['ИВАН', ['Анна']],
  ['нн', ['Анна']],
  ['jose', ['José']],
  ['nuñez', ['José']],
  ['%', ['Ada']],
  ['0%', ['Ada']],
  ['_', ['back\\slash']],
  ['\\', ['back\\slash']],
  ["o'hara", ['back\\slash']],
  ['ada%lovelace', []],
  ['zzyzx', []],
  ['qx', []],
  ['+4930123456', ['Ada']],
  ['+49 30 123456', ['Ada']],
  ['0049 30 123456', ['Ada']],
  ['(030) 123-456', ['Ada']],
  ['030/123456', ['Ada']],
  ['+49 (0)30 123456', ['Ada']],
  ['ada 030 1234', ['Ada']],
  ['030 1234 lovelace', ['Ada']],
  ['3012', ['Ada']],
  ['0170 1234567', ['Анна']],
  ['170 123', ['Анна']],
  ['030 999', []],
]

async function fill(sql: Sql, { accountId }: Tenant): Promise<void> {
  await sql`update accounts set config = config || '{"homeCountry": "DE"}' where id = ${accountId}`
  await createPersons(sql, { accountId, requests: people, newId, now: start })
}

async function answersAll(t: Test, sql: Sql, { accountId }: Tenant): Promise<void> {
  for (const [query, firstNames] of asked) {
    const found = await listPersons(sql, accountId, PersonQuery.parse({ query, limit: 100 }))
    t.same(found.map(({ firstName }) => firstName).toSorted(), firstNames.toSorted(), JSON.stringify(query))
  }
}

/** So many others that what is looked for is not among the newest. */
async function bury(sql: Sql, { accountId }: Tenant, count: number): Promise<void> {
  await sql`
    insert into persons (id, account_id, type, first_name, last_name)
    select 'zz' || n, ${accountId}, 'lead', 'Kim', 'Park' from generate_series(1, ${count}::int) n`
}

test('words are found anywhere in the five fields, whatever their accents and case, and numbers in every spelling', async (t) => {
  const { sql } = await openTestDatabase(t)
  const [own, other] = [await createTenant(sql), await createTenant(sql, { slug: 'other' })]
  await fill(sql, own)
  await fill(sql, other)
  t.equal(await settlePersonSearch(sql), null, 'the embedded database has all that the search wants')
  await answersAll(t, sql, own)
  await bury(sql, own, 4_100)
  await answersAll(t, sql, own)
})

async function rowsRead(tx: Transaction): Promise<number> {
  const [row] = await tx<{ read: number }[]>`
    select seq_tup_read + coalesce(idx_tup_fetch, 0) as read from pg_stat_xact_user_tables where relname = 'persons'`
  return row?.read ?? 0
}

test('a search of one account neither reads nor tells the persons of another', async (t) => {
  const { sql } = await openTestDatabase(t)
  const [own, other] = [await createTenant(sql), await createTenant(sql, { slug: 'other' })]
  await fill(sql, own)
  await bury(sql, own, 4_100)
  await sql`
    insert into persons (id, account_id, type, first_name, last_name, email)
    select 'o' || n, ${other.accountId}, 'lead', 'Zoë', 'Müller', 'qx@example.com' from generate_series(1, 12000) n`
  await sql`analyze persons`
  for (const [query, count] of [
    ['müller', 1],
    ['qx', 0],
    ['zoe', 1],
    ['0%', 1],
  ] as const) {
    const read = await sql.begin(async (tx) => {
      const before = await rowsRead(tx)
      const found = await listPersons(tx, own.accountId, PersonQuery.parse({ query }))
      t.equal(found.length, count, query)
      return (await rowsRead(tx)) - before
    })
    t.ok(read < 9_000, `${query} read ${read} rows`)
  }
})

test('a role that may not create extensions has the service started, the search working and the operator told', async (t) => {
  const { server } = await openTestDatabase(t)
  // The rights of another server are not ours to give.
  if (!('socket' in server)) return
  const as = async (user: string, database: string, texts: readonly string[]) => {
    const sql = connect({ server: { ...server, user, database }, applicationName: 'test', maxConnections: 1 })
    for (const text of texts) await sql.unsafe(text)
    await sql.end()
  }
  await as('postgres', 'postgres', ['create role guest login', 'create database plain'])
  await as('postgres', 'plain', ['grant usage, create on schema public to guest'])
  const network = await openNetwork(t, { ...server, user: 'guest', database: 'plain' })
  const open = async () => {
    const warned: unknown[] = []
    const log: Log = { ...createQuietLog(), warn: (_, fields) => void warned.push(fields), with: () => log }
    const database = await openDatabase({ databaseUrl: network.server.url, dataDir: 'none', log })
    t.teardown(() => database.close())
    return { sql: database.sql, warned, close: () => database.close() }
  }

  const poor = await open()
  t.match(poor.warned, [{ lacking: /unaccent \(.*permission.*\); pg_trgm \(.*\); btree_gin \(.*\)/ }])
  const own = await createTenant(poor.sql)
  await fill(poor.sql, own)
  await bury(poor.sql, own, 4_100)
  await answersAll(t, poor.sql, own)
  await poor.close()

  await as(
    'postgres',
    'plain',
    ['unaccent', 'pg_trgm', 'btree_gin'].map((name) => `create extension ${name}`),
  )
  const rich = await open()
  t.same(rich.warned, [], 'what an administrator creates is used from the next start on')
  t.match(await rich.sql`select to_regclass('persons_by_trigrams')::text as made`, [{ made: 'persons_by_trigrams' }])
  await answersAll(t, rich.sql, own)
})

test('numbers of before are brought into one form, and none is lost', async (t) => {
  const { sql } = await openTestDatabase(t)
  const { accountId } = await createTenant(sql)
  await sql`update accounts set config = config || '{"homeCountry": "DE"}' where id = ${accountId}`
  const before = ['+49030123456', '+4930123457', '+999123456789', '030 123458', 'ask at the desk', null]
  for (const [index, phoneNumber] of before.entries()) {
    const row = { id: `p${index}`, accountId, type: 'lead', firstName: 'Ada', lastName: `${index}`, phoneNumber }
    await sql`insert into persons ${sql({ ...row, numberUnread: true })}`
  }
  t.equal((await findPersonByPhone(sql, accountId, '+49030123456'))?.id, 'p0', 'it is found as it stands')
  t.equal(await readStoredNumbers(sql), 2)
  t.same(
    (await sql`select phone_number from persons order by id`).map(({ phoneNumber }) => phoneNumber as string | null),
    ['+4930123456', '+4930123457', '+999123456789', '+4930123458', 'ask at the desk', null],
  )
  t.equal((await findPersonByPhone(sql, accountId, '+49030123456'))?.id, 'p0')
  t.equal(await readStoredNumbers(sql), 0, 'it is done once')
})

test('of several with a number a customer goes before a contact, then the oldest', async (t) => {
  const { sql } = await openTestDatabase(t)
  const { accountId, workerId } = await createTenant(sql)
  const add = (request: Partial<PersonRequest>, now: number) =>
    createPerson(sql, {
      accountId,
      request: { type: 'lead', firstName: 'Ada', lastName: 'Lovelace', phoneNumber: '+4930123456', ...request },
      newId,
      now,
    })
  await add({ type: 'phone_contact', workerId }, start)
  const older = await add({}, start + 1)
  await add({ type: 'customer' }, start + 2)
  t.equal((await findPersonByPhone(sql, accountId, '+4930123456'))?.id, older.id)
})

test('a number of a person is read within the country of the account; what is none names its field', async (t) => {
  const { sql } = await openTestDatabase(t)
  const { accountId } = await createTenant(sql)
  const persons = (phoneNumbers: string[]) =>
    createPersons(sql, {
      accountId,
      requests: phoneNumbers.map((phoneNumber) => ({ type: 'lead', firstName: 'Ada', lastName: 'L', phoneNumber })),
      newId,
      now: start,
    })
  t.same(await refusalOf(persons(['+4930123456', '030 123456', 'x'])), [
    'VALIDATION_FAILED',
    'persons.1.phoneNumber',
    'persons.2.phoneNumber',
  ])
  await sql`update workers set outbound_phone_number = '+4930999999' where account_id = ${accountId}`
  const [national] = await persons(['030 123456'])
  t.equal(national?.phoneNumber, '+4930123456', 'the first number of the account says where it is at home')
  await sql`update accounts set config = config || '{"homeCountry": "US"}' where id = ${accountId}`
  const [foreign] = await persons(['(212) 555-0150'])
  t.equal(foreign?.phoneNumber, '+12125550150', 'the operator says it better')
  for (const phoneNumber of ['+1 (212) 555-0150', '1 212 555 0150', '2125550150'])
    t.equal((await listPersons(sql, accountId, PersonQuery.parse({ phoneNumber })))[0]?.id, foreign?.id, phoneNumber)
  const none = listPersons(sql, accountId, PersonQuery.parse({ phoneNumber: '110' }))
  t.same(await refusalOf(none), ['VALIDATION_FAILED', 'phoneNumber'])
})

test('the words of a query are few and bounded, whatever is asked', (t) => {
  t.same(termsOf('', null), [])
  t.same(termsOf('ada  ada', null), [[['ada']]])
  t.same(termsOf('030 123456', 'DE'), [[['030', '123456'], ['30123456'], ['4930123456']]])
  t.ok(termsOf('a1 '.repeat(160), 'DE').length < 3)
  t.notOk(PersonQuery.safeParse({ query: 'x'.repeat(10_000) }).success)
  t.notOk(PersonQuery.safeParse({ query: 'a\u0000b' }).success)
  t.end()
})

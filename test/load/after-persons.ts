/**
 * Owns `npm run bench after persons [count …]`: how long a search among so many persons takes by kind of query, beside another account of as many,
 * how long one more person takes to store, what the indexes weigh, and what the numbering plans cost in memory.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { v7 as uuid } from 'uuid'
import { createLog } from '../../app/log.ts'
import type { AccountId, NewId } from '../../model/ids.ts'
import { PersonQuery, type PersonFacts } from '../../model/person.ts'
import { openDatabase } from '../../store/open-database.ts'
import { createAccount } from '../../store/accounts.ts'
import { createPerson, listPersons } from '../../store/persons.ts'
import type { Sql } from '../../store/sql.ts'
import { createRandom } from '../fake/random.ts'
import { readPostgresCpu } from './postgres-cpu.ts'
import { printTable, quantile } from './table.ts'

const newId = (() => uuid()) as NewId
const defaultCounts = [100_000, 500_000]
const queriesOfKind = 60
const storedOneByOne = 200
const random = createRandom(11)

const firstNames =
  'Anna Maria Zoë José Søren Jürgen François Ada Grace Kim Lukas Emma Mia Ben Paul Leon Noah Łukasz Élise Björn Chloé Nuño Ayşe Zdeněk Jan Eva Tom Ida Max Finn'
const lastNames =
  'Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Nuñez Çelik Dvořák Lindström Sørensen García Łukasiewicz Groß Öztürk O’Hara'
const syllables =
  'ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro ru sa se si so su ta te ti to tu'

const nameOf = ({ firstName, lastName }: PersonFacts): string => `${firstName} ${lastName}`

/** By kind: a query as people type it. `qx`, `zzyzx` and the like nobody has. */
const kinds: Readonly<Record<string, (some: PersonFacts) => string>> = {
  'one letter': () => random.pick('abcdefghijklmnopqrstuvwxyzäø'.split('')),
  'two letters': () => random.pick(syllables.split(' ')),
  'two letters, nobody': () => random.pick(['qx', 'xq', 'jq', 'vq', 'wq', 'qz']),
  'common name': () => random.pick(lastNames.split(' ')),
  'first and last name': nameOf,
  'middle of a word': ({ lastName }) => lastName.slice(1, 6),
  'without accents': () =>
    random.pick(['muller', 'nunez', 'sorensen', 'dvorak', 'lindstrom', 'ozturk', 'celik', 'gross']),
  'number, international': ({ phoneNumber }) =>
    `+49 ${(phoneNumber ?? '').slice(3, 6)} ${(phoneNumber ?? '').slice(6)}`,
  'number, national': ({ phoneNumber }) => `0${(phoneNumber ?? '').slice(3, 6)} / ${(phoneNumber ?? '').slice(6)}`,
  'part of a number': ({ phoneNumber }) => (phoneNumber ?? '').slice(-6),
  'e-mail address': (some) => some.email ?? some.lastName,
  nobody: () => random.pick(['zzyzx', 'anna zzyzx', 'xylophonq', 'müllerqq', '%%%', 'a_b_c_d']),
  'of the oldest only': () => 'ancientown',
}

const rareName = (): string => Array.from({ length: 4 }, () => random.pick(syllables.split(' '))).join('')

export async function benchPersons(counts: readonly number[]): Promise<void> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  await using closing = new AsyncDisposableStack()
  closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  const log = createLog('warn')
  const database = await openDatabase({ databaseUrl: null, dataDir, databaseTimeout: 900_000, log })
  closing.defer(() => database.close())
  const { sql } = database
  const own = await newAccount(sql, 'own')
  const other = await newAccount(sql, 'other')
  let stored = 0
  for (const count of counts.length > 0 ? counts : defaultCounts) {
    await withoutIndexes(sql, async () => {
      for (const accountId of [own, other]) await fill(sql, accountId, stored, count)
    })
    stored = count
    const rows = []
    for (const kind of Object.keys(kinds)) rows.push(await measure(sql, own, kind))
    console.log(`\n${count} persons in the account, ${count} in another one`)
    printTable(rows)
    console.log(await costsOf(sql, own))
  }
  console.log(await memoryOfPlans())
}

async function newAccount(sql: Sql, slug: string): Promise<AccountId> {
  const { id } = await createAccount(sql, { name: slug, slug, config: { homeCountry: 'DE' }, newId, now: Date.now() })
  return id
}

/** Common and rare names, a number each, an address for half of them, a company for a quarter. The first ones have a company of their own. */
async function fill(sql: Sql, accountId: AccountId, from: number, to: number): Promise<void> {
  await sql`
    insert into persons (id, account_id, type, first_name, last_name, email, phone_number, company_name)
    select lpad(to_hex(n), 12, '0') || '-' || ${accountId.slice(-12)}::text, ${accountId}, 'customer',
      first[1 + (random() * random() * cardinality(first))::int % cardinality(first)],
      case when n % 2 = 0 then last[1 + (random() * random() * cardinality(last))::int % cardinality(last)] else initcap(rare) end,
      case when n % 2 = 1 then rare || '.' || n % 1000 || '@example.com' end,
      '+49170' || 1000000 + (n::bigint * 7919) % 9000000,
      case when n < 2000 then 'Ancientown' when n % 4 = 0 then initcap(substr(rare, 3)) || ' GmbH' end
    from (
      select n, ${firstNames.split(' ')}::text[] as first, ${lastNames.split(' ')}::text[] as last,
        s[1 + n % 40] || s[1 + (n / 40) % 40] || s[1 + (n / 1600) % 40] || s[1 + (random() * 39)::int] as rare
      from generate_series(${from}::int, ${to - 1}::int) n, (select ${syllables.split(' ')}::text[] as s) given) made`
}

/** To fill in minutes rather than in an hour; the same indexes are made again. */
async function withoutIndexes(sql: Sql, work: () => Promise<void>): Promise<void> {
  const indexes = await sql<{ indexname: string; indexdef: string }[]>`
    select indexname, indexdef from pg_indexes where tablename = 'persons' and indexdef like '%USING gin%'`
  for (const { indexname } of indexes) await sql.unsafe(`drop index ${indexname}`)
  await work()
  for (const { indexdef } of indexes) await sql.unsafe(indexdef)
  await sql.unsafe('analyze persons')
}

async function measure(sql: Sql, accountId: AccountId, kind: string): Promise<Record<string, string>> {
  const took: number[] = []
  let found = 0
  const some = await sql<PersonFacts[]>`
    select * from persons where account_id = ${accountId} and phone_number is not null order by random() limit ${queriesOfKind}`
  const cpuBefore = await readPostgresCpu(sql)
  for (const person of some) {
    const query = PersonQuery.parse({ query: kinds[kind]?.(person) })
    const before = performance.now()
    found += (await listPersons(sql, accountId, query)).length
    took.push(performance.now() - before)
  }
  const cpu = ((await readPostgresCpu(sql)) - cpuBefore) / some.length
  const ms = (share: number): string => quantile(took, share).toFixed(1)
  return {
    query: kind,
    least: ms(0),
    'CPU of Postgres': cpu.toFixed(1),
    p50: ms(0.5),
    'p95 ms': ms(0.95),
    most: ms(1),
    'found each': (found / queriesOfKind).toFixed(1),
  }
}

async function costsOf(sql: Sql, accountId: AccountId): Promise<string> {
  const took: number[] = []
  for (let index = 0; index < storedOneByOne; index++) {
    const request = { type: 'lead', firstName: random.pick(firstNames.split(' ')), lastName: rareName() } as const
    const before = performance.now()
    await createPerson(sql, { accountId, request, newId, now: Date.now() })
    took.push(performance.now() - before)
  }
  const sizes = await sql<{ name: string; size: string }[]>`
    select relname as name, pg_size_pretty(pg_relation_size(oid)) as size from pg_class
    where relname in ('persons', 'persons_by_trigrams', 'persons_by_pairs') order by relname`
  const weighed = sizes.map(({ name, size }) => `${name} ${size}`).join(', ')
  return `one more person: p50 ${quantile(took, 0.5).toFixed(1)} ms, p95 ${quantile(took, 0.95).toFixed(1)} ms; ${weighed}`
}

/** In a process of its own, which loads nothing else. */
async function memoryOfPlans(): Promise<string> {
  const script = `
    const used = () => (gc(), process.memoryUsage())
    const before = used()
    const { parsePhoneNumberFromString } = await import('libphonenumber-js/max')
    parsePhoneNumberFromString('+4930123456').isValid()
    const after = used()
    console.log(JSON.stringify({ heap: after.heapUsed - before.heapUsed, resident: after.rss - before.rss }))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', '--input-type=module', '-e', script])
  const { heap, resident } = JSON.parse(stdout) as { heap: number; resident: number }
  const mb = (bytes: number): string => (bytes / 2 ** 20).toFixed(1)
  return `libphonenumber-js/max: ${mb(heap)} MB of heap, ${mb(resident)} MB resident`
}

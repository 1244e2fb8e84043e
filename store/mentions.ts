/**
 * Owns where a person is named besides the person's own calls: rows of other calls, in which the naming text is replaced, and everything else that the
 * account has, which is counted and stays.
 */
import type { AccountId, CallId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import { removeCallWords, renewCallWords } from './call-words.ts'
import { isOver } from './delete-calls.ts'
import type { Sql, Transaction } from './sql.ts'
import { textColumnsOf } from './text-columns.ts'

export type Finder = {
  /** A regular expression for the database, in any case of letters, that finds at least what `names` does. */
  readonly coarse: string
  readonly names: (text: string) => boolean
  /** The text without the person. */
  readonly redacted: (text: string) => string
  /** Everything in it, names of fields too. */
  readonly redactedJson: (json: Json) => Json
}

/** What calls are told in: the column with the call's id, what tells its rows apart, and what numbers them within a call. */
const tablesOfCalls = [
  { table: 'calls', callId: 'id', keys: ['id'], number: null },
  { table: 'call_events', callId: 'call_id', keys: ['call_id', 'seq'], number: 'seq' },
  { table: 'transcript_turns', callId: 'call_id', keys: ['call_id', 'turn_index'], number: 'turn_index' },
  { table: 'call_messages', callId: 'call_id', keys: ['call_id', 'seq'], number: 'seq' },
  { table: 'deliveries', callId: 'call_id', keys: ['id'], number: null },
] as const

/** Rows of a call that are searched as one text. */
const rowsAtOnce = 30

const queryCanceled = '57014'

type Place = (typeof tablesOfCalls)[number]

/** A number is one or none. */
const numberColumns = ['from_number', 'to_number']

type TextColumns = Readonly<Record<string, readonly string[]>>

/** Of the tables that calls are told in, as they are now. */
export async function findTextColumns(sql: Sql): Promise<TextColumns> {
  const found = tablesOfCalls.map(async ({ table }) => [table, await textColumnsOf(sql, table)] as const)
  return Object.fromEntries(await Promise.all(found))
}

/** In these calls, as far as they are over; how many rows named the person. A row is written by itself. */
export async function redactMentions(
  sql: Sql,
  callIds: readonly CallId[],
  finder: Finder,
  columns: TextColumns,
): Promise<number> {
  let rows = 0
  for (const place of tablesOfCalls) {
    const texts = columns[place.table] ?? []
    const naming = await callsThatMayName(sql, place, callIds, { ...finder, texts })
    if (naming.length === 0) continue
    const isTalk = place.table === 'transcript_turns'
    // Before: whoever goes on behind a break finds no turn any more that names the person, and would not come back to the words.
    if (isTalk) await removeCallWords(sql, naming)
    rows += await redactIn(sql, place, naming, { ...finder, texts })
    if (isTalk) await renewCallWords(sql, naming)
  }
  const { count } = await sql`
    update delivery_attempts set response_excerpt = null where response_excerpt ~* ${finder.coarse}
      and delivery_id in (select id from deliveries where call_id = any(${[...callIds]}::text[]))`
  return rows + count
}

type Search = Finder & { readonly texts: readonly string[] }

/** Most calls name nobody, and to begin a search takes as long as to search a row: the rows of a call are searched together first. */
async function callsThatMayName(
  sql: Sql,
  { table, callId, number }: Place,
  callIds: readonly CallId[],
  { coarse, texts }: Search,
): Promise<CallId[]> {
  const id = sql(callId)
  const part = number === null ? sql`${id}` : sql`${id}, ${sql(number)} / ${rowsAtOnce}::int`
  const text = sql.unsafe(texts.map((name) => `"${name}"`).join(', '))
  const rows = await sql<{ id: CallId }[]>`
    select distinct ${id} as id from (
      select ${id} from ${sql(table)} where ${id} = any(${[...callIds]}::text[])
      group by ${part} having string_agg(concat_ws(' ', ${text}), ' ') ~* ${coarse}) as naming`
  return rows.map(({ id }) => id)
}

async function redactIn(sql: Sql, place: Place, callIds: readonly CallId[], finder: Search): Promise<number> {
  const { table, keys } = place
  const callId = sql(place.callId)
  const rows = await sql<{ row: Record<string, Json> }[]>`
    select to_jsonb(found) as row from ${sql(table)} found
    where found.${callId} = any(${[...callIds]}::text[]) and found::text ~* ${finder.coarse}
      and exists (select from calls where calls.id = found.${callId} and ${isOver(sql)})`
  if (rows.length === 0) return 0
  const columns = finder.texts.filter((name) => !(keys as readonly string[]).includes(name))
  let redacted = 0
  for (const { row } of rows) {
    const changes = columns.flatMap((name) => changeOf(name, row[name] ?? null, finder))
    if (changes.length === 0) continue
    redacted += 1
    // The row as it is but for the columns that are changed, with the types of the table.
    const changed = Object.fromEntries(changes)
    const names = sql.unsafe(changes.map(([name]) => `"${name}" = changed."${name}"`).join(', '))
    const isRow = sql.unsafe(keys.map((key) => `"${table}"."${key}" = changed."${key}"`).join(' and '))
    await sql`
      update ${sql(table)} set ${names}
      from jsonb_populate_record(null::${sql(table)}, ${sql.json({ ...row, ...changed })}) changed where ${isRow}`
  }
  return redacted
}

function changeOf(name: string, value: Json, finder: Finder): [string, Json][] {
  const next = typeof value === 'string' ? redactedText(name, value, finder) : finder.redactedJson(value)
  return JSON.stringify(next) === JSON.stringify(value) ? [] : [[name, next]]
}

function redactedText(name: string, text: string, { redacted, redactedJson }: Finder): string | null {
  const next = redacted(text)
  if (next === text) return text
  if (numberColumns.includes(name)) return null
  return name === 'body' ? JSON.stringify(redactedJson(JSON.parse(text) as Json)) : next
}

/** Searched by itself, or not an account's to look through. */
const passedOver = [
  ...tablesOfCalls.map(({ table }) => table as string),
  // Copies of what is in documents.
  'passages',
  'document_files',
  'document_jobs',
  'jobs',
  'web_sessions',
  'idempotency_keys',
  'api_keys',
  'erasures',
  'call_refusals',
  // Of what was said, and written anew with it.
  'call_words',
]
/** Rows that are looked through in one statement. */
const pageRows = 1_000

/** How many rows of each other table of the account still name the person. */
export async function countRemaining(
  sql: Sql,
  accountId: AccountId,
  finder: Finder,
): Promise<{ table: string; rows: number }[]> {
  const tables = await sql<Table[]>`
    select table_name as name, column_name as account_column, key from information_schema.columns
    join information_schema.tables using (table_schema, table_name),
    lateral (
      select array_agg(part.column_name::text order by ordinal_position) as key from information_schema.key_column_usage as part
      join information_schema.table_constraints as named using (constraint_schema, constraint_name)
      where constraint_type = 'PRIMARY KEY' and part.table_schema = columns.table_schema and part.table_name = columns.table_name) as keys
    where table_schema = current_schema() and table_type = 'BASE TABLE' and table_name <> all(${passedOver}::text[])
      and (column_name = 'account_id' or (table_name = 'accounts' and column_name = 'id'))
    order by table_name`
  const counts: { table: string; rows: number }[] = []
  for (const table of tables) {
    const rows = await countIn(sql, table, accountId, finder)
    if (rows > 0) counts.push({ table: table.name, rows })
  }
  return counts
}

type Table = { readonly name: string; readonly accountColumn: string; readonly key: readonly string[] }
type PageRow = { readonly key: Json; readonly text: string | null }

/** By the primary key, so that a statement has no more to look through however many rows there are. */
async function countIn(sql: Sql, table: Table, accountId: AccountId, finder: Finder): Promise<number> {
  let [count, limit] = [0, pageRows]
  let after: Json = null
  for (;;) {
    const page: PageRow[] | null = await readPage(sql, table, { accountId, after, limit, coarse: finder.coarse }).catch(
      tooLarge,
    )
    if (page === null && limit > 1) {
      limit = Math.ceil(limit / 10)
      continue
    }
    // What cannot be looked through within the time of a query may name the person.
    const rows: PageRow[] = page ?? (await readPage(sql, table, { accountId, after, limit, coarse: null }))
    count += page === null ? rows.length : rows.filter(({ text }) => text !== null && finder.names(text)).length
    if (rows.length < limit) return count
    after = rows.at(-1)?.key ?? null
  }
}

type Page = {
  readonly accountId: AccountId
  /** Key of the row before; null: from the first. */
  readonly after: Json
  readonly limit: number
  /** Null: no text is read. */
  readonly coarse: string | null
}

/** `text` of the rows that may name the person. */
function readPage(
  sql: Sql,
  { name, accountColumn, key }: Table,
  { accountId, after, limit, coarse }: Page,
): Promise<PageRow[]> {
  const ofKey = (row: string) => sql.unsafe(key.map((part) => `${row}."${part}"`).join(', '))
  const told = sql.unsafe(key.map((part) => `'${part}', found."${part}"`).join(', '))
  const isNaming = coarse === null ? sql`false` : sql`found::text ~* ${coarse}`
  const isBehind = after === null ? sql`true` : sql`(${ofKey('found')}) > (${ofKey('last')})`
  return sql<PageRow[]>`
    select jsonb_build_object(${told}) as key, case when ${isNaming} then found::text end as text
    from jsonb_populate_record(null::${sql(name)}, ${sql.json(after ?? {})}) as last, lateral (
      select * from ${sql(name)} found where found.${sql(accountColumn)} = ${accountId} and ${isBehind}
      order by ${ofKey('found')} limit ${limit}) as found
    order by ${ofKey('found')}`
}

/** Null: too much to look through within the time of a query. */
function tooLarge(error: unknown): null {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code === 'QUERY_DEADLINE' || code === queryCanceled) return null
  throw error
}

/** Refused calls of the account that name the person; how many were deleted. */
export async function deleteNamingRefusals(sql: Sql, accountId: AccountId, finder: Finder): Promise<number> {
  const rows = await sql<{ id: string; text: string }[]>`
    select id, concat_ws(' ', calling, called, details) as text from call_refusals where account_id = ${accountId}`
  const ids = rows.flatMap(({ id, text }) => (finder.names(text) ? [id] : []))
  const { count } = await sql`delete from call_refusals where account_id = ${accountId} and id = any(${ids}::text[])`
  return count
}

/** Of calls that wait for their user's word: nobody is called any more who is erased. */
export async function deleteNamingConfirmations(
  sql: Sql | Transaction,
  accountId: AccountId,
  finder: Finder,
): Promise<void> {
  const rows = await sql<{ id: string; text: string }[]>`
    select id, concat_ws(' ', summary, calls) as text from confirmations where account_id = ${accountId}`
  const ids = rows.flatMap(({ id, text }) => (finder.names(text) ? [id] : []))
  await sql`delete from confirmations where account_id = ${accountId} and id = any(${ids}::text[])`
}

/** An Idempotency-Key is the account's own text. Without it a request may be done again, as after 24 hours. */
export async function deleteNamingKeys(sql: Sql | Transaction, accountId: AccountId, finder: Finder): Promise<number> {
  const rows = await sql<{ key: string }[]>`
    select key from idempotency_keys where account_id = ${accountId} and key ~* ${finder.coarse}`
  const keys = rows.flatMap(({ key }) => (finder.names(key) ? [key] : []))
  const { count } =
    await sql`delete from idempotency_keys where account_id = ${accountId} and key = any(${keys}::text[])`
  return count
}

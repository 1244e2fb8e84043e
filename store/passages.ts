/** Owns writing the passages of documents: a revision of them piece by piece, which nobody sees before its document names it. */
import { Buffer } from 'node:buffer'
import type { AccountId, DocumentId } from '../model/ids.ts'
import type { Vector } from '../model/knowledge.ts'
import type { Sql } from './sql.ts'

/** A part of a text that makes sense by itself, and the headings it stands below, one a line. */
export type PassageText = { readonly heading: string; readonly text: string }

export type NewPassages = {
  readonly accountId: AccountId
  readonly documentId: DocumentId
  readonly revision: number
  /** Of the first of them. */
  readonly place: number
  readonly title: string
  /** Of a name that `dictionaryOf` gave. */
  readonly dictionary: string
  readonly passages: readonly PassageText[]
  /** One for each of them. */
  readonly vectors: readonly Vector[]
}

const piece = 1_000
const isGone = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === '23503'

export async function nextRevision(sql: Sql): Promise<number> {
  const [row] = await sql<{ revision: number }[]>`select nextval('document_revisions') as revision`
  return row?.revision ?? 0
}

/** False: the document has been deleted. */
export async function insertPassages(sql: Sql, given: NewPassages): Promise<boolean> {
  const { accountId, documentId, revision, place, title, dictionary, passages, vectors } = given
  const headings = passages.map(({ heading }) => heading)
  const texts = passages.map(({ text }) => text)
  const hex = vectors.map((vector) => Buffer.from(vector.buffer, vector.byteOffset, vector.length).toString('hex'))
  try {
    await sql`
      insert into passages (revision, place, account_id, document_id, dictionary, title, heading, text, vector)
      select ${revision}::bigint, ${place}::int + no::int - 1, ${accountId}::text, ${documentId}::text, ${dictionary}::text, ${title}::text,
        heading, text, decode(vector, 'hex')
      from unnest(${headings}::text[], ${texts}::text[], ${hex}::text[]) with ordinality as given (heading, text, vector, no)`
    return true
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

/** Of former revisions, and of one whose process died before it was complete. What the index has put off is done at once: searches would read it. */
export async function sweepPassages(sql: Sql, documentId: DocumentId): Promise<void> {
  for (let left = piece; left === piece;) {
    const { count } = await sql`
      delete from passages where ctid = any(array(
        select passages.ctid from passages join documents on documents.id = document_id
        where document_id = ${documentId} and passages.revision is distinct from documents.revision limit ${piece}))`
    left = count
  }
}

export async function settleIndex(sql: Sql): Promise<void> {
  await sql`select gin_clean_pending_list('passages_lexemes'::regclass)`
}

/** The text search configuration for a language, by its English name: `de-AT` is read by `german`. `simple` where there is none. */
export async function dictionaryOf(sql: Sql, language: string | null): Promise<string> {
  const code = /^[a-z]{2,3}(?=-|$)/i.exec(language ?? '')?.[0]
  if (code === undefined) return 'simple'
  const [name = ''] = new Intl.DisplayNames(['en'], { type: 'language' }).of(code)?.split(' ') ?? []
  const rows = await sql`
    select from pg_ts_config where cfgname = ${name.toLowerCase()} and cfgnamespace = 'pg_catalog'::regnamespace`
  return rows.length > 0 ? name.toLowerCase() : 'simple'
}

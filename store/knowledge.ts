/**
 * Owns searching what a worker knows: passages of its documents, ranked by Postgres' full text search. Passages are cut while searching,
 * so that a changed document counts at once; how much text one search looks at is bounded.
 */
import type { AccountId, DocumentId, WorkerId } from '../model/ids.ts'
import { scriptTagOf } from './documents.ts'
import type { Sql } from './sql.ts'

export type Passage = {
  readonly documentId: DocumentId
  readonly title: string
  readonly text: string
  /** 0–1, to compare the passages of one search with each other. */
  readonly score: number
}

export type KnowledgeQuery = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  /** BCP 47: of the documents and the words. */
  readonly language: string
  readonly words: readonly string[]
  readonly limit: number
}

/** A cut goes to the next blank within `slack`: a passage is at most both together. */
const passageStep = 1_120
const slack = 80
/** A text without any blank line is cut into these first: where a place lies in a long text costs Postgres all that is before it. */
const blockLength = 20 * passageStep
/** A paragraph as short as a headline belongs to what follows it. */
const maxHeadline = 80
/** Characters; the newest documents go first. About 1 s of a database core. */
const maxText = 4_000_000
const maxWords = 32
/** Longer ones are no words, and the parser of Postgres takes quadratic time over them: both sides are cut. */
const maxWord = 64

const scripts = [scriptTagOf('inbound'), scriptTagOf('outbound')]

/** Has the worker any document in use that is no call script? */
export async function hasKnowledge(sql: Sql, accountId: AccountId, workerId: WorkerId): Promise<boolean> {
  const rows = await sql`
    select from documents join document_workers on document_id = documents.id and document_workers.account_id = documents.account_id
    where documents.account_id = ${accountId} and worker_id = ${workerId}
      and is_active and status = 'completed' and not tag_keys && ${scripts}::text[]
    limit 1`
  return rows.length > 0
}

/** Passages that have any of the words (in any of their forms, where Postgres knows the language), the best first. `signal` ends the search. */
export async function searchKnowledge(sql: Sql, query: KnowledgeQuery, signal: AbortSignal): Promise<Passage[]> {
  const searching = rankPassages(sql, query)
  const cancel = (): void => searching.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    return [...(await searching)]
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

function rankPassages(sql: Sql, query: KnowledgeQuery) {
  const words = query.words.slice(0, maxWords).map((word) => word.slice(0, maxWord))
  return sql<Passage[]>`
    with language as (
      select coalesce(
        (select oid::regconfig from pg_ts_config where cfgname = ${dictionaryOf(query.language)} and cfgnamespace = 'pg_catalog'::regnamespace),
        'simple'::regconfig) as config
    ), wanted as materialized (
      select string_agg(parsed::text, ' | ')::tsquery as query
      from language, unnest(${words}::text[]) as word, plainto_tsquery(config, word) as parsed
      where numnode(parsed) > 0
    ), known as (
      select id, title, content, sum(length(content)) over (order by updated_at desc, id desc) as read from documents
      where account_id = ${query.accountId} and is_active and status = 'completed' and not tag_keys && ${scripts}::text[]
        and id in (select document_id from document_workers where account_id = ${query.accountId} and worker_id = ${query.workerId})
    ), paragraphs as materialized (
      select id, title, place, paragraph,
        coalesce(lag(length(paragraph)) over (partition by id order by place) <= ${maxHeadline}, false) as headed
      from known, regexp_split_to_table(left(content, ${maxText}), '\\r?\\n[ \\t\\r]*\\n\\s*') with ordinality as parts (paragraph, place)
      where read - length(content) < ${maxText}
    ), grouped as (
      select *, count(*) filter (where not headed) over (partition by id order by place) as part from paragraphs
    ), parts as materialized (
      select id, title, part, string_agg(paragraph, E'\\n' order by place) as text from grouped group by id, title, part
    ), blocks as materialized (
      select id, title, part, block, substr(text, block + 1, ${blockLength}) as text
      from parts, generate_series(0, length(text) - 1, ${blockLength}) as block
    ), passages as materialized (
      select id, title, part, block, cut, trim(E' \\t\\r\\n' from substr(text, start + 1, stop - start)) as text
      from blocks, generate_series(0, length(text) - 1, ${passageStep}) as cut, lateral (
        select cut + case when cut = 0 then 0 else regexp_instr(substr(text, cut + 1, ${slack}), '\\s') end as start,
          cut + ${passageStep} + regexp_instr(substr(text, cut + ${passageStep} + 1, ${slack}), '\\s') as stop) as ends
    ), vectors as materialized (
      select passages.*, setweight(to_tsvector(config, title), 'C') || setweight(to_tsvector(config,
        case when text ~ ${`\\S{${maxWord + 1}}`} then regexp_replace(text, ${`(\\S{${maxWord}})`}, '\\1 ', 'g') else text end), 'A') as vector
      from passages, language
    ), ranked as (
      select *, ts_rank('{0.1, 0.2, 0.4, 1}', vector, query, 33) as score from vectors, wanted where vector @@ query
    )
    select id as document_id, title, text, score from ranked
    order by score desc, id, part, block, cut limit ${query.limit}`
}

/** Postgres names its dictionaries by the English name of the language: `de-AT` reads `german`. */
function dictionaryOf(language: string): string {
  const code = /^[a-z]{2,3}(?=-|$)/i.exec(language)?.[0]
  if (code === undefined) return 'simple'
  const [name = ''] = new Intl.DisplayNames(['en'], { type: 'language' }).of(code)?.split(' ') ?? []
  return name.toLowerCase()
}

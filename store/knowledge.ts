/**
 * Owns searching what a worker knows: passages of its documents by their words (Postgres' full text search) and by their vectors, both lists made
 * one by the places that a passage has in them (reciprocal rank fusion).
 */
import type { Embedder, Knowledge, Passage, Vector } from '../model/knowledge.ts'
import type { Log } from '../model/log.ts'
import { createDatabaseVectors } from './database-vectors.ts'
import { knownDocuments } from './known-documents.ts'
import { createPassageVectors, type Place, type Whose } from './passage-vectors.ts'
import type { Sql } from './sql.ts'

const maxWords = 32
/** Longer ones are no words, and the parser of Postgres takes quadratic time over them. */
const maxWord = 64
/** Passages of one word that are looked at. What has only words that so many have is found by its vector. */
const perWord = 1_000
/** Of each of both lists. */
const candidates = 50
/** How much the first places of a list are worth more than the next ones (Cormack et al. 2009). */
const rankConstant = 60
const lists = 2

type Deps = {
  readonly sql: Sql
  readonly embedder: Embedder
  /** Of vectors that are kept in memory. */
  readonly maxBytes: number
  /** Of pgvector, as `openDatabase` found it. */
  readonly vectorSchema?: string | null
  readonly log: Log
}

export function createKnowledge({ sql, embedder, maxBytes, vectorSchema: schema = null, log }: Deps): Knowledge {
  const inMemory = () => createPassageVectors({ sql, embedder, maxBytes })
  const vectors = schema === null ? inMemory() : createDatabaseVectors({ sql, embedder, schema, inMemory, log })
  const vectorOf = async (text: string, signal: AbortSignal | undefined): Promise<Vector | null> => {
    try {
      const [vector = null] = await embedder.embed([text], signal)
      return vector
    } catch (error) {
      if (signal?.aborted !== true) log.warn('a question has no vector, and is searched by its words alone', { error })
      return null
    }
  }
  return {
    async search({ accountId, workerId, query, limit }, signal) {
      const words = wordsOf(query)
      if (words.length === 0) return []
      const whose = { accountId, workerId }
      const found = unlessEnded(findMatches(sql, whose, words), signal)
      const findNear = async (): Promise<Place[]> => {
        const vector = await vectorOf(query, signal)
        return vector ? vectors.nearest(whose, found, vector, candidates) : []
      }
      const [{ matches, isMeant }, near] = await Promise.all([found, findNear()])
      if (!isMeant) return []
      return quote(sql, whose, fuse([matches, near]).slice(0, limit))
    },
  }
}

const wordsOf = (query: string): string[] =>
  [...new Set(query.match(/[\p{L}\p{N}\p{M}]+/gu))].slice(0, maxWords).map((word) => word.slice(0, maxWord))

type Cancellable<Value> = Promise<Value> & { cancel(): void }

/** A statement that nobody waits for any more is ended. */
async function unlessEnded<Row, Value>(
  asked: { readonly rows: Cancellable<readonly Row[]>; readonly value: (rows: readonly Row[]) => Value },
  signal: AbortSignal | undefined,
): Promise<Value> {
  const cancel = (): void => asked.rows.cancel()
  signal?.addEventListener('abort', cancel, { once: true })
  try {
    return asked.value(await asked.rows)
  } finally {
    signal?.removeEventListener('abort', cancel)
  }
}

type Matches = { readonly matches: Place[]; readonly print: string; readonly isMeant: boolean }
type MatchRow = { readonly matches: [number, number][]; readonly print: string; readonly isMeant: boolean }

/**
 * Passages that have any of the words, in any of their forms where Postgres knows the language of the document. A word counts by how rare it is
 * in the worker's documents. `isMeant`: not all of the words are such as say nothing. `is true` keeps Postgres, which does not know how many documents
 * there are, from reading the index of words once for each of them.
 */
function findMatches(sql: Sql, whose: Whose, words: readonly string[]) {
  const scope = `a:${whose.accountId}`
  const rows = sql<MatchRow[]>`
    with known as materialized (${knownDocuments(sql, whose)}
    ), wanted as materialized (
      select no, dictionary, parsed, (array_to_tsvector(array[${scope}])::text)::tsquery && parsed as scoped
      from (select distinct dictionary from known) as dictionaries, unnest(${[...words]}::text[]) with ordinality as given (word, no),
        plainto_tsquery(('pg_catalog.' || dictionary)::regconfig, word) as parsed
      where numnode(parsed) > 0
    ), matched as materialized (
      select no, revision, place from wanted, lateral (
        select revision, place from passages
        where lexemes @@ scoped and passages.dictionary = wanted.dictionary and (revision in (select revision from known)) is true
        limit ${perWord}) as found
    ), weights as (
      select no, ln(1 + ${perWord}::float8 / count(*)) as weight from matched group by no
    ), weighed as materialized (
      select revision, place, sum(weight) as weight from matched join weights using (no) group by revision, place
      order by weight desc, revision, place limit ${8 * candidates}
    ), ranked as (
      select revision, place, row_number() over (order by weight desc,
        ts_rank('{0.1, 0.2, 0.4, 1}', lexemes, (select string_agg(parsed::text, ' | ')::tsquery from wanted
          where wanted.dictionary = passages.dictionary), 1) desc, revision, place) as rank
      from weighed join passages using (revision, place)
    )
    select (select coalesce(jsonb_agg(jsonb_build_array(revision, place) order by rank), '[]') from ranked where rank <= ${candidates}) as matches,
      exists (select from wanted) as is_meant,
      (select count(*) || ' ' || coalesce(bit_xor(hashint8extended(revision, 0)), 0) from known) as print`
  const value = ([row]: readonly MatchRow[]): Matches => ({
    matches: (row?.matches ?? []).map(([revision, place]) => ({ revision, place })),
    print: row?.print ?? '',
    isMeant: row?.isMeant ?? false,
  })
  return { rows, value }
}

type Scored = Place & { readonly score: number }

/** 1 for what is first in both lists. */
function fuse(ranked: readonly (readonly Place[])[]): Scored[] {
  const found = new Map<string, { place: Place; score: number }>()
  for (const list of ranked)
    for (const [rank, place] of list.entries()) {
      const key = `${place.revision} ${place.place}`
      const score = (rankConstant + 1) / (rankConstant + 1 + rank) / lists
      const before = found.get(key)
      if (before) before.score += score
      else found.set(key, { place, score })
    }
  return [...found.values()]
    .map(({ place, score }) => ({ ...place, score }))
    .toSorted((one, other) => other.score - one.score)
}

/** As they stand at this moment: what was deleted, switched off or replaced meanwhile is left out. */
async function quote(sql: Sql, whose: Whose, scored: readonly Scored[]): Promise<Passage[]> {
  if (scored.length === 0) return []
  const rows = await sql<(Omit<Passage, 'score'> & { no: number })[]>`
    select known.id as document_id, known.title, no::int,
      case when heading = '' then text else heading || E'\n' || text end as text
    from unnest(${scored.map(({ revision }) => String(revision))}::text[], ${scored.map(({ place }) => place)}::int[])
      with ordinality as wanted (revision, place, no)
    join passages on passages.revision = wanted.revision::bigint and passages.place = wanted.place
    join (${knownDocuments(sql, whose)}) as known on known.revision = passages.revision
    order by no`
  return rows.map(({ no, ...passage }) => ({ ...passage, score: scored[no - 1]?.score ?? 0 }))
}

/**
 * Owns the vectors of passages in memory, and which of them are nearest to a question. They are kept by document as it was ingested (its revision),
 * which never changes: what a worker has at this moment every search reads from the database, so that several processes see the same. A search
 * yields every millisecond or two: the same thread sends sound.
 */
import { setImmediate } from 'node:timers/promises'
import type { AccountId, WorkerId } from '../model/ids.ts'
import type { Embedder, Vector } from '../model/knowledge.ts'
import type { Sql } from './sql.ts'
import { knownDocuments } from './known-documents.ts'

/** A passage: its revision, and its place in it. */
export type Place = { readonly revision: number; readonly place: number }
export type Whose = { readonly accountId: AccountId; readonly workerId: WorkerId }

/** What the database knows at this moment. `print` changes whenever the documents of the worker do. `isMeant`: a search makes sense. */
export type Current = { readonly print: string; readonly isMeant: boolean }

export type PassageVectors = {
  /** The nearest first. Begins before `current` is known, with the documents of the search before. */
  nearest(whose: Whose, current: Promise<Current>, vector: Vector, limit: number): Promise<Place[]>
  /** Bytes that are kept. */
  size(): number
}

type Block = {
  readonly rows: number
  readonly parts: number
  readonly vectors: Int8Array
  readonly norms: Float32Array
  usedAt: number
}
type View = { readonly print: string; readonly revisions: readonly number[] }
type Known = { readonly revision: number; readonly count: number }

/** Rows that one statement reads, and workers whose lists are kept. */
const rowsAtOnce = 4_000
const maxViews = 2_000
/** Parts of vectors that are multiplied in one go: about a millisecond. */
const partsAtOnce = 1_000_000

export function createPassageVectors(deps: {
  readonly sql: Sql
  readonly embedder: Pick<Embedder, 'name' | 'floor'>
  /** Of the newest documents of a worker where they are more; the others are found by their words alone. */
  readonly maxBytes: number
}): PassageVectors {
  const { sql, embedder, maxBytes } = deps
  const blocks = new Map<number, Block>()
  const views = new Map<string, View>()
  let [bytes, tick] = [0, 0]

  async function load(wanted: readonly Known[]): Promise<void> {
    for (const batch of batchesOf(wanted)) {
      const rows = await sql<{ revision: number; rows: number; vectors: Uint8Array }[]>`
        select revision, count(*)::int as rows, string_agg(vector, ''::bytea order by place) as vectors from passages
        where revision = any(${batch.map(String)}::text[]::bigint[]) and vector is not null group by revision`
      for (const row of rows) keep(row.revision, blockOf(row, tick))
      await setImmediate()
    }
  }
  function keep(revision: number, block: Block): void {
    drop(revision)
    blocks.set(revision, block)
    bytes += sizeOf(block)
  }
  function drop(revision: number): void {
    const block = blocks.get(revision)
    if (block && blocks.delete(revision)) bytes -= sizeOf(block)
  }
  /** Those that no search asked for since the longest time. */
  function makeRoom(): void {
    if (bytes <= maxBytes) return
    for (const [revision] of [...blocks].toSorted(([, one], [, other]) => one.usedAt - other.usedAt)) {
      if (bytes <= maxBytes * 0.9) return
      drop(revision)
    }
  }
  /** As far as all of its vectors are here. */
  function seenView(whose: Whose): View | null {
    const seen = views.get(keyOf(whose))
    return seen?.revisions.every((revision) => blocks.has(revision)) ? seen : null
  }
  async function loadView(whose: Whose, parts: number): Promise<View> {
    const key = keyOf(whose)
    const { print, known } = await findKnown(sql, whose, embedder.name)
    const fitting = withinBytes(known, parts, maxBytes)
    await load(fitting.filter(({ revision }) => !blocks.has(revision)))
    const view = { print, revisions: fitting.map(({ revision }) => revision) }
    views.delete(key)
    views.set(key, view)
    if (views.size > maxViews) views.delete(views.keys().next().value ?? '')
    return view
  }
  async function nearestIn({ revisions }: View, vector: Vector, limit: number): Promise<Place[]> {
    tick += 1
    const best = createBest(limit, embedder.floor)
    const question = questionOf(vector)
    const rowsInOneGo = Math.max(1, Math.floor(partsAtOnce / Math.max(1, question.places.length)))
    let left = rowsInOneGo
    for (const revision of revisions) {
      const block = blocks.get(revision)
      if (block?.parts !== vector.length) continue
      block.usedAt = tick
      for (let row = 0; row < block.rows;) {
        const until = Math.min(block.rows, row + left)
        compare(block, question, { from: row, until }, (place, score) => {
          if (score >= best.least()) best.add({ revision, place }, score)
        })
        left -= until - row
        row = until
        if (left > 0) continue
        left = rowsInOneGo
        await setImmediate()
      }
    }
    return best.places()
  }
  return {
    async nearest(whose, current, vector, limit) {
      const seen = seenView(whose)
      const early = seen && nearestIn(seen, vector, limit)
      const { print, isMeant } = await current
      const found = await early
      if (!isMeant) return []
      if (found && seen?.print === print) return found
      const places = await nearestIn(await loadView(whose, vector.length), vector, limit)
      makeRoom()
      return places
    },
    size: () => bytes,
  }
}

async function findKnown(sql: Sql, whose: Whose, embedder: string): Promise<{ print: string; known: Known[] }> {
  const [row] = await sql<{ print: string; known: [number, number][] }[]>`
    with known as materialized (${knownDocuments(sql, whose)})
    select count(*) || ' ' || coalesce(bit_xor(hashint8extended(revision, 0)), 0) as print,
      coalesce(jsonb_agg(jsonb_build_array(revision, passage_count) order by revision desc) filter (where embedder = ${embedder}), '[]') as known
    from known`
  const known = (row?.known ?? []).map(([revision, count]) => ({ revision, count }))
  return { print: row?.print ?? '', known }
}

function withinBytes(known: readonly Known[], parts: number, maxBytes: number): Known[] {
  let left = maxBytes
  return known.filter(({ count }) => {
    const size = count * (parts + 4)
    if (size > left) return false
    left -= size
    return true
  })
}

function batchesOf(known: readonly Known[]): number[][] {
  const batches: number[][] = []
  let rows = Infinity
  for (const { revision, count } of known) {
    if (rows + count > rowsAtOnce) {
      batches.push([])
      rows = 0
    }
    batches.at(-1)?.push(revision)
    rows += count
  }
  return batches
}

function blockOf({ rows, vectors }: { rows: number; vectors: Uint8Array }, usedAt: number): Block {
  const own = new Int8Array(vectors)
  const parts = own.length / rows
  const norms = new Float32Array(rows)
  for (let row = 0; row < rows; row += 1) norms[row] = normOf(own, row * parts, parts)
  return { rows, parts, vectors: own, norms, usedAt }
}

const keyOf = ({ accountId, workerId }: Whose): string => `${accountId} ${workerId}`
const sizeOf = ({ vectors, norms }: Block): number => vectors.byteLength + norms.byteLength

function normOf(parts: Int8Array, from: number, count: number): number {
  let sum = 0
  for (let at = from; at < from + count; at += 1) sum += parts[at]! * parts[at]!
  return Math.sqrt(sum)
}

/** The parts that are not 0: few of a question whose vector is lexical. */
type Question = { readonly places: Int32Array; readonly parts: Int32Array; readonly norm: number }

function questionOf(vector: Vector): Question {
  const places = Int32Array.from(vector.keys()).filter((place) => vector[place] !== 0)
  return { places, parts: places.map((place) => vector[place]!), norm: normOf(vector, 0, vector.length) }
}

function compare(
  { vectors, norms, parts: count }: Block,
  { places, parts, norm }: Question,
  { from, until }: { readonly from: number; readonly until: number },
  found: (place: number, score: number) => void,
): void {
  if (norm === 0) return
  for (let row = from; row < until; row += 1) {
    let sum = 0
    // As whole numbers of 32 bits, which no vector of this size exceeds.
    for (let at = 0, begin = row * count; at < places.length; at += 1)
      sum = (sum + Math.imul(vectors[begin + places[at]!]!, parts[at]!)) | 0
    const length = norms[row]! * norm
    if (length > 0) found(row, sum / length)
  }
}

function createBest(limit: number, floor: number) {
  const best: { place: Place; score: number }[] = []
  let least = floor
  return {
    add(place: Place, score: number): void {
      if (score < least || (best.length === limit && score === least)) return
      let at = best.length
      while (at > 0 && best[at - 1]!.score < score) at -= 1
      best.splice(at, 0, { place, score })
      if (best.length > limit) best.pop()
      if (best.length === limit) least = Math.max(floor, best.at(-1)!.score)
    },
    least: () => least,
    places: () => best.map(({ place }) => place),
  }
}

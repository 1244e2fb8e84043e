/** Owns what a worker knows as others ask for it: passages of its documents that answer a question, and the port behind which texts become vectors. */
import { z } from 'zod'
import type { AccountId, DocumentId, WorkerId } from './ids.ts'

export const defaultPassages = 5
export const maxPassages = 20

export const KnowledgeRequest = z.strictObject({
  query: z.string().min(1).max(1000),
  limit: z.number().int().min(1).max(maxPassages).optional(),
})

export const KnowledgePassage = z.object({
  documentId: z.string(),
  title: z.string(),
  /** Word for word, below its headings. */
  text: z.string(),
  /** 0–1, to compare the passages of one search with each other. */
  score: z.number(),
})

export type Passage = Readonly<z.infer<typeof KnowledgePassage>> & { readonly documentId: DocumentId }

export type KnowledgeQuery = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  readonly query: string
  readonly limit: number
}

/** The one search for engines, REST and whoever else asks. */
export type Knowledge = {
  /** The best first. `signal` ends the search. */
  search(query: KnowledgeQuery, signal?: AbortSignal): Promise<Passage[]>
}

/** A vector in whole numbers, its largest part ±127: only its direction counts. */
export type Vector = Int8Array<ArrayBuffer>

/** Makes vectors of texts, near each other for texts that are about the same. */
export type Embedder = {
  /** Vectors of one name can be compared with each other, and with no others. */
  readonly name: string
  /** A cosine below this says nothing. */
  readonly floor: number
  /** Whether it is a matter of computing alone, and is done where documents are read. */
  readonly isLocal: boolean
  /** In the order of the texts. Throws when they cannot be had now. */
  embed(texts: readonly string[], signal?: AbortSignal): Promise<Vector[]>
}

const largest = 127

export function toVector(parts: ArrayLike<number>): Vector {
  let most = 0
  for (let at = 0; at < parts.length; at += 1) most = Math.max(most, Math.abs(parts[at] ?? 0))
  const vector = new Int8Array(parts.length)
  if (most > 0)
    for (let at = 0; at < parts.length; at += 1) vector[at] = Math.round(((parts[at] ?? 0) / most) * largest)
  return vector
}

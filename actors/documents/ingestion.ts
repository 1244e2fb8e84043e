/**
 * Owns how documents become something to search: looks for those that wait, has them read, stores their passages and vectors, and makes them the
 * ones that are searched when all are there. Looks once a second, so that a document of any process, or of before a restart, is found. docs/contract/rest.md "Documents".
 */
import type { Clock } from '../../model/clock.ts'
import { scriptTags, type DocumentType } from '../../model/document.ts'
import type { AccountId, NewId, NodeId } from '../../model/ids.ts'
import type { Embedder } from '../../model/knowledge.ts'
import type { Log } from '../../model/log.ts'
import type { ScriptCheck } from '../../model/script-check.ts'
import { readFile } from '../../store/document-files.ts'
import {
  askForVectors,
  claimDocuments,
  completeReading,
  failReading,
  findUnread,
  holdClaim,
  retryReading,
  type Completion,
  type DocumentJob,
  type UnreadDocument,
} from '../../store/document-jobs.ts'
import { dictionaryOf, insertPassages, nextRevision, settleIndex, sweepPassages } from '../../store/passages.ts'
import type { Sql } from '../../store/sql.ts'
import { lookingFor, type DueWatch } from '../rounds/due-watch.ts'
import { createRounds, type Rounds } from '../rounds/rounds.ts'
import { createReader, type Reader } from './reader.ts'
import { Unreadable } from './unreadable.ts'

export type Ingestion = Rounds & {
  /** Documents with vectors of another embedder are asked for again. */
  start(): Promise<void>
}

type Deps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly nodeId: NodeId
  readonly newId: NewId
  readonly embedder: Embedder
  /** Absent: it looks once a second by itself. */
  readonly dueWatch?: Pick<DueWatch, 'on'>
  readonly checkScript: () => Promise<ScriptCheck>
  readonly reader?: Reader
  /** Before the document is searched. What it does not manage searches make up for. */
  readonly storeVectors?: (revision: number) => Promise<void>
}

const pollEvery = 1_000
/** Longer than a document is read, and held again with each piece. */
const lease = 120_000
/** After the last of them a document is given up: half a day for embeddings that cannot be had. */
const retryDelays = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 10_800_000, 21_600_000]

/** The document is somebody else's now, or gone: what was read of it counts no more. */
class Overtaken extends Error {
  override readonly name = 'Overtaken'
}
/** Embeddings cannot be had now. */
class NoVectors extends Error {
  override readonly name = 'NoVectors'
}

export function createIngestion(deps: Deps): Ingestion {
  const { sql, clock, log, nodeId, newId, embedder } = deps
  const reader = deps.reader ?? createReader({ clock })
  let closed = false
  let after: AccountId | null = null

  const ingest = async (job: DocumentJob): Promise<void> => {
    const found = await findUnread(sql, job)
    if (!found) return
    await sweepPassages(sql, job.documentId)
    const text = await reader.read(await sourceOf(sql, job, found), found.title, embedder.isLocal)
    const content = text === null ? {} : { content: text }
    const completion = isScript(found)
      ? { ...content, isWrong: text !== null && (await deps.checkScript())(text).length > 0 }
      : { ...content, passages: await storePassages({ ...deps, reader }, job, found) }
    await complete(job, completion)
  }
  const complete = async (job: DocumentJob, completion: Completion): Promise<void> => {
    // Whoever has it by now sweeps, when it has written its own.
    if (!(await completeReading(sql, job, completion))) return
    await sweepPassages(sql, job.documentId)
    await settleIndex(sql)
    log.info('a document is ready', { documentId: job.documentId, passages: completion.passages?.count ?? 0 })
  }
  const failed = async (job: DocumentJob, error: unknown): Promise<void> => {
    if (error instanceof Overtaken) return
    // Whoever comes next begins anew, at once.
    if (closed) return retryReading(sql, job, clock.now())
    if (error instanceof Unreadable) {
      log.info('a document cannot be read', { documentId: job.documentId, reason: error.reason, error: error.cause })
      await failReading(sql, job, error.reason)
      return
    }
    const delay = retryDelays[job.attempts - 1]
    log.warn('a document could not be ingested', { documentId: job.documentId, attempts: job.attempts, error })
    if (delay !== undefined) return retryReading(sql, job, clock.now() + delay)
    await failReading(sql, job, error instanceof NoVectors ? 'embeddings_unavailable' : 'gave_up')
  }
  const look = async (): Promise<boolean> => {
    const by = { nodeId, claim: newId(), now: clock.now(), lease, after }
    const [job] = closed ? [] : await claimDocuments(sql, by, 1)
    if (!job) return false
    after = job.accountId
    // Its process died over it again and again: perhaps because of it.
    if (job.attempts > retryDelays.length + 1) await failReading(sql, job, 'gave_up')
    else await ingest(job).catch((error: unknown) => failed(job, error))
    return true
  }
  const rounds = createRounds({ clock, log, look, ...lookingFor(deps.dueWatch, ['documents'], pollEvery) })
  return {
    ...rounds,
    async start() {
      await askForVectors(sql, embedder.name, clock.now())
      rounds.wake()
    },
    async close() {
      closed = true
      // What is being read is broken off.
      await reader.close()
      await rounds.close()
    },
  }
}

const isScript = ({ tagKeys }: UnreadDocument): boolean => scriptTags.some((tag) => tagKeys.includes(tag))

async function sourceOf(sql: Sql, { documentId }: DocumentJob, { type, content, hasFile }: UnreadDocument) {
  // Stored by this service, which knows its types.
  const known = type as DocumentType
  if (hasFile) return { kind: 'file', type: known, bytes: await readFile(sql, documentId) } as const
  return { kind: 'text', type: known, text: content } as const
}

/** Nobody sees them before the document names their revision. */
async function storePassages(
  { sql, clock, log, reader, embedder, storeVectors }: Deps & { readonly reader: Reader },
  job: DocumentJob,
  { title, language }: UnreadDocument,
): Promise<NonNullable<Completion['passages']>> {
  const { accountId, documentId } = job
  const [revision, dictionary] = await Promise.all([nextRevision(sql), dictionaryOf(sql, language)])
  let count = 0
  for (;;) {
    const { passages, vectors: own } = await reader.next()
    if (passages.length === 0) {
      await storeVectors?.(revision).catch((error: unknown) => log.warn('vectors wait for a search', { error }))
      return { revision, count, dictionary, embedder: embedder.name }
    }
    const texts = passages.map(({ heading, text }) => `${title}\n${heading}\n${text}`)
    const vectors = own ?? (await vectorsOf(embedder, texts))
    if (!(await holdClaim(sql, job, clock.now() + lease))) throw new Overtaken()
    const place = count
    const isThere = await insertPassages(sql, {
      accountId,
      documentId,
      revision,
      place,
      title,
      dictionary,
      passages,
      vectors,
    })
    if (!isThere) throw new Overtaken()
    count += passages.length
  }
}

async function vectorsOf(embedder: Embedder, texts: readonly string[]) {
  try {
    return await embedder.embed(texts)
  } catch (error) {
    throw new NoVectors('no embeddings can be had now', { cause: error })
  }
}

/**
 * Owns the work that documents wait for: one row for each that is to be read, claimed under a lease by one node at a time, and its end. A document
 * that is changed meanwhile is asked for anew: whoever has the former claim finds it gone, and nothing of what it read counts.
 */
import { scriptTags, type DocumentFailure } from '../model/document.ts'
import type { AccountId, DocumentId, NodeId } from '../model/ids.ts'
import type { Sql, Transaction } from './sql.ts'

export type DocumentJob = {
  readonly documentId: DocumentId
  readonly accountId: AccountId
  /** Counts this claim: 1 at the first. */
  readonly attempts: number
  readonly claim: string
}

/** What reading takes. */
export type UnreadDocument = {
  readonly type: string
  readonly title: string
  readonly content: string
  readonly tagKeys: readonly string[]
  readonly hasFile: boolean
  /** BCP 47, of its oldest worker; null: nobody's. */
  readonly language: string | null
}

export type Completion = {
  /** Absent: it has no passages. */
  readonly passages?: {
    readonly revision: number
    readonly count: number
    readonly dictionary: string
    readonly embedder: string
  }
  /** Of a file; absent: it stays. */
  readonly content?: string
  /** It is switched off. */
  readonly isWrong?: boolean
}

export async function askForReading(
  tx: Sql | Transaction,
  job: Omit<DocumentJob, 'attempts' | 'claim'> & { now: number },
) {
  const { accountId, documentId, now } = job
  await tx`
    insert into document_jobs (document_id, account_id, run_at) values (${documentId}, ${accountId}, ${now})
    on conflict (document_id) do update set run_at = excluded.run_at, attempts = 0, claim = null, claimed_by = null, claimed_until = null`
}

/** Of a worker whose language has changed: its documents are read by the dictionary of the new one. */
export async function askForReadingOf(tx: Sql | Transaction, accountId: AccountId, workerId: string, now: number) {
  await tx`
    insert into document_jobs (document_id, account_id, run_at)
    select id, account_id, ${now}::timestamptz from documents
    where account_id = ${accountId} and revision is not null
      and id in (select document_id from document_workers where worker_id = ${workerId})
    on conflict (document_id) do update set run_at = excluded.run_at, attempts = 0, claim = null, claimed_by = null, claimed_until = null`
}

/** Those that have vectors of another embedder than this one. How many. */
export async function askForVectors(sql: Sql, embedder: string, now: number): Promise<number> {
  const asked = await sql`
    insert into document_jobs (document_id, account_id, run_at)
    select id, account_id, ${now}::timestamptz from documents
    where revision is not null and embedder is distinct from ${embedder} and not tag_keys && ${[...scriptTags]}::text[]
    on conflict (document_id) do nothing`
  return asked.count
}

/** Of each account the one that waits longest first, so that one with many holds up no other. */
export function claimDocuments(
  sql: Sql,
  by: {
    readonly nodeId: NodeId
    readonly claim: string
    readonly now: number
    readonly lease: number
    /** Whose turn it was before: others go first. */
    readonly after: AccountId | null
  },
  limit: number,
): Promise<DocumentJob[]> {
  const { nodeId, claim, now, lease, after } = by
  const isDue = sql`run_at <= ${now} and (claimed_until is null or claimed_until <= ${now})`
  return sql<DocumentJob[]>`
    with due as materialized (
      select document_id from (
        select document_id, account_id, run_at, row_number() over (partition by account_id order by run_at, document_id) as turn
        from document_jobs where ${isDue}) waiting
      order by turn, account_id is not distinct from ${after}, run_at, document_id limit ${limit}
    ), free as materialized (
      select document_id from document_jobs where document_id in (select document_id from due) and ${isDue} for update skip locked)
    update document_jobs set claim = ${claim}, claimed_by = ${nodeId}, claimed_until = ${now + lease}, attempts = attempts + 1
    where document_id in (select document_id from free)
    returning document_id, account_id, attempts, claim`
}

/** False: it is somebody else's by now, or was asked for anew, or there is no such document any more. */
export async function holdClaim(sql: Sql, { documentId, claim }: DocumentJob, until: number): Promise<boolean> {
  const held =
    await sql`update document_jobs set claimed_until = ${until} where document_id = ${documentId} and claim = ${claim}`
  return held.count === 1
}

export async function retryReading(sql: Sql, { documentId, claim }: DocumentJob, runAt: number): Promise<void> {
  await sql`
    update document_jobs set run_at = ${runAt}, claim = null, claimed_by = null, claimed_until = null
    where document_id = ${documentId} and claim = ${claim}`
}

export async function findUnread(sql: Sql, { accountId, documentId }: DocumentJob): Promise<UnreadDocument | null> {
  const [row] = await sql<UnreadDocument[]>`
    select type, title, content, tag_keys, exists (select from document_files where document_id = documents.id) as has_file,
      (select language from document_workers join workers on workers.id = worker_id
        where document_id = documents.id and deleted_at is null order by workers.created_at, workers.id limit 1) as language
    from documents where account_id = ${accountId} and id = ${documentId}`
  return row ?? null
}

/** From now on the new passages are searched, in place of the former ones. False: it counts no more. */
export function completeReading(sql: Sql, job: DocumentJob, completion: Completion): Promise<boolean> {
  const nothing = { revision: null, count: 0, dictionary: null, embedder: null }
  const { passages = nothing, content = null, isWrong = false } = completion
  return endReading(
    sql,
    job,
    (tx) => tx`
    update documents set status = 'completed', failed_reason = null, revision = ${passages.revision}, passage_count = ${passages.count},
      dictionary = ${passages.dictionary}, embedder = ${passages.embedder}, content = coalesce(${content}::text, content), is_active = is_active and not ${isWrong}
    where id = ${job.documentId}`,
  )
}

/** What was searched until now goes on to be. One that only was to be read again stays completed. */
export function failReading(sql: Sql, job: DocumentJob, reason: DocumentFailure): Promise<boolean> {
  return endReading(
    sql,
    job,
    (tx) => tx`
    update documents set status = 'failed', failed_reason = ${reason} where id = ${job.documentId} and status = 'queued'`,
  )
}

/** The document is locked before its job, as by who changes it. */
async function endReading(
  sql: Sql,
  { documentId, claim }: DocumentJob,
  write: (tx: Transaction) => Promise<unknown>,
): Promise<boolean> {
  return sql.begin(async (tx) => {
    await tx`select from documents where id = ${documentId} for no key update`
    const { count } = await tx`delete from document_jobs where document_id = ${documentId} and claim = ${claim}`
    if (count === 0) return false
    await write(tx)
    await tx`delete from document_files where document_id = ${documentId}`
    return true
  })
}

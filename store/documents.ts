/**
 * Owns documents: texts of an account, tagged by keys and linked to workers. A call script is a document that is tagged
 * `inbound_call_script` or `outbound_call_script`; it is in use while it is active and completed. docs/contract/rest.md "Documents".
 */
import type { Direction } from '../model/call.ts'
import {
  fileNameOf,
  type DocumentChange,
  type DocumentFacts,
  type DocumentQuery,
  type DocumentRequest,
  type DocumentStatus,
} from '../model/document.ts'
import { toId, type AccountId, type DocumentId, type NewId, type WorkerId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { OutboundCallScript } from '../model/worker-resource.ts'
import { givenColumns } from './given-columns.ts'
import { requireRoom } from './room.ts'
import type { Sql, Transaction } from './sql.ts'
import { namedWorkers, requireWorkers } from './workers.ts'

export type NewDocument = {
  readonly accountId: AccountId
  readonly title: string
  readonly fileName: string
  readonly type?: string | undefined
  readonly content: string
  readonly isActive?: boolean | undefined
  readonly status: DocumentStatus
  readonly tagKeys?: readonly string[] | undefined
  /** Of the same account: the foreign key refuses any other. */
  readonly workerIds?: readonly WorkerId[] | undefined
  readonly newId: NewId
  readonly now: number
}

export type ChangedDocument = {
  readonly accountId: AccountId
  readonly documentId: DocumentId
  readonly change: DocumentChange
  readonly now: number
}

/** Of all scripts of a worker together, in characters; a document has half of it at most. */
const maxScriptLength = 1_000_000

export const scriptTagOf = (direction: Direction): string => `${direction}_call_script`

export const isCallScript = ({ tagKeys }: Pick<DocumentFacts, 'tagKeys'>): boolean =>
  tagKeys.includes(scriptTagOf('inbound')) || tagKeys.includes(scriptTagOf('outbound'))

/** One statement: a document is never there without its links. */
export async function createDocument(sql: Sql | Transaction, document: NewDocument): Promise<DocumentId> {
  const { accountId, title, fileName, content, status, now } = document
  const { type = 'txt', isActive = true, tagKeys = [], workerIds = [] } = document
  const id = document.newId<'document'>()
  await sql`
    with document as (
      insert into documents (id, account_id, title, file_name, type, content, is_active, status, tag_keys, created_at, updated_at)
      values (${id}, ${accountId}, ${title}, ${fileName}, ${type}, ${content}, ${isActive}, ${status},
        ${[...tagKeys]}::text[], ${now}, ${now}))
    insert into document_workers (account_id, document_id, worker_id)
    select ${accountId}::text, ${id}::text, unnest(${[...workerIds]}::text[])`
  return id
}

/** By file name; the newest first where several have the same. */
export function listOutboundCallScripts(
  sql: Sql | Transaction,
  accountId: AccountId,
  workerId: WorkerId,
): Promise<OutboundCallScript[]> {
  return sql<OutboundCallScript[]>`
    select documents.id, file_name from documents
    join document_workers on document_id = documents.id and document_workers.account_id = documents.account_id
    where documents.account_id = ${accountId} and worker_id = ${workerId}
      and is_active and status = 'completed' and ${scriptTagOf('outbound')} = any(tag_keys)
    order by file_name collate "C", created_at desc, documents.id desc`
}

/**
 * The script of a worker for one direction, null when it has none. All that are in use, in the order of their file names with a blank
 * line between (`1-greeting.txt`, `2-questions.txt`); of one file name only the newest, so that uploading it again replaces it.
 */
export async function findCallScript(
  sql: Sql | Transaction,
  accountId: AccountId,
  workerId: WorkerId,
  direction: Direction,
): Promise<string | null> {
  const rows = await sql<{ content: string }[]>`
    select content from (
      select content, file_name, sum(length(content)) over (order by file_name collate "C") as length from (
        select distinct on (file_name collate "C") content, file_name from documents
        join document_workers on document_id = documents.id and document_workers.account_id = documents.account_id
        where documents.account_id = ${accountId} and worker_id = ${workerId}
          and is_active and status = 'completed' and ${scriptTagOf(direction)} = any(tag_keys)
        order by file_name collate "C", created_at desc, documents.id desc) newest) counted
    where length <= ${maxScriptLength} order by file_name collate "C"`
  return scriptOf(rows)
}

/**
 * What a call pinned when it was created, in the order of file names; null when nothing of it is left. What was deleted or switched off
 * since is left out; what is just being worked in again is not.
 */
export async function findPinnedScript(
  sql: Sql | Transaction,
  accountId: AccountId,
  scriptIds: readonly DocumentId[],
): Promise<string | null> {
  const rows = await sql<{ content: string }[]>`
    select content from documents where account_id = ${accountId} and id = any(${[...scriptIds]}) and is_active
    order by file_name collate "C", id`
  return scriptOf(rows)
}

const scriptOf = (rows: readonly { readonly content: string }[]): string | null =>
  rows.length === 0 ? null : rows.map((row) => row.content.trim()).join('\n\n')

/** As one document is told; lists leave the text out. */
export type DocumentWithText = DocumentFacts & { readonly content: string }

/** Types whose text is what somebody wrote; of any other it is made from a file. docs/contract/mcp.md "Document". */
const writtenTypes = ['txt', 'mdoc']

/**
 * A text as the API and MCP send it. Nothing of it is processed later, so it is in use at once. Throws Problem VALIDATION_FAILED for workers
 * the account has not got.
 */
export async function writeDocument(
  sql: Sql | Transaction,
  { accountId, request, newId, now }: { accountId: AccountId; request: DocumentRequest; newId: NewId; now: number },
): Promise<DocumentWithText> {
  const { title, fileName = fileNameOf(title), text: content, isActive = true, tagKeys: tags = [] } = request
  const workerIds = await requireWorkers(sql, accountId, namedWorkers(request.workerIds ?? []))
  await requireRoom(sql, accountId, 'documents')
  const row = {
    accountId,
    title,
    fileName,
    isActive,
    status: 'completed',
    tagKeys: [...new Set(tags)],
    workerIds,
  } as const
  const id = await createDocument(sql, { ...row, content, newId, now })
  return { id, ...row, type: 'txt', content, createdAt: now, updatedAt: now }
}

export async function findDocument(
  sql: Sql | Transaction,
  accountId: AccountId,
  documentId: DocumentId,
): Promise<DocumentWithText | null> {
  const [row] = await sql<DocumentWithText[]>`
    select id, account_id, title, file_name, type, status, is_active, tag_keys, created_at, updated_at, content,
      array(select worker_id from document_workers where document_id = documents.id order by worker_id) as worker_ids
    from documents where account_id = ${accountId} and id = ${documentId}`
  return row ?? null
}

/** In the order they were made; those of one worker, or with one tag. */
export async function listDocuments(
  sql: Sql | Transaction,
  accountId: AccountId,
  { workerId, tagKey }: DocumentQuery,
): Promise<DocumentFacts[]> {
  const scope = workerId === undefined ? null : toId<'worker'>(workerId)
  // A filter finds nothing where a path would name nothing.
  if (workerId !== undefined && scope === null) return []
  return sql<DocumentFacts[]>`
    select id, account_id, title, file_name, type, status, is_active, tag_keys, created_at, updated_at,
      array(select worker_id from document_workers where document_id = documents.id order by worker_id) as worker_ids
    from documents
    where account_id = ${accountId} and (${tagKey ?? null}::text is null or ${tagKey ?? null} = any(tag_keys))
      and (${scope}::text is null or exists (
        select 1 from document_workers where document_id = documents.id and worker_id = ${scope}))
    order by created_at, id`
}

/** Null: the account has no such document. Throws Problem VALIDATION_FAILED for workers, and for text of a type that is not written. */
export async function changeDocument(
  sql: Sql,
  { accountId, documentId, change, now }: ChangedDocument,
): Promise<DocumentWithText | null> {
  const { text: content, tagKeys: tags, workerIds, ...plain } = change
  const found = await findDocument(sql, accountId, documentId)
  if (!found) return null
  if (content !== undefined && !writtenTypes.includes(found.type)) throw notWritten(found.type)
  const workers = workerIds && (await requireWorkers(sql, accountId, namedWorkers(workerIds)))
  const columns = givenColumns({ ...plain, content, tagKeys: tags && [...new Set(tags)], updatedAt: now })
  return sql.begin(async (tx) => {
    await tx`update documents set ${tx(columns)} where account_id = ${accountId} and id = ${documentId}`
    if (workers) await linkWorkers(tx, accountId, documentId, workers)
    return findDocument(tx, accountId, documentId)
  })
}

/** False: there was none. A script in use is a document like any other: its workers lose it. */
export async function deleteDocument(
  sql: Sql | Transaction,
  accountId: AccountId,
  documentId: DocumentId,
): Promise<boolean> {
  const deleted = await sql`delete from documents where account_id = ${accountId} and id = ${documentId}`
  return deleted.count === 1
}

/** Replaces the whole list, of a document that may have been deleted meanwhile. */
async function linkWorkers(
  tx: Transaction,
  accountId: AccountId,
  documentId: DocumentId,
  workers: readonly WorkerId[],
): Promise<void> {
  await tx`delete from document_workers where account_id = ${accountId} and document_id = ${documentId}`
  await tx`
    insert into document_workers (account_id, document_id, worker_id)
    select account_id, id, unnest(${[...workers]}::text[]) from documents
    where account_id = ${accountId} and id = ${documentId}`
}

const notWritten = (type: string): Problem =>
  new Problem('VALIDATION_FAILED', `The text of a document of type ${type} cannot be replaced.`, [
    { path: 'text', message: `is for ${writtenTypes.join(' and ')} only` },
  ])

/**
 * Owns documents: texts of an account, tagged by keys and linked to workers. A call script is a document that is tagged
 * `inbound_call_script` or `outbound_call_script`; it is in use while it is active and completed. mcp-server.md, Document.
 */
import type { Direction } from '../model/call.ts'
import type { AccountId, DocumentId, NewId, WorkerId } from '../model/ids.ts'
import type { OutboundCallScript } from '../model/worker-resource.ts'
import type { Sql, Transaction } from './sql.ts'

export type DocumentStatus = 'queued' | 'completed' | 'failed'

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

export const scriptTagOf = (direction: Direction): string => `${direction}_call_script`

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
    select distinct on (file_name collate "C") content from documents
    join document_workers on document_id = documents.id and document_workers.account_id = documents.account_id
    where documents.account_id = ${accountId} and worker_id = ${workerId}
      and is_active and status = 'completed' and ${scriptTagOf(direction)} = any(tag_keys)
    order by file_name collate "C", created_at desc, documents.id desc`
  return rows.length === 0 ? null : rows.map((row) => row.content.trim()).join('\n\n')
}

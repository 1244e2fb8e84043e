/**
 * Owns documents: texts of an account, tagged by keys and linked to workers. A call script is a document that is tagged
 * `inbound_call_script` or `outbound_call_script`; it is in use while it is active and completed. docs/contract/rest.md "Documents".
 */
import type { Direction } from '../model/call.ts'
import {
  fileNameOf,
  scriptTags,
  typeOfFile,
  WrittenType,
  type DocumentChange,
  type DocumentFacts,
  type DocumentQuery,
  type DocumentRequest,
  type DocumentStatus,
  type DocumentType,
  type UploadRequest,
} from '../model/document.ts'
import { toId, type AccountId, type DocumentId, type NewId, type WorkerId } from '../model/ids.ts'
import { cursorOf } from '../model/paging.ts'
import { Problem } from '../model/problem.ts'
import type { ScriptCheck } from '../model/script-check.ts'
import type { OutboundCallScript } from '../model/worker-resource.ts'
import { writeFile } from './document-files.ts'
import { askForReading } from './document-jobs.ts'
import { keepVersion } from './document-versions.ts'
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
  readonly checkScript?: ScriptCheck | undefined
  readonly now: number
}

/** Of all scripts of a worker together, in characters; a document has half of it at most. */
const maxScriptLength = 1_000_000

export const scriptTagOf = (direction: Direction): string => `${direction}_call_script`

export const isCallScript = ({ tagKeys }: Pick<DocumentFacts, 'tagKeys'>): boolean =>
  scriptTags.some((tag) => tagKeys.includes(tag))

/** One statement, with its links (none to workers deleted meanwhile) and the work of reading it. Rejects where one is no worker of the account. */
export async function createDocument(sql: Sql | Transaction, document: NewDocument): Promise<DocumentId> {
  const { accountId, title, fileName, content, status, now } = document
  const { type = 'txt', isActive = true, tagKeys = [], workerIds = [] } = document
  const id = document.newId<'document'>()
  await sql`
    with document as (
      insert into documents (id, account_id, title, file_name, type, content, is_active, status, tag_keys, created_at, updated_at)
      values (${id}, ${accountId}, ${title}, ${fileName}, ${type}, ${content}, ${isActive}, ${status},
        ${[...tagKeys]}::text[], ${now}, ${now})
    ), job as (
      insert into document_jobs (document_id, account_id, run_at)
      select ${id}::text, ${accountId}::text, ${now}::timestamptz where ${!isCallScript({ tagKeys }) || !isWritten(type)}::boolean)
    insert into document_workers (account_id, document_id, worker_id)
    select ${accountId}::text, ${id}::text, named.id from unnest(${[...workerIds]}::text[]) as named (id)
    where not exists (select from workers where account_id = ${accountId} and id = named.id) or named.id in (
      select id from workers where account_id = ${accountId} and id = any(${[...workerIds]}::text[]) and deleted_at is null order by id for key share)`
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

/** In the order of the ids; what is gone is left out. */
export async function listTitles(
  sql: Sql | Transaction,
  accountId: AccountId,
  ids: readonly DocumentId[],
): Promise<{ id: DocumentId; title: string }[]> {
  if (ids.length === 0) return []
  return sql<{ id: DocumentId; title: string }[]>`
    select id, title from documents where account_id = ${accountId} and id = any(${[...ids]}::text[])
    order by array_position(${[...ids]}::text[], id)`
}

export type ScriptQuestion = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  readonly direction: Direction
}

export const keyOfScriptQuestion = ({ accountId, workerId, direction }: ScriptQuestion): string =>
  `${accountId} ${workerId} ${direction}`

/**
 * The scripts of workers for one direction each, by the keys of the questions; of one without there is nothing. All that are in use, in the order of
 * their file names with a blank line between (`1-greeting.txt`, `2-questions.txt`); of one file name only the newest, so that uploading it again
 * replaces it.
 */
export async function findCallScripts(
  sql: Sql | Transaction,
  questions: readonly ScriptQuestion[],
): Promise<ReadonlyMap<string, string>> {
  const [accounts, workers] = [questions.map(({ accountId }) => accountId), questions.map(({ workerId }) => workerId)]
  const rows = await sql<{ place: number; contents: string[] }[]>`
    select asked.place::int as place, script.contents
    from unnest(${accounts}::text[], ${workers}::text[], ${questions.map(({ direction }) => scriptTagOf(direction))}::text[])
      with ordinality as asked(account, worker, tag, place)
    cross join lateral (
      select array_agg(content order by file_name collate "C") as contents from (
        select content, file_name, sum(length(content)) over (order by file_name collate "C") as length from (
          select distinct on (file_name collate "C") content, file_name from documents
          join document_workers on document_id = documents.id and document_workers.account_id = documents.account_id
          where documents.account_id = asked.account and worker_id = asked.worker
            and is_active and status = 'completed' and asked.tag = any(tag_keys)
          order by file_name collate "C", created_at desc, documents.id desc) newest) counted
      where length <= ${maxScriptLength}) script
    where contents is not null`
  return new Map(
    rows.map(({ place, contents }) => [
      keyOfScriptQuestion(questions[place - 1] as ScriptQuestion),
      scriptOf(contents),
    ]),
  )
}

/** The same of one worker; null when it has none. */
export async function findCallScript(
  sql: Sql | Transaction,
  accountId: AccountId,
  workerId: WorkerId,
  direction: Direction,
): Promise<string | null> {
  const question = { accountId, workerId, direction }
  return (await findCallScripts(sql, [question])).get(keyOfScriptQuestion(question)) ?? null
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
  return rows.length === 0 ? null : scriptOf(rows.map(({ content }) => content))
}

const scriptOf = (contents: readonly string[]): string => contents.map((content) => content.trim()).join('\n\n')

/** As one document is told; lists leave the text out. */
export type DocumentWithText = DocumentFacts & { readonly content: string }

/** Of any other type the text is made from a file. docs/contract/mcp.md "Document". */
export const isWritten = (type: string): boolean => WrittenType.safeParse(type).success

type Writing<Request> = {
  readonly accountId: AccountId
  readonly request: Request
  /** Absent: scripts are not looked at. */
  readonly checkScript?: ScriptCheck | undefined
  readonly newId: NewId
  readonly now: number
}

/**
 * A text as the API and MCP send it. Knowledge is used once it has been read; a call script is in use at once, and off when it does not compile.
 * Throws Problem VALIDATION_FAILED for workers the account has not got.
 */
export async function writeDocument(
  sql: Sql | Transaction,
  { accountId, request, checkScript, newId, now }: Writing<DocumentRequest>,
): Promise<DocumentWithText> {
  const { title, text: content } = request
  const type = request.type ?? writtenTypeOf(request.fileName)
  const fileName = request.fileName ?? fileNameOf(title, type === 'mdoc' ? 'md' : type)
  const settings = await settingsOf(sql, accountId, request)
  const isScript = isCallScript(settings)
  const isActive = settings.isActive && !(isScript && isWrong(content, checkScript))
  const status = isScript ? 'completed' : 'queued'
  const row = { accountId, title, fileName, type, status, ...settings, isActive } as const
  const id = await createDocument(sql, { ...row, content, newId, now })
  return { id, ...row, failedReason: null, content, createdAt: now, updatedAt: now }
}

/** A file whose text is made later. `type` is what it claims to be. */
export async function uploadDocument(
  sql: Sql,
  file: { readonly fileName: string; readonly type: DocumentType; readonly bytes: Uint8Array<ArrayBuffer> },
  { accountId, request, newId, now }: Writing<UploadRequest>,
): Promise<DocumentWithText> {
  const { title = file.fileName, fileName = file.fileName } = request
  const settings = await settingsOf(sql, accountId, request)
  const row = { accountId, title, fileName, type: file.type, status: 'queued', ...settings } as const
  const id = (await sql.begin(async (tx) => {
    const documentId = await createDocument(tx, { ...row, content: '', newId, now })
    await writeFile(tx, { accountId, documentId }, file.bytes)
    await askForReading(tx, { accountId, documentId, now })
    return documentId
  })) as DocumentId
  return { id, ...row, failedReason: null, content: '', createdAt: now, updatedAt: now }
}

const writtenTypeOf = (fileName: string | undefined): WrittenType =>
  typeOfFile(fileName ?? '') === 'mdoc' ? 'mdoc' : 'txt'

const isWrong = (content: string, checkScript: ScriptCheck | undefined): boolean =>
  checkScript !== undefined && checkScript(content).length > 0

async function settingsOf(sql: Sql | Transaction, accountId: AccountId, request: UploadRequest) {
  const { isActive = true, tagKeys = [] } = request
  const workerIds = await requireWorkers(sql, accountId, namedWorkers(request.workerIds ?? []))
  await requireRoom(sql, accountId, 'documents')
  return { isActive, tagKeys: [...new Set(tagKeys)], workerIds }
}

export async function findDocument(
  sql: Sql | Transaction,
  accountId: AccountId,
  documentId: DocumentId,
): Promise<DocumentWithText | null> {
  const [row] = await sql<DocumentWithText[]>`
    select id, account_id, title, file_name, type, status, failed_reason, is_active, tag_keys, created_at, updated_at,
      content,
      array(select worker_id from document_workers where document_id = documents.id order by worker_id) as worker_ids
    from documents where account_id = ${accountId} and id = ${documentId}`
  return row ?? null
}

/** In the order they were made; those of one worker, or with one tag. */
export async function listDocuments(
  sql: Sql | Transaction,
  accountId: AccountId,
  { workerId, tagKey, limit, ...page }: DocumentQuery,
): Promise<DocumentFacts[]> {
  const scope = workerId === undefined ? null : toId<'worker'>(workerId)
  // A filter finds nothing where a path would name nothing.
  if (workerId !== undefined && scope === null) return []
  return sql<DocumentFacts[]>`
    select id, account_id, title, file_name, type, status, failed_reason, is_active, tag_keys, created_at, updated_at,
      array(select worker_id from document_workers where document_id = documents.id order by worker_id) as worker_ids
    from documents
    where account_id = ${accountId} and (${tagKey ?? null}::text is null or ${tagKey ?? null} = any(tag_keys))
      and (${scope}::text is null or exists (
        select 1 from document_workers where document_id = documents.id and worker_id = ${scope}))
      and id > ${cursorOf<'document'>(page) ?? ''}
    order by id limit ${limit === undefined ? null : limit + 1}`
}

/**
 * Knowledge with another text is queued, and searched as it was until it has been read anew. A call script is in use as soon as it is written, and
 * off when it does not compile. Null: the account has no such document. Throws Problem VALIDATION_FAILED for workers, and for text of a type that
 * is not written.
 */
export async function changeDocument(sql: Sql, given: ChangedDocument): Promise<DocumentWithText | null> {
  const { accountId, documentId, change, now } = given
  const { text: content, tagKeys: tags, workerIds, ...plain } = change
  return sql.begin(async (tx) => {
    await tx`select from documents where account_id = ${accountId} and id = ${documentId} for no key update`
    const found = await findDocument(tx, accountId, documentId)
    if (!found) return null
    const workers = workerIds && (await requireWorkers(tx, accountId, namedWorkers(workerIds)))
    if (content !== undefined && !isWritten(found.type)) throw notWritten(found.type)
    const tagKeys = tags && [...new Set(tags)]
    if (content !== undefined && content !== found.content && isCallScript(found))
      await keepVersion(tx, { accountId, documentId, content: found.content, savedAt: found.updatedAt })
    const columns = givenColumns({ ...plain, content, tagKeys, updatedAt: now, ...consequencesOf(found, given) })
    await tx`update documents set ${tx(columns)} where account_id = ${accountId} and id = ${documentId}`
    if (workers) await linkWorkers(tx, accountId, documentId, workers)
    if (mustBeRead(found, change)) await askForReading(tx, { accountId, documentId, now })
    return findDocument(tx, accountId, documentId)
  })
}

function consequencesOf(found: DocumentWithText, { change, checkScript }: ChangedDocument) {
  const { text, tagKeys = [...found.tagKeys] } = change
  const wasScript = isCallScript(found)
  const isUnread = !isWritten(found.type) && found.status !== 'completed'
  if (isUnread || (text === undefined && wasScript === isCallScript({ tagKeys }))) return {}
  if (!isCallScript({ tagKeys })) return { status: 'queued', failedReason: null }
  const isOff = isWrong(text ?? found.content, checkScript)
  return { status: 'completed', failedReason: null, ...(isOff && { isActive: false }) }
}

/** The title and the language of its workers are part of what is searched. */
function mustBeRead(
  found: DocumentWithText,
  { text, title, tagKeys = [...found.tagKeys], workerIds }: DocumentChange,
): boolean {
  const isScript = isCallScript({ tagKeys })
  if (isScript !== isCallScript(found)) return true
  return !isScript && (text !== undefined || title !== undefined || workerIds !== undefined)
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
    { path: 'text', message: `is for ${WrittenType.options.join(' and ')} only` },
  ])

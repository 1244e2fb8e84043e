/** Owns the tools of documents, call scripts among them. docs/contract/mcp.md "Document". */
import { z } from 'zod'
import { toIso, type Clock } from '../../model/clock.ts'
import {
  DocumentChange,
  DocumentQuery,
  DocumentRequest,
  DocumentStatus,
  type DocumentFacts,
} from '../../model/document.ts'
import type { AccountId, NewId } from '../../model/ids.ts'
import type { McpAccess, McpScope } from '../../model/mcp-access.ts'
import { Problem } from '../../model/problem.ts'
import { ScriptError, type ScriptCheck } from '../../model/script-check.ts'
import {
  changeDocument,
  deleteDocument,
  findDocument,
  isCallScript,
  listDocuments,
  writeDocument,
  type DocumentWithText,
} from '../../store/documents.ts'
import type { Sql } from '../../store/sql.ts'
import { requireWorkers } from '../../store/workers.ts'
import { camelFields } from '../snake-case.ts'
import { idGiven, noSuch, reachesAll, reachesWorker, workerGiven } from './reach.ts'
import { adminPrefix, defineMcpTool, hints, type McpTool } from './tool.ts'

export type DocumentToolDeps = {
  readonly sql: Sql
  readonly clock: Pick<Clock, 'now'>
  readonly newId: NewId
  readonly checkScript?: ScriptCheck
  /** What the tools of a worker are may have changed. */
  readonly toolsChanged: (accountId: AccountId) => void
}

/** Characters of a text that one answer tells. */
const maxText = 100_000
const maxErrors = 100

const bound: readonly McpScope[] = ['account_admin', 'admin']

const facts = {
  document_id: z.string(),
  title: z.string(),
  file_name: z.string(),
  type: z.string(),
  status: DocumentStatus.describe('It is used on calls only once it is completed.'),
  failed_reason: z.string().nullable(),
  is_active: z.boolean(),
  tag_keys: z.array(z.string()),
  worker_ids: z.array(z.string()),
  created_at: z.string(),
  updated_at: z.string(),
}
const DocumentSummary = z.object(facts)
const WrittenDocument = z.object({
  ...facts,
  script_errors: z
    .array(ScriptError)
    .optional()
    .describe('Of a call script: what the embedded engine cannot follow. It is stored switched off then.'),
})
const WholeDocument = z.object({
  ...WrittenDocument.shape,
  text: z.string().nullable().optional().describe('Null: it has to be read from its file first.'),
  truncated: z.boolean().optional().describe('True: the text is longer than what is told of it.'),
})

const DocumentId = z.string().describe('The id of the document, as list_documents tells it.')
const { tagKeys } = DocumentRequest.shape
const scriptTags = 'inbound_call_script or outbound_call_script makes it a call script.'

const reading = ({ sql, checkScript }: DocumentToolDeps): McpTool[] => [
  defineMcpTool({
    name: `${adminPrefix}list_documents`,
    title: 'List documents',
    description: 'Lists documents with their tags and linked workers, without their texts.',
    annotations: hints.reads,
    scopes: bound,
    input: z.strictObject({
      worker_id: DocumentQuery.shape.workerId.describe('Only those of this worker.'),
      tag_key: DocumentQuery.shape.tagKey.describe('Only those with this tag.'),
    }),
    output: z.object({ documents: z.array(DocumentSummary) }),
    async run({ worker_id: named, tag_key: tagKey }, { access }) {
      const workerId = reachesAll(access) ? named : workerGiven(access, named ?? access.workerId ?? '')
      const documents = await listDocuments(sql, access.accountId, { workerId, tagKey })
      return { content: { documents: documents.map((document) => toSummary(document, access)) } }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}get_document`,
    title: 'Get a document',
    description:
      'Tags, linked workers and text of a document. Long texts are cut at 100,000 characters, and truncated says so. Text of files is there once they are completed.',
    annotations: hints.reads,
    scopes: bound,
    input: z.strictObject({
      document_id: DocumentId,
      include_content: z.boolean().default(true).describe('False: without the text.'),
    }),
    output: WholeDocument,
    async run({ document_id, include_content }, { access }) {
      const document = await findReached(sql, access, document_id)
      const content = include_content ? textOf(document) : {}
      return { content: { ...toWritten(document, access, checkScript), ...content } }
    },
  }),
]

const writing = ({ sql, clock, newId, checkScript, toolsChanged }: DocumentToolDeps): McpTool[] => [
  defineMcpTool({
    name: `${adminPrefix}create_document`,
    title: 'Create a document',
    description:
      'Creates a text document. It is queued, and used on calls once it is completed. For a call script set worker_id and the tag of its direction.',
    annotations: hints.creates,
    scopes: bound,
    input: z.strictObject({
      title: DocumentRequest.shape.title,
      text: DocumentRequest.shape.text,
      worker_id: z
        .string()
        .optional()
        .describe('The worker that uses it; a call script is used by nobody without one.'),
      tag_keys: tagKeys.describe(scriptTags),
    }),
    output: WrittenDocument,
    async run({ title, text, worker_id: named, tag_keys }, { access }) {
      const { accountId } = access
      const id = reachesAll(access) ? named : workerGiven(access, named ?? access.workerId ?? '')
      const workerIds = await requireWorkers(sql, accountId, id === undefined ? [] : [{ path: 'worker_id', id }])
      const request = { title, text, tagKeys: tag_keys, workerIds }
      const document = await writeDocument(sql, { accountId, request, checkScript, newId, now: clock.now() })
      toolsChanged(accountId)
      return { content: toWritten(document, access, checkScript) }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}update_document`,
    title: 'Change a document',
    description:
      'Changes a document; only what is named changes. A new text (txt and mdoc only) is worked in again: poll get_document until it is completed. tag_keys replaces the whole set.',
    annotations: hints.changes,
    scopes: bound,
    input: z.strictObject({
      document_id: DocumentId,
      title: DocumentChange.shape.title,
      is_active: DocumentChange.shape.isActive.describe('False: it is not used, and stays.'),
      text: DocumentChange.shape.text,
      tag_keys: DocumentChange.shape.tagKeys.describe(`Replaces the whole set. ${scriptTags}`),
    }),
    output: WrittenDocument,
    async run({ document_id, ...named }, { access }) {
      const { accountId } = access
      const found = await findReached(sql, access, document_id)
      if (found.workerIds.some((id) => !reachesWorker(access, id))) throw shared()
      const change = camelFields(named) as DocumentChange
      const changed = { accountId, documentId: found.id, change, checkScript, now: clock.now() }
      const document = await changeDocument(sql, changed)
      if (!document) throw noSuch('document_id', 'document')
      toolsChanged(accountId)
      return { content: toWritten(document, access, checkScript) }
    },
  }),
  defineMcpTool({
    name: `${adminPrefix}delete_document`,
    title: 'Delete a document',
    description:
      'Deletes a document for good. If it is an active call script, its worker loses it: prefer update_document with is_active false.',
    annotations: hints.destroys,
    scopes: ['account_admin'],
    input: z.strictObject({ document_id: DocumentId }),
    output: z.object({ document_id: z.string(), deleted: z.boolean() }),
    async run({ document_id }, { access: { accountId } }) {
      const id = idGiven<'document'>(document_id, 'document_id', 'document')
      if (!(await deleteDocument(sql, accountId, id))) throw noSuch('document_id', 'document')
      toolsChanged(accountId)
      return { content: { document_id: id, deleted: true } }
    },
  }),
]

/** In the order of the contract. */
export const documentTools = (deps: DocumentToolDeps): McpTool[] => [...reading(deps), ...writing(deps)]

/** Throws Problem NOT_FOUND. One worker's grant reaches what is linked to it. */
async function findReached(sql: Sql, access: McpAccess, given: string): Promise<DocumentWithText> {
  const id = idGiven<'document'>(given, 'document_id', 'document')
  const document = await findDocument(sql, access.accountId, id)
  if (document && (reachesAll(access) || document.workerIds.some((worker) => reachesWorker(access, worker))))
    return document
  throw noSuch('document_id', 'document')
}

const shared = (): Problem =>
  new Problem('INSUFFICIENT_SCOPE', 'Other workers use this document too, and the grant is for one worker.', [
    { path: 'document_id', message: 'is linked to other workers' },
  ])

const toSummary = (document: DocumentFacts, access: McpAccess): z.infer<typeof DocumentSummary> => ({
  document_id: document.id,
  title: document.title,
  file_name: document.fileName,
  type: document.type,
  status: document.status,
  failed_reason: document.failedReason,
  is_active: document.isActive,
  tag_keys: [...document.tagKeys],
  worker_ids: document.workerIds.filter((id) => reachesWorker(access, id)),
  created_at: toIso(document.createdAt),
  updated_at: toIso(document.updatedAt),
})

function toWritten(document: DocumentWithText, access: McpAccess, checkScript: ScriptCheck | undefined) {
  const errors = checkScript && isCallScript(document) ? checkScript(document.content).slice(0, maxErrors) : []
  return { ...toSummary(document, access), ...(errors.length > 0 && { script_errors: [...errors] }) }
}

/** What is stored of a txt document is what somebody wrote; of all others it is made, and counts once that is done. */
function textOf({ type, status, content }: DocumentWithText) {
  if (type !== 'txt' && status !== 'completed') return { text: null, truncated: false }
  const text = cut(content)
  return { text, truncated: text.length < content.length }
}

/** Not between the halves of a surrogate pair. */
function cut(text: string): string {
  if (text.length <= maxText) return text
  const splits = /[\ud800-\udbff]/.test(text.charAt(maxText - 1)) && /[\udc00-\udfff]/.test(text.charAt(maxText))
  return text.slice(0, splits ? maxText - 1 : maxText)
}

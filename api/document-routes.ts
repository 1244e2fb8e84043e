/** Owns the routes of documents, call scripts among them. docs/contract/rest.md "Documents". */
import { createRoute, z } from '@hono/zod-openapi'
import { Document, DocumentChange, DocumentQuery, DocumentRequest, toDocument } from '../model/document.ts'
import { toPage } from '../model/paging.ts'
import { notFound, Problem } from '../model/problem.ts'
import {
  changeDocument,
  deleteDocument,
  findDocument,
  isCallScript,
  isWritten,
  listDocuments,
  uploadDocument,
  writeDocument,
  type DocumentWithText,
} from '../store/documents.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps, Middleware } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, needs, noContentOf, refusing, security } from './openapi.ts'
import { readJson } from './read-json.ts'
import { isForm, uploadOf } from './upload-form.ts'

const path = '/v1/accounts/{accountId}/documents'
const shared = { security, tags: ['Documents'] }
const withBody = { ...shared, middleware: [readJson] }
const accountParams = z.object({ accountId: z.string() })
const params = z.object({ accountId: z.string(), documentId: z.string() })
const example = { title: 'Opening hours', text: 'We are open from 9 to 17 every day.' }
const namedDocument = named('Document', Document)

const list = createRoute({
  ...shared,
  method: 'get',
  path,
  operationId: 'listDocuments',
  ...needs('read'),
  summary: 'List the documents of the account',
  request: { params: accountParams, query: DocumentQuery },
  responses: answerOf(
    z.array(namedDocument),
    'Without their texts: all, those of a worker, those with a tag; in the order in which they were made. Where a limit left some out, the header Link names the next page (rel="next").',
  ),
})

/** A file has been answered before its body is looked at as JSON. */
const createWith = (takeFiles: Middleware) =>
  createRoute({
    ...shared,
    middleware: [takeFiles, readJson],
    method: 'post',
    path,
    operationId: 'createDocument',
    ...needs('manage'),
    summary: 'Create a document, of a text or of a file',
    ...refusing('CONFLICT'),
    description:
      'It is queued, read in the background, and searched once it is completed; failedReason says why it could not be read. A call script is tagged inbound_call_script or outbound_call_script and linked to its workers; a written one is in use at once. What the embedded engine cannot follow of it is told in scriptErrors: it is stored switched off, and PATCH isActive switches it on for hosted engines, which read anything.',
    request: { params: accountParams, body: withForm(bodyOf(named('DocumentRequest', DocumentRequest), example)) },
    responses: answerOf(namedDocument, 'The document.'),
  })

const get = createRoute({
  ...shared,
  method: 'get',
  path: `${path}/{documentId}`,
  operationId: 'getDocument',
  ...needs('read'),
  summary: 'Get a document with its text',
  request: { params },
  responses: answerOf(namedDocument, 'The document.'),
})

const change = createRoute({
  ...withBody,
  method: 'patch',
  path: `${path}/{documentId}`,
  operationId: 'changeDocument',
  ...needs('manage'),
  summary: 'Change a document',
  description: 'What is not named stays; tags and links are replaced whole.',
  request: { params, body: bodyOf(named('DocumentChange', DocumentChange)) },
  responses: answerOf(namedDocument, 'The document as it is now.'),
})

const remove = createRoute({
  ...shared,
  method: 'delete',
  path: `${path}/{documentId}`,
  operationId: 'deleteDocument',
  ...needs('manage'),
  summary: 'Delete a document',
  description: 'Workers lose it at once, a call script in use too.',
  request: { params },
  responses: noContentOf('It is gone.'),
})

const maxErrors = 100
const maxJsonBytes = 1024 * 1024
const tooLarge = (): Problem => new Problem('PAYLOAD_TOO_LARGE', 'The body of a request may have 1 MiB at most.')

/** Files come past the schemas, see takeFiles. */
function withForm<Body extends { readonly content: object }>(body: Body): Body {
  const text = (description: string) => ({ type: 'string', description })
  const properties = {
    file: {
      type: 'string',
      format: 'binary',
      description: 'One file, 20 MiB at most: .txt, .md, .mdoc, .html, .docx or .pdf.',
    },
    title: text('For people and models; 1 to 300 characters. Absent: the name of the file.'),
    fileName: text('In place of the name of the file.'),
    isActive: { type: 'boolean', description: 'False: it is not used, and stays. Absent: true.' },
    tagKeys: text('Several as fields of one name, or with commas between. Absent: none.'),
    workerIds: text('Several as fields of one name, or with commas between. Absent: nobody’s.'),
  }
  const form = { schema: { type: 'object', required: ['file'], properties } }
  return { ...body, content: { ...body.content, 'multipart/form-data': form } }
}

/** RFC 8288; relative to the request (RFC 3986 §5.2), since a proxy in front may have another address. */
function nextLink(url: string, cursor: string): string {
  const { searchParams } = new URL(url)
  searchParams.set('cursor', cursor)
  return `<?${searchParams.toString()}>; rel="next"`
}

export function addDocumentRoutes(app: Api, { sql, clock, newId, checkScript }: ApiDeps): void {
  const whole = ({ content, ...facts }: DocumentWithText): Document => {
    const errors = checkScript && isCallScript(facts) ? checkScript(content).slice(0, maxErrors) : []
    const isRead = facts.status === 'completed' || (isWritten(facts.type) && content !== '')
    const text = isRead ? content : null
    return { ...toDocument(facts, text), ...(errors.length > 0 && { scriptErrors: errors }) }
  }
  const takeFiles: Middleware = async (c, next) => {
    const contentType = c.req.header('content-type') ?? ''
    // The listener lets files through here, and with them whatever is as long.
    if (Number(c.req.header('content-length') ?? 0) > maxJsonBytes && !isForm(contentType)) throw tooLarge()
    const body = await c.req.arrayBuffer()
    if (!isForm(contentType)) {
      if (body.byteLength > maxJsonBytes) throw tooLarge()
      return next()
    }
    const { file, request } = uploadOf(contentType, new Uint8Array(body))
    const wanted = { accountId: c.get('accountId'), request, newId, now: clock.now() }
    return c.json(whole(await uploadDocument(sql, file, wanted)), 200)
  }
  app.openapi(list, async (c) => {
    const query = c.req.valid('query')
    const documents = await listDocuments(sql, c.get('accountId'), query)
    const { data, nextCursor } = toPage(documents, query.limit ?? documents.length, (found) => toDocument(found, null))
    if (nextCursor !== null) c.header('link', nextLink(c.req.url, nextCursor))
    return c.json(data, 200)
  })
  app.openapi(createWith(takeFiles), async (c) => {
    const document = {
      accountId: c.get('accountId'),
      request: c.req.valid('json'),
      checkScript,
      newId,
      now: clock.now(),
    }
    return c.json(whole(await writeDocument(sql, document)), 200)
  })
  app.openapi(get, async (c) => {
    const documentId = idOf<'document'>(c.req.valid('param').documentId)
    const document = existing(await findDocument(sql, c.get('accountId'), documentId))
    return c.json(whole(document), 200)
  })
  app.openapi(change, async (c) => {
    const documentId = idOf<'document'>(c.req.valid('param').documentId)
    const settings = { documentId, change: c.req.valid('json'), checkScript, now: clock.now() }
    const changed = { accountId: c.get('accountId'), ...settings }
    const document = existing(await changeDocument(sql, changed))
    return c.json(whole(document), 200)
  })
  app.openapi(remove, async (c) => {
    const documentId = idOf<'document'>(c.req.valid('param').documentId)
    if (!(await deleteDocument(sql, c.get('accountId'), documentId))) throw notFound()
    return c.body(null, 204)
  })
}

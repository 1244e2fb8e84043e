/** Owns the routes of documents, call scripts among them. docs/contract/rest.md "Documents". */
import { createRoute, z } from '@hono/zod-openapi'
import { Document, DocumentChange, DocumentQuery, DocumentRequest, toDocument } from '../model/document.ts'
import {
  changeDocument,
  deleteDocument,
  findDocument,
  isCallScript,
  listDocuments,
  writeDocument,
  type DocumentWithText,
} from '../store/documents.ts'
import { idOf, notFound, ownAccountOnly } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, bodyOf, named, noContentOf, refusing, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const path = '/v1/accounts/{accountId}/documents'
const shared = { security, tags: ['Documents'], middleware: [ownAccountOnly] }
const withBody = { ...shared, middleware: [ownAccountOnly, readJson] }
const accountParams = z.object({ accountId: z.string() })
const params = z.object({ accountId: z.string(), documentId: z.string() })
const example = { title: 'Opening hours', text: 'We are open from 9 to 17 every day.' }
const namedDocument = named('Document', Document)

const list = createRoute({
  ...shared,
  method: 'get',
  path,
  operationId: 'listDocuments',
  summary: 'List the documents of the account',
  request: { params: accountParams, query: DocumentQuery },
  responses: answerOf(z.array(namedDocument), 'Without their texts: all, those of a worker, those with a tag.'),
})

const create = createRoute({
  ...withBody,
  method: 'post',
  path,
  operationId: 'createDocument',
  summary: 'Create a text document',
  ...refusing('CONFLICT'),
  description:
    'A call script is tagged inbound_call_script or outbound_call_script and linked to its workers. What the embedded engine cannot follow of it is told in scriptErrors; it is stored all the same, because hosted engines read anything.',
  request: { params: accountParams, body: bodyOf(named('DocumentRequest', DocumentRequest), example) },
  responses: answerOf(namedDocument, 'The document.'),
})

const get = createRoute({
  ...shared,
  method: 'get',
  path: `${path}/{documentId}`,
  operationId: 'getDocument',
  summary: 'Get a document with its text',
  request: { params },
  responses: answerOf(namedDocument, 'The document.'),
})

const change = createRoute({
  ...withBody,
  method: 'patch',
  path: `${path}/{documentId}`,
  operationId: 'changeDocument',
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
  summary: 'Delete a document',
  description: 'Workers lose it at once, a call script in use too.',
  request: { params },
  responses: noContentOf('It is gone.'),
})

const maxErrors = 100

export function addDocumentRoutes(app: Api, { sql, clock, newId, checkScript }: ApiDeps): void {
  const whole = ({ content, ...facts }: DocumentWithText): Document => {
    const errors = checkScript && isCallScript(facts) ? checkScript(content).slice(0, maxErrors) : []
    return { ...toDocument(facts, content), ...(errors.length > 0 && { scriptErrors: errors }) }
  }
  app.openapi(list, async (c) => {
    const documents = await listDocuments(sql, c.get('accountId'), c.req.valid('query'))
    return c.json(
      documents.map((document) => toDocument(document, null)),
      200,
    )
  })
  app.openapi(create, async (c) => {
    const document = { accountId: c.get('accountId'), request: c.req.valid('json'), newId, now: clock.now() }
    return c.json(whole(await writeDocument(sql, document)), 200)
  })
  app.openapi(get, async (c) => {
    const documentId = idOf<'document'>(c.req.valid('param').documentId)
    const document = existing(await findDocument(sql, c.get('accountId'), documentId))
    return c.json(whole(document), 200)
  })
  app.openapi(change, async (c) => {
    const documentId = idOf<'document'>(c.req.valid('param').documentId)
    const changed = { accountId: c.get('accountId'), documentId, change: c.req.valid('json'), now: clock.now() }
    const document = existing(await changeDocument(sql, changed))
    return c.json(whole(document), 200)
  })
  app.openapi(remove, async (c) => {
    const documentId = idOf<'document'>(c.req.valid('param').documentId)
    if (!(await deleteDocument(sql, c.get('accountId'), documentId))) throw notFound()
    return c.body(null, 204)
  })
}

/** Owns the routes of former texts of call scripts. docs/contract/rest.md "Documents". */
import { createRoute, z } from '@hono/zod-openapi'
import { DocumentVersion, toDocumentVersion } from '../model/document-version.ts'
import { findDocument } from '../store/documents.ts'
import { findVersion, listVersions } from '../store/document-versions.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { answerOf, named, needs, security } from './openapi.ts'

const path = '/v1/accounts/{accountId}/documents/{documentId}/versions'
const shared = { security, tags: ['Documents'] }
const namedVersion = named('DocumentVersion', DocumentVersion)
const params = z.object({ accountId: z.string(), documentId: z.string() })

const list = createRoute({
  ...shared,
  method: 'get',
  path,
  operationId: 'listDocumentVersions',
  ...needs('read'),
  summary: 'List the former texts of a call script',
  description:
    'Each text that another one has taken the place of; the newest 50. To go back to one, send its text as that of the document.',
  request: { params },
  responses: answerOf(
    z.array(namedVersion),
    'Newest first, without their texts. Of a document that is no call script there are none.',
  ),
})

const get = createRoute({
  ...shared,
  method: 'get',
  path: `${path}/{version}`,
  operationId: 'getDocumentVersion',
  ...needs('read'),
  summary: 'Get a former text of a call script',
  request: { params: params.extend({ version: z.string() }) },
  responses: answerOf(namedVersion, 'It with its text.'),
})

export function addDocumentVersionRoutes(app: Api, { sql }: ApiDeps): void {
  app.openapi(list, async (c) => {
    const documentId = idOf<'document'>(c.req.valid('param').documentId)
    existing(await findDocument(sql, c.get('accountId'), documentId))
    return c.json((await listVersions(sql, c.get('accountId'), documentId)).map(toDocumentVersion), 200)
  })
  app.openapi(get, async (c) => {
    const { documentId, version } = c.req.valid('param')
    const number = /^\d{1,9}$/.test(version) ? Number(version) : 0
    const found = await findVersion(sql, c.get('accountId'), idOf<'document'>(documentId), number)
    return c.json(toDocumentVersion(existing(found)), 200)
  })
}

/** Owns the route that reads the audit log. docs/contract/rest.md "Audit log". */
import { createRoute, z } from '@hono/zod-openapi'
import { AuditLogPage, AuditLogQuery, toAuditLogEntry } from '../model/audit.ts'
import { toPage } from '../model/paging.ts'
import type { AuditLog } from '../store/audit.ts'
import { listAuditRows } from '../store/audit-rows.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, named, needs, security } from './openapi.ts'
import { spanWithPlus } from './with-plus.ts'

const list = createRoute({
  method: 'get',
  path: '/v1/accounts/{accountId}/audit-log',
  security,
  tags: ['Audit log'],
  operationId: 'listAuditLog',
  ...needs('manage'),
  summary: 'List who did what, newest first',
  description:
    'Changes by REST, by the operator and by pages, calls of MCP tools, and what of it was refused. Arguments are masked: ids, times, switches and words of the service are told, nothing else is. from (inclusive) and to (exclusive) are times of the entries.',
  request: {
    params: z.object({ accountId: z.string() }),
    query: AuditLogQuery.extend(spanWithPlus(AuditLogQuery.shape)),
  },
  responses: answerOf(named('AuditLogPage', AuditLogPage), 'A page of entries.'),
})

export function addAuditRoutes(app: Api, { sql }: ApiDeps, audit: AuditLog): void {
  app.openapi(list, async (c) => {
    const query = c.req.valid('query')
    // What was done before this request is there, also what only read.
    await audit.flush()
    return c.json(toPage(await listAuditRows(sql, c.get('accountId'), query), query.limit, toAuditLogEntry), 200)
  })
}

/** Owns the route that diagnoses one call. docs/contract/rest.md "Diagnostics". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { CallDiagnostics, DiagnosticsQuery } from '../model/call-diagnostics.ts'
import { findCallDiagnostics } from '../store/call-diagnostics.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, named, needs, security } from './openapi.ts'

const diagnose = createRoute({
  method: 'get',
  path: '/v1/accounts/{accountId}/phone-calls/{phoneCallId}/diagnostics',
  security,
  tags: ['Phone calls'],
  operationId: 'getPhoneCallDiagnostics',
  ...needs('read'),
  summary: 'Diagnose a call',
  description:
    'The course of a call, a web call too, while it runs and afterwards: why it ended, what each answer waited for, quality, engines, who ran it, hooks and deliveries. No words of the talk. Lists come in parts: next of each is what its from… asks for. What has been removed, or was not kept yet when the call was made, is empty or null.',
  request: { params: z.object({ accountId: z.string(), phoneCallId: z.string() }), query: DiagnosticsQuery },
  responses: answerOf(named('CallDiagnostics', CallDiagnostics), 'The course of the call.'),
})

export function addDiagnosticsRoutes(app: Api, { sql, prices = null }: ApiDeps): void {
  app.openapi(diagnose, async (c) => {
    const callId = idOf<'call'>(c.req.valid('param').phoneCallId)
    const found = await findCallDiagnostics(
      sql,
      { accountId: c.get('accountId'), callId, prices },
      c.req.valid('query'),
    )
    if (!found) throw notFound()
    return c.json(found, 200)
  })
}

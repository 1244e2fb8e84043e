/** Owns the route that gives the capture of a call away, as a file for analysers. docs/contract/rest.md "Captures". */
import { createRoute, z } from '@hono/zod-openapi'
import type { AccountId, CallId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { toIso } from '../model/clock.ts'
import { pcapOf } from '../net/pcap.ts'
import { signalingDatagramOf } from '../net/signaling-datagrams.ts'
import { listMessages } from '../store/call-messages.ts'
import { findCall } from '../store/calls.ts'
import type { Sql } from '../store/sql.ts'
import { idOf, notFound } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { audited, needs, security } from './openapi.ts'

export const captureType = 'application/vnd.tcpdump.pcap'

const capture = createRoute({
  method: 'get',
  path: '/v1/accounts/{accountId}/phone-calls/{phoneCallId}/capture',
  security,
  tags: ['Phone calls'],
  operationId: 'getPhoneCallCapture',
  ...needs('read'),
  ...audited,
  summary: 'Download the capture of a call',
  description:
    'The signaling of a call that is over, as a pcap file for Wireshark and the like: each message of its diagnostics as a UDP datagram, whatever carried it. 404 where nothing is kept. Who takes one is in the audit log.',
  request: { params: z.object({ accountId: z.string(), phoneCallId: z.string() }) },
  responses: {
    200: {
      description: 'The capture.',
      content: { [captureType]: { schema: { type: 'string', format: 'binary' } as const } },
    },
  },
})

export function addCaptureRoutes(app: Api, { sql }: ApiDeps): void {
  app.openapi(capture, async (c) => {
    const callId = idOf<'call'>(c.req.valid('param').phoneCallId)
    const bytes = await captureOf(sql, c.get('accountId'), callId)
    return new Response(bytes as Uint8Array<ArrayBuffer>, {
      headers: {
        'content-type': captureType,
        'content-length': String(bytes.length),
        'content-disposition': `attachment; filename="${callId}.pcap"`,
        'cache-control': 'no-store',
      },
    })
  })
}

async function captureOf(sql: Sql, accountId: AccountId, callId: CallId): Promise<Uint8Array> {
  if (!(await findCall(sql, accountId, callId))) throw notFound()
  const messages = await listMessages(sql, accountId, callId)
  if (messages.length === 0)
    throw new Problem(
      'NOT_FOUND',
      'Nothing of this call was captured: its signaling is kept when it is over, and removed with its transcript.',
    )
  return pcapOf(messages.map((message) => signalingDatagramOf({ ...message, at: toIso(message.at) })))
}

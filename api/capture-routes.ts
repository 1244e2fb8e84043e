/** Owns the routes that capture a call, and give the capture away as a file for analysers. docs/contract/rest.md "Captures". */
import { createRoute, z } from '@hono/zod-openapi'
import { CallCapture, CaptureRequest, captureType } from '../model/call-capture.ts'
import { notFound } from '../model/problem.ts'
import { findCall } from '../store/calls.ts'
import { openCapture } from '../store/open-capture.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, audited, bodyOf, named, needs, refusing, security } from './openapi.ts'

const shared = {
  path: '/v1/accounts/{accountId}/phone-calls/{phoneCallId}/capture',
  security,
  tags: ['Phone calls'],
}
const params = z.object({ accountId: z.string(), phoneCallId: z.string() })

const take = createRoute({
  ...shared,
  method: 'get',
  operationId: 'getPhoneCallCapture',
  ...needs('read'),
  ...audited,
  summary: 'Download the capture of a call',
  description:
    'A pcap file for Wireshark and the like: the signaling of a call that is over, each message of its diagnostics as a UDP datagram, whatever carried it, and the RTP that was captured on request, also of a call that runs. 404 where there is neither. Who takes one is in the audit log.',
  request: { params },
  responses: {
    200: {
      description: 'The capture.',
      content: { [captureType]: { schema: { type: 'string', format: 'binary' } as const } },
    },
  },
})

const begin = createRoute({
  ...shared,
  method: 'post',
  operationId: 'capturePhoneCall',
  ...needs('calls'),
  summary: 'Capture the RTP of a running call',
  description:
    'From now on, both ways, for some minutes or to the end of the call. headers: what packets carry is left out. sound: it is there while it is recorded too, and needs the permission capture-sound of the account, 403 otherwise. Asked again, rtp and the end change. 409 for a call that is not answered, is over, or whose capture is complete.',
  request: { params, body: bodyOf(CaptureRequest) },
  ...refusing('CONFLICT'),
  responses: answerOf(named('CallCapture', CallCapture), 'What is captured, and until when.'),
})

export function addCaptureRoutes(app: Api, deps: ApiDeps): void {
  app.openapi(begin, async (c) => {
    const callId = idOf<'call'>(c.req.valid('param').phoneCallId)
    return c.json(await deps.captureCall(c.get('accountId'), callId, c.req.valid('json')), 200)
  })
  app.openapi(take, async (c) => {
    const callId = idOf<'call'>(c.req.valid('param').phoneCallId)
    const accountId = c.get('accountId')
    if (!(await findCall(deps.sql, accountId, callId))) throw notFound()
    const { file } = await openCapture(deps, accountId, callId)
    return new Response(ReadableStream.from(file), {
      headers: {
        'content-type': captureType,
        'content-disposition': `attachment; filename="${callId}.pcap"`,
        'cache-control': 'no-store',
      },
    })
  })
}

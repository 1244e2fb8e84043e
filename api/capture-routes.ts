/** Owns the routes that capture a call, and give the capture away as a file for analysers. docs/contract/rest.md "Captures". */
import { createRoute, z } from '@hono/zod-openapi'
import { CallCapture, captureKeyOf, CaptureRequest, captureType } from '../model/call-capture.ts'
import { toIso } from '../model/clock.ts'
import type { AccountId, CallId } from '../model/ids.ts'
import { notFound, Problem } from '../model/problem.ts'
import type { RecordingReader } from '../model/recording-store.ts'
import { pcapHead, pcapRecordOf } from '../net/pcap.ts'
import { readPcapRecords, type PcapRecord } from '../net/read-pcap-records.ts'
import { signalingDatagramOf } from '../net/signaling-datagrams.ts'
import { listMessages } from '../store/call-messages.ts'
import { findCall } from '../store/calls.ts'
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
    return new Response(ReadableStream.from(await captureOf(deps, c.get('accountId'), callId)), {
      headers: {
        'content-type': captureType,
        'content-disposition': `attachment; filename="${callId}.pcap"`,
        'cache-control': 'no-store',
      },
    })
  })
}

async function captureOf(
  { sql, recordings }: ApiDeps,
  accountId: AccountId,
  callId: CallId,
): Promise<AsyncIterable<Uint8Array>> {
  if (!(await findCall(sql, accountId, callId))) throw notFound()
  const messages = await listMessages(sql, accountId, callId)
  const rtp = await recordings.read(captureKeyOf(accountId, callId))
  if (messages.length === 0 && rtp === null)
    throw new Problem(
      'NOT_FOUND',
      'Nothing of this call was captured: signaling is kept when a call is over, RTP when it is asked for, and both are removed in time.',
    )
  const signaling = messages.flatMap((message) => {
    const bytes = pcapRecordOf(signalingDatagramOf({ ...message, at: toIso(message.at) }))
    return bytes ? [{ at: message.at, bytes }] : []
  })
  return inChunks(inOrder(signaling, rtp))
}

const chunkBytes = 64 << 10

/** Packets are small, and each write of an answer costs. */
async function* inChunks(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for await (const piece of pieces) {
    waiting.push(piece)
    bytes += piece.length
    if (bytes < chunkBytes) continue
    yield Buffer.concat(waiting)
    ;[waiting, bytes] = [[], 0]
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}

/** Both are in their order of time. */
async function* inOrder(signaling: PcapRecord[], rtp: RecordingReader | null): AsyncGenerator<Uint8Array> {
  yield pcapHead()
  const waiting = [...signaling]
  for await (const record of rtp && rtp.size > 0 ? readPcapRecords(rtp.stream(0, rtp.size - 1)) : []) {
    while (waiting[0] && waiting[0].at <= record.at) yield (waiting.shift() as PcapRecord).bytes
    yield record.bytes
  }
  for (const { bytes } of waiting) yield bytes
}

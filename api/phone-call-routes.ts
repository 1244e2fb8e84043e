/** Owns the routes that read calls. docs/contract/rest.md "Phone calls". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { TranscriptQuery } from '../model/call-diagnostics.ts'
import type { AccountId } from '../model/ids.ts'
import {
  AudioDownload,
  AudioDownloadQuery,
  AudioPeaks,
  PhoneCall,
  toPhoneCall,
  toTranscriptSegment,
  TranscriptSegment,
} from '../model/phone-call.ts'
import { peaksOf, peaksPerSecond } from '../model/recording-peaks.ts'
import { recordingKeyIn } from '../model/recording-store.ts'
import type { CallRow } from '../store/call-rows.ts'
import { findUsedCall, pricedUseOf } from '../store/call-usage.ts'
import { findCall } from '../store/calls.ts'
import { listTurns } from '../store/transcripts.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { answerOf, named, needs, security } from './openapi.ts'
import { publicUrlOf } from '../net/public-url.ts'
import { readyJson } from './ready-json.ts'
import { linkLifetime, recordingLinkOf } from './recording-link.ts'

const phoneCall = '/v1/accounts/{accountId}/phone-calls/{phoneCallId}'
const shared = { security, tags: ['Phone calls'] }
const params = z.object({ accountId: z.string(), phoneCallId: z.string() })

export const phoneCallExample: PhoneCall = {
  id: '01980a5e-9b02-7c3f-8a21-3c4d5e6f7081',
  status: 'scheduled',
  direction: 'outbound',
  postProcessingStatus: 'none',
  toNumber: '+4930123456',
  customer: { id: null, type: 'customer', firstName: 'Ada', externalId: 'crm-7' },
  workerId: '01980a5e-8a11-7b4d-9c32-4d5e6f708192',
  scheduledAt: '2026-12-01T08:30:00.000Z',
}

const get = createRoute({
  ...shared,
  method: 'get',
  path: phoneCall,
  operationId: 'getPhoneCall',
  ...needs('read'),
  summary: 'Get a call',
  description:
    'Every call that is over reads completed; outcome and failedReason tell how it ended. dimensions and nextAction are there when postProcessingStatus is completed. duration is seconds from answer to end. usage counts while the call runs; this answer alone has it.',
  request: { params },
  responses: answerOf(named('PhoneCall', PhoneCall), 'The call.', phoneCallExample),
})

const getTranscript = createRoute({
  ...shared,
  method: 'get',
  path: `${phoneCall}/transcript`,
  operationId: 'getPhoneCallTranscript',
  ...needs('read'),
  summary: 'Get the transcript of a call',
  description:
    'While the call runs, what was said so far. Offsets are hh:mm:ss from the answer; confidence is 0 to 1 or null.',
  request: { params, query: TranscriptQuery },
  responses: answerOf(z.array(named('TranscriptSegment', TranscriptSegment)), 'What was said, in order.'),
})

const getAudioUrl = createRoute({
  ...shared,
  method: 'get',
  path: `${phoneCall}/audio/url`,
  operationId: 'getPhoneCallAudioUrl',
  ...needs('read'),
  summary: 'Get a link to the recording of a call',
  description:
    '404 until the call is over and processed, and for a call that was never answered. The compressed copy is made after that: 404 until it is there.',
  request: { params, query: AudioDownloadQuery },
  responses: answerOf(named('AudioDownload', AudioDownload), 'A link to the recording, good for 15 minutes.'),
})

const getAudioPeaks = createRoute({
  ...shared,
  method: 'get',
  path: `${phoneCall}/audio/peaks`,
  operationId: 'getPhoneCallAudioPeaks',
  ...needs('read'),
  summary: 'Get the waveform of the recording of a call',
  description:
    'For display. It is made after the call: 404 until it is there, and for recordings of before waveforms were made.',
  request: { params },
  responses: answerOf(named('AudioPeaks', AudioPeaks), 'How loud the recording is, ten times a second.'),
})

export function addPhoneCallRoutes(app: Api, deps: ApiDeps): void {
  const { sql, recordings, recordingUrlKey, publicUrl, clock, prices = null } = deps
  const callOf = async (accountId: AccountId, phoneCallId: string): Promise<CallRow> => {
    const call = await findCall(sql, accountId, idOf<'call'>(phoneCallId))
    if (!call) throw notFound()
    return call
  }

  app.openapi(get, async (c) => {
    const { phoneCallId } = c.req.valid('param')
    const read = c.get('call')
    const call = read === undefined ? await findUsedCall(sql, c.get('accountId'), idOf<'call'>(phoneCallId)) : read
    if (!call) throw notFound()
    const usage = pricedUseOf(call, prices)
    return readyJson({ ...toPhoneCall(call), ...(usage && { usage }) })
  })
  app.openapi(getTranscript, async (c) => {
    const { accountId, id } = await callOf(c.get('accountId'), c.req.valid('param').phoneCallId)
    const { fromTurn } = c.req.valid('query')
    return c.json((await listTurns(sql, accountId, id, fromTurn)).map(toTranscriptSegment), 200)
  })
  app.openapi(getAudioUrl, async (c) => {
    const { accountId, id, recordingKey } = await callOf(c.get('accountId'), c.req.valid('param').phoneCallId)
    const { format } = c.req.valid('query')
    const form = format ?? 'wav'
    if (recordingKey === null || !(await recordings.read(recordingKeyIn(form, recordingKey)))) throw notFound()
    const link = recordingLinkOf(recordingUrlKey, { accountId, callId: id, form }, clock.now() + linkLifetime)
    return c.json({ id, url: `${publicUrlOf(publicUrl, c.req.raw)}${link}`, ...(format && { format }) }, 200)
  })
  app.openapi(getAudioPeaks, async (c) => {
    const { id, recordingKey } = await callOf(c.get('accountId'), c.req.valid('param').phoneCallId)
    const reader = recordingKey === null ? null : await recordings.read(recordingKeyIn('peaks', recordingKey))
    if (reader === null) throw notFound()
    const bytes = await new Response(reader.stream(0, reader.size - 1)).arrayBuffer()
    const peaks = peaksOf(new Uint8Array(bytes))
    if (peaks === null) throw notFound()
    return c.json({ id, peaksPerSecond, ...peaks }, 200)
  })
}

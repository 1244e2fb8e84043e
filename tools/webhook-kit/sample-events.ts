/** Owns one example of every event, of one call that never was, in the shapes of the product. docs/contract/webhooks.md "Delivery modes". */
import { toIso } from '../../model/clock.ts'
import {
  EndedData,
  StatusUpdateData,
  ToolCallData,
  TranscriptData,
  WorkerRequestData,
  type EventType,
} from '../../model/events.ts'
import type { NewId } from '../../model/ids.ts'
import type { TranscriptSegment } from '../../model/phone-call.ts'

export type SampleEvent = { readonly type: EventType; readonly data: Readonly<Record<string, unknown>> }

export type SampleCall = {
  readonly accountId: string
  workerRequest(): SampleEvent
  toolCall(): SampleEvent
  statusUpdate(): SampleEvent
  transcript(text: string): SampleEvent
  ended(transcript?: readonly TranscriptSegment[]): SampleEvent
}

const callLasted = 42_000
/** Echoed on every event, so that a receiver can tell these from its own. */
const metadata = { test: true, sentBy: 'webhook doctor' }

/** `accountId` is the one the deliveries carry in their headers. */
export function createSampleCall(deps: { newId: NewId; now: () => number; accountId: string }): SampleCall {
  const { newId, now, accountId } = deps
  const [callId, workerId] = [newId<'call'>(), newId<'worker'>()]
  const call = { callId, accountId, workerId }
  const customer = { number: '+4930123456', name: 'Ada Lovelace', personId: null, language: 'en' }
  let turnIndex = -1
  return {
    accountId,
    workerRequest: () => ({
      type: 'call.worker_request',
      data: WorkerRequestData.parse({ ...call, direction: 'inbound', transport: 'sip_trunk', customer, metadata }),
    }),
    toolCall: () => ({
      type: 'call.tool_call',
      data: ToolCallData.parse({
        ...call,
        toolCallId: newId<'tool_call'>(),
        name: 'find_booking',
        arguments: { date: '2026-12-01', seats: 4 },
        metadata,
      }),
    }),
    statusUpdate: () => ({
      type: 'call.status_update',
      data: StatusUpdateData.parse({
        callId,
        status: 'ringing',
        providerStatus: '180 Ringing',
        ts: toIso(now()),
        metadata,
      }),
    }),
    transcript: (text) => ({ type: 'call.transcript', data: transcriptOf(callId, (turnIndex += 1), text, now()) }),
    ended: (transcript = [segmentOf('user', 'Hello?')]) => ({
      type: 'call.ended',
      data: { ...endedOf(now()), ...call, transcript, metadata },
    }),
  }
}

/** About `bytes` of what was said. */
export function longTranscript(bytes: number): TranscriptSegment[] {
  const text =
    'I would like to book a table outside for four people, tomorrow at eight in the evening if there is one. '
  const segment = segmentOf('user', text.repeat(10))
  return Array.from({ length: Math.ceil(bytes / JSON.stringify(segment).length) }, () => segment)
}

const transcriptOf = (callId: string, turnIndex: number, text: string, now: number): TranscriptData =>
  TranscriptData.parse({
    callId,
    turnIndex,
    role: 'user',
    text,
    isFinal: true,
    confidence: 0.93,
    source: 'embedded',
    ts: toIso(now),
    metadata,
  })

const endedOf = (now: number): EndedData =>
  EndedData.parse({
    callId: '',
    accountId: '',
    workerId: '',
    status: 'completed',
    direction: 'inbound',
    fromNumber: '+4930123456',
    toNumber: '+4930654321',
    duration: callLasted / 1000,
    scheduledAt: null,
    startedAt: toIso(now - callLasted),
    endedAt: toIso(now),
    recordingAvailable: false,
    personId: null,
  })

const segmentOf = (speaker: TranscriptSegment['speaker'], text: string): TranscriptSegment => ({
  timestamps: { from: '00:00:01', to: '00:00:03' },
  speaker,
  text,
  confidence: 0.93,
  source: 'embedded',
})

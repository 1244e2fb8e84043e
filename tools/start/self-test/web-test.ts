/**
 * Owns the proof that `npm start` gives: one web call to this very service, placed as an integrator would, with a synthetic caller that answers
 * the demo's questions over a real WebRTC connection, and a real webhook receiver. Every figure in the report is measured.
 */
import { deadline, unlessAborted } from '../../../model/deadline.ts'
import { toId, type AccountId } from '../../../model/ids.ts'
import type { ServerMessage } from '../../../model/signaling.ts'
import { WebCallSession } from '../../../model/web-call.ts'
import { createWeriftCaller } from '../../../gateway/werift/caller.ts'
import { placeWebCall } from '../../callers/web-caller.ts'
import type { CallRow } from '../../../store/call-rows.ts'
import { findCall } from '../../../store/calls.ts'
import { createOpusLibrary } from '../../../media/codecs/opus.ts'
import { createTicker } from '../../../media/ticker/ticker.ts'
import { systemClock } from '../../../app/clock.ts'
import type { Parley } from '../../../app/parley.ts'
import type { SeededAccount } from '../demo/seed-demo.ts'
import { askApi } from './ask-api.ts'
import { extractedOf, isExtracted, type Extracted } from './extracted.ts'
import { createHeard, hearEvents, type HeardEvent } from './hear-events.ts'
import { createSyntheticCaller, type SyntheticCaller } from '../../callers/synthetic-caller.ts'

export type WebTestReport = {
  readonly callId: string
  /** From the request for the session to the first packet of the agent that can be heard, ms. */
  readonly firstAudioMs: number | null
  readonly turnsUnderstood: number
  readonly turnsAsked: number
  /** From the caller's first packet to the agent's last one, ms; null when there was no interruption. */
  readonly bargeInMs: number | null
  readonly webhooksVerified: number
  readonly webhooksRefused: number
  readonly recordingSeconds: number | null
  readonly outcome: string
  readonly extracted: Extracted
  readonly passed: boolean
}

/** Speaks a text as 16-bit sound at 16 kHz. */
export type Speak = (text: string) => Promise<Int16Array>

/** What the caller says to what the demo worker asks, in this order. */
export const answers = [
  { asked: /book a table/, say: 'yes please' },
  { asked: /like to sit/, say: 'outside' },
  { asked: /drink/, say: 'coffee', interrupts: true },
  { asked: /book it like that/, say: 'yes' },
] as const

export const callTimeout = 120_000
/** A pause of the agent that ends a sentence of its. */
export const pause = 350

type Account = Pick<SeededAccount, 'accountId' | 'workerId'>

/** `signal` ends it: it lets go of everything, and rejects. */
export async function runWebTest(
  service: Parley,
  account: Account,
  { speak, signal }: { readonly speak: Speak; readonly signal: AbortSignal },
): Promise<WebTestReport> {
  const { accountId } = account
  await using closing = new AsyncDisposableStack()
  const webhooks = await hearEvents(service, accountId, closing)
  const speech = await Promise.all(answers.map((answer) => speak(answer.say)))
  const inTime = within(callTimeout, signal)
  const call = await inTime(place(service, account, closing))
  const bargeInMs = await inTime(talk(call, speech))
  await inTime(call.over)
  await inTime(webhooks.until(isEndOf(call.callId)))
  const row = await callOf(service, accountId, call.callId)
  const notes = Object.keys(row.dimensions ?? {}).length
  const { firstLoudAt } = call.voice.heard()
  const { verified, refused } = webhooks.counts()
  const report = {
    callId: call.callId,
    firstAudioMs: firstLoudAt === null ? null : firstLoudAt - call.requestedAt,
    turnsUnderstood: notes,
    turnsAsked: answers.length,
    bargeInMs,
    webhooksVerified: verified,
    webhooksRefused: refused,
    recordingSeconds: row.recordedMs === null ? null : row.recordedMs / 1000,
    outcome: row.outcome ?? row.progress,
    extracted: await extractedOf(service, row),
  }
  const passed =
    report.outcome === 'completed' &&
    notes === answers.length &&
    isExtracted(report.extracted) &&
    refused === 0 &&
    firstLoudAt !== null &&
    row.recordedMs !== null
  return { ...report, passed }
}

type PlacedCall = {
  readonly callId: string
  /** By performance.now. */
  readonly requestedAt: number
  readonly voice: SyntheticCaller
  /** Resolves when the agent's utterance that fits begins (it is shown) or has been heard (it is final). */
  said(words: RegExp, isFinal: boolean): Promise<unknown>
  readonly over: Promise<unknown>
}

async function place(
  service: Parley,
  { accountId, workerId }: Account,
  closing: AsyncDisposableStack,
): Promise<PlacedCall> {
  const requestedAt = performance.now()
  const session = WebCallSession.parse(await askApi(service, accountId, 'web-calls', { workerId }))
  const messages = createHeard<ServerMessage>()
  const call = await placeWebCall({ ...session, createCaller: () => createWeriftCaller(), onMessage: messages.take })
  closing.defer(() => call.hangUp())
  const ticker = createTicker({ now: () => performance.now(), after: (ms, action) => systemClock.after(ms, action) })
  closing.defer(() => ticker.close())
  const audio = await call.caller.connected
  const now = (): number => performance.now()
  const voice = createSyntheticCaller({ caller: call.caller, audio, opus: createOpusLibrary(), ticker, now })
  closing.defer(() => voice.close())
  const said = (words: RegExp, isFinal: boolean): Promise<unknown> =>
    messages.until((message) => isSaid(message, words) && (message.isFinal || !isFinal))
  return { callId: call.callId, requestedAt, voice, said, over: messages.until((message) => message.type === 'bye') }
}

/** Answers every question after it was asked, one of them while it is being asked; returns how long the agent took to fall silent then. */
async function talk(call: PlacedCall, speech: readonly Int16Array[]): Promise<number | null> {
  let bargeInMs: number | null = null
  for (const [index, answer] of answers.entries()) {
    const words = speech[index] ?? new Int16Array(0)
    const interrupts = 'interrupts' in answer
    await call.said(answer.asked, !interrupts)
    if (!interrupts) {
      await call.voice.silence(pause)
      await call.voice.say(words)
      continue
    }
    await call.voice.sound()
    const began = await call.voice.say(words)
    await call.voice.silence(pause)
    bargeInMs = (call.voice.heard().lastLoudAt ?? began) - began
  }
  return bargeInMs
}

type Transcript = Extract<ServerMessage, { type: 'transcript' }>
const isSaid = (message: ServerMessage, words: RegExp): message is Transcript =>
  message.type === 'transcript' && message.role === 'agent' && words.test(message.text)

/** The end of a call, as its account is told. */
export const isEndOf =
  (callId: string) =>
  ({ type, data }: HeardEvent): boolean =>
    type === 'call.ended' && data['callId'] === callId

export async function callOf(service: Parley, accountId: AccountId, callId: string): Promise<CallRow> {
  const id = toId<'call'>(callId)
  const row = id && (await findCall(service.sql, accountId, id))
  if (!row) throw new Error('the call of the self-test has no row')
  return row
}

export const within =
  (ms: number, signal: AbortSignal) =>
  <Value>(work: Promise<Value>): Promise<Value> => {
    const late = (): never => {
      throw new Error(`the call did not end within ${ms / 1000} s`)
    }
    return unlessAborted(deadline(systemClock, ms, work, late), signal)
  }

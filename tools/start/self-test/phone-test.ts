/**
 * Owns the other half of the proof: the service is called by telephone, and calls back. A telephone made of software stands in for the
 * carrier, at the end of a trunk of an account made for this; every packet crosses SIP and RTP sockets of this machine.
 */
import type { CallRow } from '../../../store/call-rows.ts'
import { createTrunks } from '../../../store/trunks.ts'
import { createMediaPorts } from '../../../media/rtp/media-ports.ts'
import { openPhone, type CallToPhone, type Phone, type PhoneLine } from '../../callers/phone.ts'
import { createOpusLibrary } from '../../../media/codecs/opus.ts'
import { createTicker, type Ticker } from '../../../media/ticker/ticker.ts'
import { systemClock as clock } from '../../../app/clock.ts'
import { newId } from '../../../app/core.ts'
import { selfTestNumbers, type SeededAccount } from '../demo/seed-demo.ts'
import type { Log } from '../../../model/log.ts'
import type { Parley } from '../../../app/parley.ts'
import { askApi } from './ask-api.ts'
import { extractedOf, isExtracted, type Extracted } from './extracted.ts'
import { hearEvents, type HeardEvent, type HeardEvents } from './hear-events.ts'
import { createSyntheticCaller, type SyntheticCaller } from '../../callers/synthetic-caller.ts'
import { answers, callOf, callTimeout, isEndOf, pause, within, type Speak } from './web-test.ts'

export type PhoneCallReport = {
  readonly callId: string
  /** From INVITE, or from the request to the API, to the answer, ms. */
  readonly answeredMs: number
  /** From the answer to the first packet of the agent that can be heard, ms. */
  readonly firstAudioMs: number | null
  readonly turnsUnderstood: number
  readonly turnsAsked: number
  readonly codec: string
  readonly outcome: string
  readonly extracted: Extracted
}

export type PhoneTestReport = {
  readonly inbound: PhoneCallReport
  readonly outbound: PhoneCallReport
  readonly passed: boolean
}

/** Reserved for examples: the phone answers whatever number is called. */
const phoneNumber = '+12025550150'
/** What the phone says when it is called, and to what the demo's outbound script asks. */
const greeting = 'hello'
const confirmations = [
  { asked: /still coming/, say: 'yes' },
  { asked: /like to sit/, say: 'outside' },
  { asked: /drink/, say: 'coffee' },
]

type Stage = {
  readonly service: Parley
  readonly account: SeededAccount
  readonly phone: Phone
  readonly called: Promise<CallToPhone>
  readonly events: HeardEvents
  speakerOf(line: PhoneLine): SyntheticCaller
  readonly speak: Speak
}

export async function runPhoneTest(
  service: Parley & { readonly sip: NonNullable<Parley['sip']> },
  account: SeededAccount,
  { speak, log, signal }: { readonly speak: Speak; readonly log: Log; readonly signal: AbortSignal },
): Promise<PhoneTestReport> {
  await using closing = new AsyncDisposableStack()
  const stage = await setUp(service, account, { speak, log }, closing)
  const inTime = within(callTimeout, signal)
  const inbound = await inTime(callTheService(stage, service.sip.port))
  const outbound = await inTime(letTheServiceCall(stage))
  return { inbound, outbound, passed: isGood(inbound) && isGood(outbound) }
}

async function setUp(
  service: Parley,
  account: SeededAccount,
  { speak, log }: { readonly speak: Speak; readonly log: Log },
  closing: AsyncDisposableStack,
): Promise<Stage> {
  const events = await hearEvents(service, account.accountId, closing)
  const ticker = createTicker({ now, after: (ms, action) => clock.after(ms, action) })
  closing.defer(() => ticker.close())
  const { promise: called, resolve } = Promise.withResolvers<CallToPhone>()
  const media = createMediaPorts({ bindAddress: '127.0.0.1', externalAddress: null, portRange: mediaPorts, now, log })
  closing.defer(() => media.close())
  const wishes = { codecs: ['PCMU'], encryption: 'none' } as const
  const wish = { address: '127.0.0.1', port: 0, protocol: 'udp', wishes, onCall: resolve } as const
  const phone = await openPhone({ ...wish, media, ticker, clock, log })
  closing.defer(() => phone.close())
  const gateways = [{ host: '127.0.0.1', port: phone.port }]
  const trunks = createTrunks({ ...service, clock, newId })
  await trunks.change(account.accountId, account.trunkId, { gateways })
  closing.defer(async () => void (await trunks.change(account.accountId, account.trunkId, { gateways: [] })))
  const speakerOf = (line: PhoneLine) => speakerFor(line, ticker, closing)
  return { service, account, phone, called, events, speakerOf, speak }
}

const now = (): number => performance.now()
/** Apart from those of the service. */
const mediaPorts = [29_000, 29_099] as const

function speakerFor(line: PhoneLine, ticker: Ticker, closing: AsyncDisposableStack): SyntheticCaller {
  const voice = createSyntheticCaller({ caller: line, audio: line.audio, opus: createOpusLibrary(), ticker, now })
  closing.defer(() => voice.close())
  return voice
}

/** As a carrier delivers it. */
async function callTheService(stage: Stage, sipPort: number): Promise<PhoneCallReport> {
  const { phone, events } = stage
  const replies = await repliesOf(stage, answers)
  const began = now()
  const line = await phone.call(`sip:${selfTestNumbers.inbound}@127.0.0.1:${sipPort}`, phoneNumber)
  const answeredAt = now()
  const voice = stage.speakerOf(line)
  await answerUntilEnd(stage, line, { voice, replies, isOfCall: () => true })
  const { data } = await events.until(({ type, data }) => type === 'call.ended' && data['direction'] === 'inbound')
  const row = await callOf(stage.service, stage.account.accountId, String(data['callId']))
  const report = reportOf(row, line, voice, { began, answeredAt })
  return { ...report, turnsAsked: answers.length, extracted: await extractedOf(stage.service, row) }
}

/** As an integrator asks for it; whoever picks up says hello. */
async function letTheServiceCall(stage: Stage): Promise<PhoneCallReport> {
  const { events } = stage
  const [hello, replies] = await Promise.all([stage.speak(greeting), repliesOf(stage, confirmations)])
  const began = now()
  const callId = await askForCall(stage)
  const call = await stage.called
  call.ring()
  const line = await call.answer()
  const answeredAt = now()
  const voice = stage.speakerOf(line)
  await voice.say(hello)
  await answerUntilEnd(stage, line, { voice, replies, isOfCall: ({ data }) => data['callId'] === callId })
  await events.until(isEndOf(callId))
  const row = await callOf(stage.service, stage.account.accountId, callId)
  const report = reportOf(row, line, voice, { began, answeredAt })
  return { ...report, turnsAsked: confirmations.length, extracted: await extractedOf(stage.service, row) }
}

async function askForCall({ service, account }: Stage): Promise<string> {
  const { accountId, workerId } = account
  const { id } = (await askApi(service, accountId, 'phone-calls', { workerId, phoneNumber })) as { readonly id: string }
  return id
}

type Reply = { readonly asked: RegExp; readonly speech: Int16Array }

const repliesOf = ({ speak }: Stage, wanted: readonly { readonly asked: RegExp; readonly say: string }[]) =>
  Promise.all(wanted.map(async ({ asked, say }): Promise<Reply> => ({ asked, speech: await speak(say) })))

/** What a person does: whatever is asked, and asked again, is answered once it has been asked in full. */
async function answerUntilEnd(
  { events }: Stage,
  line: PhoneLine,
  { voice, replies, isOfCall }: { voice: SyntheticCaller; replies: readonly Reply[]; isOfCall: IsOfCall },
): Promise<void> {
  const ended = line.ended.then(() => null)
  for (let turn = 0; ; turn++) {
    const said = await Promise.race([events.until((event) => isAgentTurn(event) && isOfCall(event), turn), ended])
    if (said === null) return
    const reply = replies.find(({ asked }) => asked.test(String(said.data['text'])))
    if (!reply) continue
    await voice.silence(pause)
    await voice.say(reply.speech)
  }
}

type IsOfCall = (event: HeardEvent) => boolean

const isAgentTurn = ({ type, data }: HeardEvent): boolean => type === 'call.transcript' && data['role'] === 'agent'

function reportOf(
  row: CallRow,
  line: PhoneLine,
  voice: SyntheticCaller,
  { began, answeredAt }: { readonly began: number; readonly answeredAt: number },
) {
  const { firstLoudAt } = voice.heard()
  return {
    callId: row.id,
    answeredMs: answeredAt - began,
    firstAudioMs: firstLoudAt === null ? null : firstLoudAt - answeredAt,
    codec: line.audio.codec,
    outcome: row.outcome ?? row.progress,
    turnsUnderstood: Object.keys(row.dimensions ?? {}).length,
  }
}

const isGood = ({ outcome, turnsUnderstood, turnsAsked, firstAudioMs, extracted }: PhoneCallReport): boolean =>
  outcome === 'completed' && turnsUnderstood === turnsAsked && firstAudioMs !== null && isExtracted(extracted)

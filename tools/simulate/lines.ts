/** Owns how a caller gets a line: a browser that joins a web call, a telephone that dials, and one that is called. */
import { systemClock as clock } from '../../app/clock.ts'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { createMediaPorts } from '../../media/rtp/media-ports.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { deadline } from '../../model/deadline.ts'
import { silentLog } from '../../model/log.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { WebCallSession } from '../../model/web-call.ts'
import { openPhone, type CallToPhone, type PhoneLine } from '../callers/phone.ts'
import type { Line } from '../callers/line-sound.ts'
import { placeWebCall } from '../callers/web-caller.ts'
import type { CalledWorker, Deployment } from './deployment.ts'
import type { Scenario } from './scenario.ts'

export type AnsweredLine = {
  readonly callId: string
  readonly line: Line
  readonly audio: NegotiatedAudio
  /** From dialing, or asking for the call, to the answer, ms. */
  readonly answeredIn: number
  /** Who ended it, in words. */
  readonly ended: Promise<string>
  /** What the agent has said so far, as it is told to the caller; null: nobody tells, the transcript must be asked. */
  readonly agentSaid: (() => readonly string[]) | null
  /** Idempotent. */
  hangUp(): Promise<void>
}

export type Telephone = {
  readonly port: number
  /** Dials the worker's number at this address. */
  dial(wish: DialWish): Promise<AnsweredLine>
  /** Has the service call this number, and answers. */
  beCalled(wish: CallWish & { readonly number: string }): Promise<AnsweredLine>
  close(): Promise<void>
}

export type CallWish = {
  readonly deployment: Deployment
  readonly worker: CalledWorker
  readonly scenario: Scenario
}
export type DialWish = CallWish & { readonly sip: string; readonly number: string }

const now = (): number => performance.now()
const answeredWithin = 60_000
const foundWithin = 10_000
const lookEvery = 200
/** Apart from those of services on this machine. */
const mediaPorts = [27_000, 28_999] as const

export async function openTelephone({ address, ticker }: { address: string; ticker: Ticker }): Promise<Telephone> {
  await using opening = new AsyncDisposableStack()
  const portRange = mediaPorts
  const media = createMediaPorts({ bindAddress: address, externalAddress: null, portRange, now, log: silentLog })
  opening.defer(() => media.close())
  const expected = new Map<string, (call: CallToPhone) => void>()
  const phone = await openPhone({
    address,
    port: 0,
    protocol: 'udp',
    media,
    ticker,
    clock,
    log: silentLog,
    wishes: { codecs: ['PCMU'], encryption: 'none' },
    onCall(call) {
      const number = /sips?:(\+?\d+)@/.exec(call.request.uri)?.[1] ?? ''
      const take = expected.get(number)
      expected.delete(number)
      if (take) take(call)
      else call.refuse(404)
    },
  })
  opening.defer(() => phone.close())
  const parts = opening.move()
  const call = (number: string): Promise<CallToPhone> =>
    deadline(clock, answeredWithin, new Promise<CallToPhone>((take) => void expected.set(number, take)), () => {
      expected.delete(number)
      throw new Error(`${number} was not called within ${answeredWithin / 1000} s`)
    })
  return {
    port: phone.port,
    async dial({ deployment, worker, sip, number }) {
      const to = worker.inboundPhoneNumber
      if (!to) throw new Error(`the worker ${worker.name} has no number to call (inboundPhoneNumber)`)
      const began = now()
      const line = await phone.call(`sip:${to}@${sip}`, number)
      const answeredIn = now() - began
      try {
        return ofPhone(await idOf(deployment, number), line, answeredIn)
      } catch (error) {
        await line.hangUp()
        throw error
      }
    },
    async beCalled({ deployment, worker, scenario, number }) {
      const began = now()
      const coming = call(number)
      // Whoever fails first is told of.
      coming.catch(() => undefined)
      const { context, metadata } = scenario
      const request = { workerId: worker.id, phoneNumber: number, ...(context && { context }) }
      const placed = await deployment.ask('POST', '/phone-calls', { ...request, ...(metadata && { metadata }) })
      const arrived = await coming
      arrived.ring()
      const line = await arrived.answer()
      return ofPhone(String((placed as { id: unknown }).id), line, now() - began)
    },
    close: () => parts.disposeAsync(),
  }
}

const ofPhone = (callId: string, line: PhoneLine, answeredIn: number): AnsweredLine => ({
  callId,
  line,
  audio: line.audio,
  answeredIn,
  ended: line.ended,
  agentSaid: null,
  hangUp: () => line.hangUp(),
})

/** The service has not told the telephone which call it is: it is the newest one from this number that runs. */
async function idOf(deployment: Deployment, number: string): Promise<string> {
  for (const until = now() + foundWithin; now() < until;) {
    const call = await deployment.callFrom(number)
    if (call && call.endedAt === undefined) return call.id
    await new Promise<void>((resolve) => void clock.after(lookEvery, resolve))
  }
  throw new Error(`the account shows no call from ${number}: is the number called one of its workers?`)
}

export async function joinWebCall(
  { deployment, worker, scenario }: CallWish,
  externalTools: readonly unknown[],
  address: string | null,
): Promise<AnsweredLine> {
  const began = now()
  const { context, metadata } = scenario
  const session = WebCallSession.parse(
    await deployment.ask('POST', '/web-calls', {
      workerId: worker.id,
      ...(context && { context }),
      ...(metadata && { metadata }),
      ...(externalTools.length > 0 && { externalTools }),
    }),
  )
  const said = new Map<number, string>()
  const over = Promise.withResolvers<string>()
  const take = (message: ServerMessage): void => {
    if (message.type === 'transcript' && message.role === 'agent' && message.isFinal)
      said.set(message.turnIndex, message.text)
    if (message.type === 'bye') over.resolve(`bye: ${message.reason}`)
  }
  const createCaller = () => createWeriftCaller(address === null ? {} : { bindAddress: address })
  const call = await placeWebCall({ ...session, createCaller, onMessage: take })
  try {
    const audio = await call.caller.connected
    const answeredIn = now() - began
    const ended = Promise.race([over.promise, call.caller.ended])
    const agentSaid = (): string[] => [...said.values()]
    return { ...call, line: call.caller, audio, answeredIn, ended, agentSaid, hangUp: () => call.hangUp() }
  } catch (error) {
    await call.hangUp()
    throw error
  }
}

/**
 * Owns the callers of a run: browsers and a telephone, in this process. Each call talks by itself until its line ends; what it met with is kept for
 * who judges. The sound of all of them passes the shaper.
 */
import { systemClock as clock } from '../../app/clock.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import type { MediaPorts } from '../../media/rtp/media-ports.ts'
import { createRtpEndpoint } from '../../media/rtp/rtp-endpoint.ts'
import { freeEvenPort, openSocketPair } from '../../media/rtp/socket-pair.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { silentLog } from '../../model/log.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { WebCallSession } from '../../model/web-call.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { openPhone, type CallToPhone, type PhoneLine } from '../callers/phone.ts'
import { answers } from './conversation.ts'
import { joinByBrowser } from './returning-browser.ts'
import { talk, type Line, type Talk } from './talk.ts'
import { workerNumber, type Tenant } from './tenant.ts'
import type { UdpShaper } from './udp-shaper.ts'

export type Way = 'sip in' | 'sip out' | 'web'

export type Caller = {
  readonly way: Way
  /** The process that has its line; null: not known. */
  readonly edge: string | null
  /** Of the telephone. */
  readonly number: string
  /** Null for a telephone that calls: the service has not told it. */
  readonly callId: string | null
  readonly talk: Talk
  /** Of the telephone's calls and browser's: who ended it, in words, and when by performance.now. */
  readonly ended: Promise<{ readonly how: string; readonly at: number }>
  /** The service said goodbye, by BYE or in words, and not the network. */
  wasTold(): boolean
  hangUp(): Promise<void>
}

export type Callers = {
  readonly phonePort: number
  /** To the telephone edge at this port. */
  callByPhone(edge: Edge & { readonly sipPort: number }): Promise<Caller>
  /** The service is asked to call the telephone. */
  beCalled(api: Edge, tenant: Tenant): Promise<Caller>
  /** Joins at the first of the gateways, and comes back by any that listens. */
  callByBrowser(api: Edge, gateways: readonly [Edge, ...Edge[]], tenant: Tenant): Promise<Caller>
  close(): Promise<void>
}

export type Edge = { readonly name: string; readonly url: string }

const host = '127.0.0.1'
const answeredWithin = 20_000
const now = (): number => performance.now()
const firstNumber = 2025550110

export async function openCallers({ shaper }: { readonly shaper: UdpShaper }): Promise<Callers> {
  await using opening = new AsyncDisposableStack()
  const speech = await speechOf(opening)
  const ticker = createTicker({ now, after: (ms, action) => clock.after(ms, action) })
  opening.defer(() => ticker.close())
  const opus = createOpusLibrary()
  const media = createShapedPorts(shaper)
  opening.defer(() => media.close())
  const expected = new Map<string, (call: CallToPhone) => void>()
  const phone = await openPhone({
    address: host,
    port: 0,
    protocol: 'udp',
    media,
    ticker,
    clock,
    log: silentLog,
    wishes: { codecs: ['PCMU'], encryption: 'none' },
    onCall(call) {
      const number = /sip:(\+\d+)@/.exec(call.request.uri)?.[1] ?? ''
      const take = expected.get(number)
      if (take) take(call)
      else call.refuse(404)
    },
  })
  opening.defer(() => phone.close())
  let count = 0
  const nextNumber = (): string => `+${firstNumber + count++}`
  const begin = (line: Line, audio: NegotiatedAudio): Talk =>
    talk({ line, audio, opus, ticker, speech, first: count, now })
  const ofPhone = (line: PhoneLine, facts: Pick<Caller, 'way' | 'edge' | 'number' | 'callId'>): Caller => {
    let isOver = false
    let isOurs = false
    const ended = line.ended.then((how) => {
      isOver = true
      return { how, at: now() }
    })
    const hangUp = (): Promise<void> => {
      isOurs ||= !isOver
      return line.hangUp()
    }
    return { ...facts, talk: begin(line, line.audio), ended, wasTold: () => isOver && !isOurs, hangUp }
  }
  const parts = opening.move()
  return {
    phonePort: phone.port,
    async callByPhone({ name, sipPort }) {
      const number = nextNumber()
      const line = await phone.call(`sip:${workerNumber}@${host}:${sipPort}`, number)
      return ofPhone(line, { way: 'sip in', edge: name, number, callId: null })
    },
    async beCalled(api, { accountId, workerId, key }) {
      const number = nextNumber()
      const coming = new Promise<CallToPhone>((resolve, reject) => {
        expected.set(number, resolve)
        clock.after(answeredWithin, () => {
          // Who is called later was given up by then.
          expected.delete(number)
          reject(new Error(`${number} was not called in time`))
        })
      })
      const placing = ask(`${api.url}/v1/accounts/${accountId}/phone-calls`, key, { workerId, phoneNumber: number })
      const [{ id }, call] = await Promise.all([placing, coming])
      call.ring()
      return ofPhone(await call.answer(), { way: 'sip out', edge: null, number, callId: String(id) })
    },
    callByBrowser: (api, gateways, tenant) => placeBrowserCall({ shaper, begin }, api, gateways, tenant),
    close: () => parts.disposeAsync(),
  }
}

type BrowserDeps = { readonly shaper: UdpShaper; begin(line: Line, audio: NegotiatedAudio): Talk }

async function placeBrowserCall(
  { shaper, begin }: BrowserDeps,
  api: Edge,
  gateways: readonly [Edge, ...Edge[]],
  tenant: Tenant,
): Promise<Caller> {
  const { accountId, workerId, key } = tenant
  const session = WebCallSession.parse(await ask(`${api.url}/v1/accounts/${accountId}/web-calls`, key, { workerId }))
  const { pathname } = new URL(session.signalingUrl)
  const addresses = gateways.map(({ url }) => `${url.replace(/^http/, 'ws')}${pathname}`)
  const { line, audio, ended, wasTold, hangUp } = await joinByBrowser({ shaper, session, addresses })
  const facts = { way: 'web', edge: gateways[0].name, number: '', callId: session.callId } as const
  return { ...facts, talk: begin(line, audio), ended, wasTold, hangUp }
}

/** Throws with the answer when it is none of 200. */
async function ask(url: string, key: string, body: unknown): Promise<Readonly<Record<string, unknown>>> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(answeredWithin),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`refused with ${answer.status}: ${text}`)
  return JSON.parse(text) as Readonly<Record<string, unknown>>
}

async function speechOf(closing: AsyncDisposableStack): Promise<ReadonlyMap<string, Int16Array>> {
  const synthesiser = await createSynthesiser({ clock, log: silentLog })
  closing.defer(() => synthesiser.close())
  const spoken: [string, Int16Array][] = []
  for (const text of answers) spoken.push([text, (await synthesiser.speak(text, 'slt')).slice()])
  return new Map(spoken)
}

const attempts = 20

function createShapedPorts(shaper: UdpShaper): MediaPorts {
  const endpoints = new Set<{ close(): Promise<void> }>()
  async function openPair() {
    for (let attempt = 1; ; attempt++)
      try {
        return await openSocketPair(host, await freeEvenPort(host))
      } catch (error) {
        // Somebody else took the one beside it meanwhile.
        if (attempt === attempts) throw error
      }
  }
  return {
    async open(handlers) {
      const pair = shaper.shape(await openPair())
      const closed = (): void => void endpoints.delete(endpoint)
      const endpoint = createRtpEndpoint({ pair, address: host, handlers, now, log: silentLog, closed })
      endpoints.add(endpoint)
      return endpoint
    },
    addressFor: (family) => (family === 4 ? host : null),
    inUse: () => endpoints.size,
    close: async () => void (await Promise.all([...endpoints].map((endpoint) => endpoint.close()))),
  }
}

/**
 * Owns many calls to a SIP host over one way, with no more of SIP than that takes: INVITE, ACK and BYE. RFC 3261 §13.2, §15.1.
 */
import { randomBytes } from 'node:crypto'
import { hostPortText, hostText } from '../../sip/server/message/header-text.ts'
import { tagOf } from '../../sip/server/message/address.ts'
import { headerOf } from '../../sip/server/message/header-fields.ts'
import type { SipMessage, SipResponse } from '../../sip/server/message/message.ts'
import { familyOf } from '../../net/addresses.ts'
import { readSdpText } from '../../net/sdp.ts'
import { openSipExchange, type SipExchange } from './sip-exchange.ts'
import type { SipTarget } from './sip-socket.ts'

export type RawCall = {
  readonly callId: string
  /** From the INVITE to its 200, ms. */
  readonly answeredMs: number
  /** Where the service wants the sound. */
  readonly remote: { readonly address: string; readonly port: number }
  /** Resolves when the other side has hung up; never when this one does. */
  readonly ended: Promise<void>
  /** Resolves when the BYE is answered, or when nobody answers it. */
  hangUp(): Promise<void>
}

export type RawSipCaller = {
  /** By which the host reaches this program. */
  local(): { readonly address: string; readonly port: number }
  /** PCMU, RTCP on the port of RTP. Rejects when it is refused or not answered in time. `told` gets each message, with who sent it. */
  call(rtpPort: number, told?: Told): Promise<RawCall>
  /** Idempotent. */
  close(): Promise<void>
}

export type Told = (by: 'caller' | 'service', message: string | SipMessage) => void

/** By UDP on this machine, unless a target says where else. */
export type CalledService = {
  readonly port: number
  readonly called: string
  readonly calling: string
  readonly target?: SipTarget
}

export async function openRawSipCaller(service: CalledService): Promise<RawSipCaller> {
  const target: SipTarget = service.target ?? { protocol: 'udp', host: '127.0.0.1', port: service.port }
  const exchange = await openSipExchange(target)
  return { local: exchange.local, call: createCalling(service, exchange), close: exchange.close }
}

const via = { udp: 'UDP', tcp: 'TCP', tls: 'TLS' } as const
export const viaName = (target: SipTarget): string => via[target.protocol]

function createCalling({ called, calling }: CalledService, exchange: SipExchange): RawSipCaller['call'] {
  const { target } = exchange
  const transport = target.protocol === 'udp' ? '' : `;transport=${target.protocol}`
  const uri = `sip:${called}@${hostText(target.host)}:${target.port}${transport}`
  const prefix = `load-${randomBytes(6).toString('hex')}`
  let calls = 0
  return async (rtpPort, told = () => undefined) => {
    const callId = `${prefix}-${calls++}`
    const { address, port } = exchange.local()
    const own = hostPortText(address, port)
    const message = (method: string, number: number, to: string, toTag: string, body = ''): Buffer => {
      const lines = [
        `${method} ${to} SIP/2.0`,
        `Via: SIP/2.0/${viaName(target)} ${own};rport;branch=z9hG4bK-${callId}-${number}-${method}`,
        'Max-Forwards: 70',
        `From: <sip:${calling}@${own}>;tag=${callId}`,
        `To: <${uri}>${toTag}`,
        `Call-ID: ${callId}`,
        `CSeq: ${number} ${method}`,
        `Contact: <sip:${calling}@${own}${transport}>`,
        ...(body === '' ? [] : ['Content-Type: application/sdp']),
        `Content-Length: ${Buffer.byteLength(body)}`,
      ]
      const text = `${lines.join('\r\n')}\r\n\r\n${body}`
      told('caller', text)
      return Buffer.from(text)
    }
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    let isOver = false
    const unhear = exchange.hear(callId, (heard) => {
      told('service', heard)
      if (heard.kind !== 'request' || heard.method !== 'BYE') return
      isOver = true
      end()
    })
    try {
      const beganAt = performance.now()
      const answer = await exchange.ask(callId, '1 INVITE', message('INVITE', 1, uri, '', offerOf(address, rtpPort)))
      const answeredMs = performance.now() - beganAt
      const toTag = `;tag=${tagOf(answer, 'To') ?? ''}`
      // RFC 3261 §17.1.1.3: the ACK of a refusal has the branch of the INVITE.
      if (answer.status >= 300) {
        exchange.send(Buffer.from(message('ACK', 1, uri, toTag).toString().replace('-1-ACK', '-1-INVITE')))
        throw new Error(`the call was refused: ${answer.status} ${answer.reason}`)
      }
      const contact = /<([^>]*)>/.exec(headerOf(answer, 'Contact') ?? '')?.[1] ?? uri
      exchange.acknowledged(callId, '1 INVITE', message('ACK', 1, contact, toTag))
      return {
        callId,
        answeredMs,
        remote: soundPlaceOf(answer, target.host),
        ended,
        async hangUp() {
          // A call that the service ended meanwhile is over as well.
          if (!isOver) await exchange.ask(callId, '2 BYE', message('BYE', 2, contact, toTag)).catch(() => undefined)
          isOver = true
          unhear()
        },
      }
    } catch (error) {
      unhear()
      throw error
    }
  }
}

/** An answer that names no address that can be read means the host that gave it. */
export function soundPlaceOf(answer: SipResponse, host: string): { readonly address: string; readonly port: number } {
  const sdp = readSdpText(new TextDecoder().decode(answer.body))
  if (typeof sdp === 'string') return { address: host, port: 0 }
  const audio = sdp.sections.find(({ kind }) => kind === 'audio')
  const [, address = host] = /^IN IP[46] (\S+)/.exec(audio?.connection ?? sdp.connection ?? '') ?? []
  return { address, port: audio?.port ?? 0 }
}

const offerOf = (address: string, rtpPort: number): string =>
  [
    'v=0',
    `o=- 1 1 IN IP${familyOf(address)} ${address}`,
    's=-',
    `c=IN IP${familyOf(address)} ${address}`,
    't=0 0',
    `m=audio ${rtpPort} RTP/AVP 0`,
    'a=rtpmap:0 PCMU/8000',
    'a=ptime:20',
    'a=rtcp-mux',
    '',
  ].join('\r\n')

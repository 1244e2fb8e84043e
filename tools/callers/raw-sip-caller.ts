/**
 * Owns many calls to a SIP host over one way, with no more of SIP than that takes: INVITE, ACK and BYE, repeated on UDP until they are
 * answered. RFC 3261 §13.2, §15.1, §17.1.
 */
import { randomBytes } from 'node:crypto'
import { hostPortText, hostText } from '../../sip/server/message/header-text.ts'
import { tagOf } from '../../sip/server/message/address.ts'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import type { SipMessage, SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import { familyOf } from '../../net/addresses.ts'
import { readSdpText } from '../../net/sdp.ts'
import { openSipSocket, type SipTarget } from './sip-socket.ts'

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
  /** PCMU, RTCP on the port of RTP. Rejects when it is refused or not answered in time. `calling` stands in From in place of the usual one. */
  call(rtpPort: number, calling?: string): Promise<RawCall>
  /** Idempotent. */
  close(): Promise<void>
}

/** By UDP on this machine, unless a target says where else. */
export type CalledService = {
  readonly port: number
  readonly called: string
  readonly calling: string
  readonly target?: SipTarget
}

/** T1, which is not doubled here: on one machine nothing is lost unless the service is behind. */
const repeatEvery = 500
const giveUpAfter = 20_000

export async function openRawSipCaller(service: CalledService): Promise<RawSipCaller> {
  const target: SipTarget = service.target ?? { protocol: 'udp', host: '127.0.0.1', port: service.port }
  const waiting = new Map<string, (response: SipResponse) => void>()
  const answers = new Map<string, () => void>()
  const endings = new Map<string, () => void>()
  const socket = await openSipSocket(target, (bytes) => {
    const parsed = parseMessage(bytes)
    if (parsed.kind === 'message') received(parsed.message)
  })
  const send = (lines: readonly string[], body = ''): void =>
    socket.send(Buffer.from(`${lines.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`))

  function received(message: SipMessage): void {
    if (message.kind === 'request') {
      if (message.method !== 'ACK') send(okTo(message))
      if (message.method === 'BYE') endings.get(headerOf(message, 'Call-ID') ?? '')?.()
      return
    }
    if (message.status < 200) return
    const key = keyOf(headerOf(message, 'Call-ID') ?? '', headerOf(message, 'CSeq') ?? '')
    const wait = waiting.get(key)
    if (wait) return wait(message)
    // Our ACK was lost.
    answers.get(key)?.()
  }

  function ask(key: string, write: () => void): Promise<SipResponse> {
    return new Promise((resolve, reject) => {
      const repeat = target.protocol === 'udp' ? setInterval(write, repeatEvery) : undefined
      const settle = (): void => {
        clearInterval(repeat)
        clearTimeout(late)
        waiting.delete(key)
      }
      const late = setTimeout(() => {
        settle()
        reject(new Error('no answer in time'))
      }, giveUpAfter)
      waiting.set(key, (response) => {
        settle()
        resolve(response)
      })
      write()
    })
  }

  return {
    local: socket.local,
    call: createCalling({ service, target, local: socket.local, send, ask, answers, endings }),
    close: socket.close,
  }
}

type Calling = {
  readonly service: CalledService
  readonly target: SipTarget
  local(): { readonly address: string; readonly port: number }
  readonly send: (lines: readonly string[], body?: string) => void
  readonly ask: (key: string, write: () => void) => Promise<SipResponse>
  /** What a repeated 200 gets, by its call. */
  readonly answers: Map<string, () => void>
  /** Who is told that the other side hung up, by Call-ID. */
  readonly endings: Map<string, () => void>
}

const via = { udp: 'UDP', tcp: 'TCP', tls: 'TLS' } as const

function createCalling(deps: Calling): RawSipCaller['call'] {
  const { service, target, send, ask, answers, endings } = deps
  const transport = target.protocol === 'udp' ? '' : `;transport=${target.protocol}`
  const uri = `sip:${service.called}@${hostText(target.host)}:${target.port}${transport}`
  const prefix = `load-${randomBytes(6).toString('hex')}`
  let calls = 0
  return async (rtpPort, calling = service.calling) => {
    const callId = `${prefix}-${calls++}`
    const { address, port } = deps.local()
    const own = hostPortText(address, port)
    const head = (method: string, number: number, to: string, toTag: string): string[] => [
      `${method} ${to} SIP/2.0`,
      `Via: SIP/2.0/${via[target.protocol]} ${own};rport;branch=z9hG4bK-${callId}-${number}-${method}`,
      'Max-Forwards: 70',
      `From: <sip:${calling}@${own}>;tag=${callId}`,
      `To: <${uri}>${toTag}`,
      `Call-ID: ${callId}`,
      `CSeq: ${number} ${method}`,
      `Contact: <sip:${calling}@${own}${transport}>`,
    ]
    const beganAt = performance.now()
    const inviteKey = keyOf(callId, '1 INVITE')
    const offer = offerOf(address, rtpPort)
    const answer = await ask(inviteKey, () => send([...head('INVITE', 1, uri, ''), sdpType], offer))
    const answeredMs = performance.now() - beganAt
    const toTag = `;tag=${tagOf(answer, 'To') ?? ''}`
    // RFC 3261 §17.1.1.3: the ACK of a refusal has the branch of the INVITE.
    if (answer.status >= 300) {
      send(head('ACK', 1, uri, toTag).map((line) => line.replace('1-ACK', '1-INVITE')))
      throw new Error(`the call was refused: ${answer.status} ${answer.reason}`)
    }
    const contact = /<([^>]*)>/.exec(headerOf(answer, 'Contact') ?? '')?.[1] ?? uri
    const acknowledge = (): void => send(head('ACK', 1, contact, toTag))
    answers.set(inviteKey, acknowledge)
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    let isOver = false
    const forget = (): void => {
      isOver = true
      answers.delete(inviteKey)
      endings.delete(callId)
    }
    endings.set(callId, () => {
      forget()
      resolve()
    })
    acknowledge()
    return {
      callId,
      answeredMs,
      remote: soundPlaceOf(answer, target.host),
      ended,
      async hangUp() {
        if (isOver) return
        forget()
        // A call that the service ended meanwhile is over as well.
        await ask(keyOf(callId, '2 BYE'), () => send(head('BYE', 2, contact, toTag))).catch(() => undefined)
      },
    }
  }
}

const keyOf = (callId: string, cseq: string): string => `${callId} ${cseq}`
const sdpType = 'Content-Type: application/sdp'

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

function okTo(request: SipRequest): string[] {
  const copied = ['From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${headerOf(request, name)}`)
  return ['SIP/2.0 200 OK', ...headersOf(request, 'Via').map((line) => `Via: ${line}`), ...copied]
}

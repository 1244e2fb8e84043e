/**
 * Owns many calls to the service from one UDP socket, with no more of SIP than that takes: INVITE, ACK and BYE, repeated until they are
 * answered. RFC 3261 §13.2, §15.1, §17.1.
 */
import type { Socket } from 'node:dgram'
import { tagOf } from '../../sip/server/message/address.ts'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import type { SipMessage, SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'

export type RawCall = {
  /** From the INVITE to its 200, ms. */
  readonly answeredMs: number
  /** Where the service wants the sound. */
  readonly remote: { readonly address: string; readonly port: number }
  /** Resolves when the BYE is answered, or when nobody answers it. */
  hangUp(): Promise<void>
}

export type RawSipCaller = {
  /** PCMU, RTCP on the port of RTP. Rejects when it is refused or not answered in time. */
  call(rtpPort: number): Promise<RawCall>
  /** Idempotent. */
  close(): Promise<void>
}

export type CalledService = { readonly port: number; readonly called: string; readonly calling: string }

const address = '127.0.0.1'
/** T1, which is not doubled here: on one machine nothing is lost unless the service is behind. */
const repeatEvery = 500
const giveUpAfter = 20_000

export async function openRawSipCaller(service: CalledService): Promise<RawSipCaller> {
  const socket = await bindUdp(address, 0)
  const waiting = new Map<string, (response: SipResponse) => void>()
  let closing: Promise<void> | null = null
  const { port } = socket.address()
  const send = (lines: readonly string[], body = ''): void => {
    const text = `${lines.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    socket.send(text, service.port, address)
  }
  const answers = new Map<string, () => void>()
  socket.on('message', (bytes) => {
    const parsed = parseMessage(bytes)
    if (parsed.kind === 'message') received(parsed.message)
  })

  function received(message: SipMessage): void {
    if (message.kind === 'request') return send(okTo(message))
    if (message.status < 200) return
    const key = keyOf(headerOf(message, 'Call-ID') ?? '', headerOf(message, 'CSeq') ?? '')
    const wait = waiting.get(key)
    if (wait) return wait(message)
    // Our ACK was lost.
    answers.get(key)?.()
  }

  function ask(key: string, write: () => void): Promise<SipResponse> {
    return new Promise((resolve, reject) => {
      const repeat = setInterval(write, repeatEvery)
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
    call: createCalling({ ...service, ownPort: port, send, ask, answers }),
    close: () => (closing ??= closeUdp(socket as Socket)),
  }
}

type Calling = {
  readonly ownPort: number
  readonly send: (lines: readonly string[], body?: string) => void
  readonly ask: (key: string, write: () => void) => Promise<SipResponse>
  /** What a repeated 200 gets, by its call. */
  readonly answers: Map<string, () => void>
} & CalledService

function createCalling({ port, called, calling, ownPort, send, ask, answers }: Calling): RawSipCaller['call'] {
  const uri = `sip:${called}@${address}:${port}`
  let calls = 0
  return async (rtpPort) => {
    const callId = `bench-${ownPort}-${calls++}`
    const head = (method: string, number: number, target: string, toTag: string): string[] => [
      `${method} ${target} SIP/2.0`,
      `Via: SIP/2.0/UDP ${address}:${ownPort};rport;branch=z9hG4bK-${callId}-${number}-${method}`,
      'Max-Forwards: 70',
      `From: <sip:${calling}@${address}:${ownPort}>;tag=${callId}`,
      `To: <${uri}>${toTag}`,
      `Call-ID: ${callId}`,
      `CSeq: ${number} ${method}`,
      `Contact: <sip:${calling}@${address}:${ownPort}>`,
    ]
    const beganAt = performance.now()
    const inviteKey = keyOf(callId, '1 INVITE')
    const offer = offerOf(rtpPort)
    const answer = await ask(inviteKey, () => send([...head('INVITE', 1, uri, ''), sdpType], offer))
    const answeredMs = performance.now() - beganAt
    const toTag = `;tag=${tagOf(answer, 'To') ?? ''}`
    // RFC 3261 §17.1.1.3: the ACK of a refusal has the branch of the INVITE.
    if (answer.status >= 300) {
      send(head('ACK', 1, uri, toTag).map((line) => line.replace('1-ACK', '1-INVITE')))
      throw new Error(`the call was refused: ${answer.status} ${answer.reason}`)
    }
    const target = /<([^>]*)>/.exec(headerOf(answer, 'Contact') ?? '')?.[1] ?? uri
    const acknowledge = (): void => send(head('ACK', 1, target, toTag))
    answers.set(inviteKey, acknowledge)
    acknowledge()
    return {
      answeredMs,
      remote: { address, port: Number(/^m=audio (\d+)/m.exec(new TextDecoder().decode(answer.body))?.[1] ?? 0) },
      async hangUp() {
        // A call that the service ended meanwhile is over as well.
        await ask(keyOf(callId, '2 BYE'), () => send(head('BYE', 2, target, toTag))).catch(() => undefined)
        answers.delete(inviteKey)
      },
    }
  }
}

const keyOf = (callId: string, cseq: string): string => `${callId} ${cseq}`
const sdpType = 'Content-Type: application/sdp'

const offerOf = (rtpPort: number): string =>
  [
    'v=0',
    `o=- 1 1 IN IP4 ${address}`,
    's=-',
    `c=IN IP4 ${address}`,
    't=0 0',
    `m=audio ${rtpPort} RTP/AVP 0`,
    'a=rtpmap:0 PCMU/8000',
    'a=ptime:20',
    'a=rtcp-mux',
    '',
  ].join('\r\n')

function okTo(request: SipRequest): string[] {
  const copied = ['From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${headerOf(request, name)}`)
  return ['SIP/2.0 200 OK', ...headersOf(request, 'Via').map((via) => `Via: ${via}`), ...copied]
}

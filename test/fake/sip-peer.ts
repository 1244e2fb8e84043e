/**
 * Owns a SIP peer on a bare UDP socket: it writes what a test says and keeps what comes, each message once however often it is repeated.
 * Of SIP it knows no more than how the parts of one call hang together.
 */
import dgram from 'node:dgram'
import { once } from 'node:events'
import { tagOf } from '../../sip/server/message/address.ts'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import type { SipMessage, SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'

/** `contact` false: none is written. */
export type Words = { readonly headers?: readonly string[]; readonly body?: string; readonly contact?: false }

export type SipPeer = {
  readonly port: number
  /** The next one that matches and was not taken yet. */
  request(method: string): Promise<SipRequest>
  /** Answers a request; our tag is put on To. */
  answer(request: SipRequest, status: number, words?: Words & { readonly reason?: string }): void
  /** A call to the service: our INVITE, not answered yet. */
  invite(
    words?: Words & { readonly to?: string; readonly from?: string; readonly uri?: string; readonly callId?: string },
  ): PeerCall
  /** Our side of a call that came by an INVITE and was answered 200 here, or of a dialog in which one came. */
  callOf(invite: SipRequest): PeerCall
  /** A request outside of calls. */
  ask(method: string, words?: Words): Promise<SipResponse>
  close(): Promise<void>
}

export type PeerCall = {
  readonly callId: string
  /** The next response to our INVITE other than 100. */
  answered(): Promise<SipResponse>
  ack(words?: Words): void
  cancel(words?: Words): void
  /** Sends it within the call and waits for its final answer. */
  request(method: string, words?: Words): Promise<SipResponse>
  /** INVITE within the call: its final answer, ACK sent. `ack`: what the ACK says. */
  reinvite(words?: Words, ack?: Words): Promise<SipResponse>
  /** Once more, with more headers: the answer to a challenge. */
  again(headers: readonly string[]): void
}

const late = 5_000
let count = 0

export async function openSipPeer(serverPort: number): Promise<SipPeer> {
  const socket = dgram.createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  const { take, next } = createInbox()
  socket.on('message', (bytes) => take(bytes))
  const send = (lines: readonly string[], { headers = [], body = '', contact }: Words) => {
    const type = body && !headers.some((line) => /^content-type/i.test(line)) ? ['Content-Type: application/sdp'] : []
    const own = contact === false ? [] : [`Contact: <sip:peer@127.0.0.1:${port}>`]
    const head = [...lines, ...own, ...headers, ...type]
    socket.send(
      `${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      serverPort,
      '127.0.0.1',
    )
  }
  const response = (callId: string, cseq: string, localTag: string) =>
    next(
      `answer to ${cseq}`,
      (message) =>
        message.kind === 'response' &&
        message.status > 100 &&
        headerOf(message, 'Call-ID') === callId &&
        headerOf(message, 'CSeq') === cseq &&
        tagOf(message, 'From') === localTag,
    ) as Promise<SipResponse>
  const call = createCalls({ port, serverPort, send, response })

  return {
    port,
    request: (method) =>
      next(method, (message) => message.kind === 'request' && message.method === method) as Promise<SipRequest>,
    answer(request, status, { reason = 'Answer', ...words } = {}) {
      const to = headerOf(request, 'To') ?? ''
      const copied = [
        ...headersOf(request, 'Via').map((via) => `Via: ${via}`),
        ...headersOf(request, 'Record-Route').map((route) => `Record-Route: ${route}`),
      ]
      const rest = ['From', 'Call-ID', 'CSeq'].map((name) => `${name}: ${headerOf(request, name)}`)
      const tagged = to.includes(';tag=') ? to : `${to};tag=peer${port}`
      send([`SIP/2.0 ${status} ${reason}`, ...copied, `To: ${tagged}`, ...rest], words)
    },
    invite({
      to = 'sip:+4930123456@service.test',
      from = 'sip:+4915112345678@carrier.test',
      uri,
      callId,
      ...words
    } = {}) {
      const side = { remote: to, local: from, target: uri ?? to, localTag: `t${port}-${count++}` }
      return call({ ...side, ...(callId !== undefined && { callId }) }).invited(words)
    },
    callOf: (invite) =>
      call({
        remote: /<([^>]*)>/.exec(headerOf(invite, 'From') ?? '')?.[1] ?? '',
        local: /<([^>]*)>/.exec(headerOf(invite, 'To') ?? '')?.[1] ?? '',
        target: /<([^>]*)>/.exec(headerOf(invite, 'Contact') ?? '')?.[1] ?? '',
        localTag: tagOf(invite, 'To') ?? `peer${port}`,
        callId: headerOf(invite, 'Call-ID') ?? '',
        remoteTag: tagOf(invite, 'From'),
      }),
    ask: (method, words = {}) =>
      call({
        remote: 'sip:service.test',
        local: 'sip:peer@carrier.test',
        target: 'sip:service.test',
        localTag: `t${count++}`,
      }).request(method, words),
    async close() {
      const closed = once(socket, 'close')
      socket.close()
      await closed
    },
  }
}

/** What came and nobody took, and who waits for what. */
function createInbox() {
  const seen = new Set<string>()
  const arrived: SipMessage[] = []
  const waiting = new Set<() => void>()
  return {
    take(bytes: Uint8Array) {
      const parsed = parseMessage(bytes)
      if (parsed.kind !== 'message') return
      const { message } = parsed
      const what = message.kind === 'request' ? message.method : `${message.status}${tagOf(message, 'To')}`
      const key = [headerOf(message, 'Via'), headerOf(message, 'CSeq'), headerOf(message, 'Call-ID'), what].join(' ')
      // Repeated over UDP; an ACK to each 2xx is one of a kind.
      if (seen.has(key)) return
      seen.add(key)
      arrived.push(message)
      for (const look of waiting) look()
    },
    next(what: string, matches: (message: SipMessage) => boolean): Promise<SipMessage> {
      return new Promise((resolve, reject) => {
        const look = () => {
          const at = arrived.findIndex(matches)
          if (at === -1) return
          end()
          resolve(arrived.splice(at, 1)[0]!)
        }
        const timer = setTimeout(() => {
          end()
          const left = arrived.map((one) => (one.kind === 'request' ? one.method : one.status)).join(', ')
          reject(new Error(`no ${what} came; there are: ${left || 'none'}`))
        }, late)
        const end = () => {
          clearTimeout(timer)
          waiting.delete(look)
        }
        waiting.add(look)
        look()
      })
    },
  }
}

type Side = {
  readonly remote: string
  readonly local: string
  readonly target: string
  readonly localTag: string
  readonly callId?: string
  readonly remoteTag?: string | null
}

type Ends = {
  readonly port: number
  readonly serverPort: number
  readonly send: (lines: readonly string[], words: Words) => void
  readonly response: (callId: string, cseq: string, localTag: string) => Promise<SipResponse>
}

function createCalls({ port, send, response }: Ends) {
  return (side: Side) => {
    const callId = side.callId ?? `peer-${port}-${count++}`
    let remoteTag = side.remoteTag ?? null
    let target = side.target
    let sequence = 0
    let first: Words = {}
    let branch = ''
    const write = (method: string, number: number, words: Words, ownBranch = `z9hG4bK-${port}-${count++}`) => {
      if (method === 'INVITE') branch = ownBranch
      const lines = [
        `${method} ${target} SIP/2.0`,
        `Via: SIP/2.0/UDP 127.0.0.1:${port};rport;branch=${ownBranch}`,
        'Max-Forwards: 70',
        `From: <${side.local}>;tag=${side.localTag}`,
        `To: <${side.remote}>${remoteTag === null ? '' : `;tag=${remoteTag}`}`,
        `Call-ID: ${callId}`,
        `CSeq: ${number} ${method}`,
      ]
      send(lines, words)
    }
    /** ACK of a refusal belongs to the transaction of its INVITE. RFC 3261 §17.1.1.3. */
    const acknowledge = (answer: SipResponse, words: Words = {}) => {
      const tag = tagOf(answer, 'To')
      if (answer.status >= 300) {
        const before = remoteTag
        remoteTag = tag
        write('ACK', sequence, {}, branch)
        remoteTag = before
        return
      }
      remoteTag = tag
      target = /<([^>]*)>/.exec(headerOf(answer, 'Contact') ?? '')?.[1] ?? target
      write('ACK', sequence, words)
    }
    let lastAnswer: SipResponse | null = null
    const peerCall: PeerCall & { invited(words: Words): PeerCall } = {
      callId,
      invited(words) {
        first = words
        write('INVITE', ++sequence, words)
        return peerCall
      },
      async answered() {
        const answer = await response(callId, `${sequence} INVITE`, side.localTag)
        lastAnswer = answer
        if (answer.status >= 300) acknowledge(answer)
        return answer
      },
      ack: (words = {}) => lastAnswer && acknowledge(lastAnswer, words),
      cancel: (words = {}) => write('CANCEL', sequence, words, branch),
      request(method, words = {}) {
        write(method, ++sequence, words)
        return response(callId, `${sequence} ${method}`, side.localTag)
      },
      async reinvite(words = {}, ack = {}) {
        write('INVITE', ++sequence, words)
        const answer = await response(callId, `${sequence} INVITE`, side.localTag)
        acknowledge(answer, ack)
        return answer
      },
      again(headers) {
        write('INVITE', ++sequence, { ...first, headers: [...(first.headers ?? []), ...headers] })
      },
    }
    return peerCall
  }
}

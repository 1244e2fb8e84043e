/** Owns a SIP peer that does nothing by itself: each message is written by the test, each that comes waits until the test takes it. */
import dgram from 'node:dgram'
import net from 'node:net'
import tls from 'node:tls'
import { once } from 'node:events'
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import type { SipMessage, SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import { carrierTls } from '../scenes/tls.ts'

export type Ask = {
  readonly callId: string
  readonly fromTag: string
  readonly toTag?: string
  readonly cseq: number
  readonly uri?: string
  readonly headers?: readonly string[]
  readonly body?: string
  readonly branch?: string
  /** sent-by of our Via; an answer to it goes to where the request came from. */
  readonly via?: string
}

export type SipWire = {
  readonly port: number
  /** In From and Contact. */
  readonly uri: string
  /** Sends a request with our Via; answers the branch. */
  ask(method: string, ask: Ask): string
  /** Answers a request that came. */
  answer(request: SipRequest, status: number, toTag?: string, headers?: readonly string[], body?: string): void
  request(method: string): Promise<SipRequest>
  /** To the call that was asked last. */
  response(cseq: string, status?: number): Promise<SipResponse>
  /** How many of those that came, and did not come again, were not taken. */
  waiting(match: (message: SipMessage) => boolean): number
  sendRaw(text: string): void
  /** Everything sent from now on is told before. */
  tell(listener: (text: string) => void): void
  /** Forgets what waits. */
  clear(): void
  /** From now on every request goes here at once, and none waits. Null: they wait again. */
  serve(handler: ((request: SipRequest) => void) | null): void
  /** Packets are lost, both ways. */
  lose(loses: () => boolean): void
  /** Connections the server opened are closed. */
  cut(): void
  close(): Promise<void>
}

export const sdp = (port = 40_000, version = 1): string =>
  `v=0\r\no=- 1 ${version} IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP 0\r\na=sendrecv\r\n`

let branches = 0

export async function openSipWire(serverPort: number, protocol: 'udp' | 'tcp' | 'tls' = 'udp'): Promise<SipWire> {
  const arrived: SipMessage[] = []
  /** Transactions of the requests that were to wait (RFC 3261 17.2.3): what comes of one again is a repeat, whoever is slow. */
  const begun = new Set<string>()
  const takers = new Set<() => void>()
  let loses = (): boolean => false
  /** Call-ID of the last request sent: answers are looked for to it. */
  let asked = ''
  let server: ((request: SipRequest) => void) | null = null
  const take = (bytes: Uint8Array): void => {
    const parsed = parseMessage(bytes)
    if (parsed.kind !== 'message' || loses()) return
    if (parsed.message.kind === 'response') acknowledge(parsed.message)
    if (server && parsed.message.kind === 'request') return server(parsed.message)
    if (isRepeat(parsed.message)) return
    arrived.push(parsed.message)
    for (const taker of takers) taker()
  }
  /** Not of an ACK: that of a 200 comes once for each 200. */
  function isRepeat(message: SipMessage): boolean {
    if (message.kind === 'response' || message.method === 'ACK') return false
    const transaction = `${message.method} ${headersOf(message, 'Via')[0]}`
    return begun.size === begun.add(transaction).size
  }
  /** A refusal of our INVITE is repeated until its ACK comes. */
  function acknowledge(response: SipResponse): void {
    const cseq = headerOf(response, 'CSeq') ?? ''
    if (response.status < 300 || !cseq.endsWith(' INVITE')) return
    const copied = ['From', 'To', 'Call-ID'].map((name) => `${name}: ${headerOf(response, name)}`)
    const via = `Via: ${headersOf(response, 'Via')[0]}`
    const lines = [`ACK sip:service@127.0.0.1:${serverPort} SIP/2.0`, via, ...copied, `CSeq: ${cseq.split(' ')[0]} ACK`]
    send(`${lines.join('\r\n')}\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n`)
  }

  const open = { udp: openUdp, tcp: openTcp, tls: openTls }[protocol]
  const pipe = await open(serverPort, take)
  const uri = `sip:peer@127.0.0.1:${pipe.port}${protocol === 'udp' ? '' : `;transport=${protocol}`}`
  let listener = (_text: string): void => undefined
  const send = (text: string): void => {
    listener(text)
    if (!loses()) pipe.send(text)
  }

  function next(match: (message: SipMessage) => boolean, what: string): Promise<SipMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<SipMessage>()
    const look = (): void => {
      const at = arrived.findIndex(match)
      if (at === -1) return
      takers.delete(look)
      clearTimeout(late)
      resolve(arrived.splice(at, 1)[0] as SipMessage)
    }
    const late = setTimeout(() => {
      takers.delete(look)
      reject(new Error(`no ${what} came; there are: ${arrived.map(nameOf).join(', ') || 'none'}`))
    }, 20_000)
    takers.add(look)
    look()
    return promise
  }

  return {
    port: pipe.port,
    uri,
    ask(method, { callId, fromTag, toTag, cseq, headers = [], body = '', ...rest }) {
      asked = callId
      const branch = rest.branch ?? `z9hG4bKw${pipe.port}x${branches++}`
      const lines = [
        `${method} ${rest.uri ?? `sip:service@127.0.0.1:${serverPort}`} SIP/2.0`,
        `Via: SIP/2.0/${protocol.toUpperCase()} ${rest.via ?? `127.0.0.1:${pipe.port}`};rport;branch=${branch}`,
        'Max-Forwards: 70',
        `From: <${uri}>;tag=${fromTag}`,
        `To: <sip:service@127.0.0.1:${serverPort}>${toTag ? `;tag=${toTag}` : ''}`,
        `Call-ID: ${callId}`,
        `CSeq: ${cseq} ${method === 'ACK' ? 'ACK' : method}`,
        ...(headers.some((line) => line.startsWith('Contact:')) ? [] : [`Contact: <${uri}>`]),
        ...headers,
        ...(body && !headers.some((line) => line.startsWith('Content-Type:')) ? ['Content-Type: application/sdp'] : []),
      ]
      send(`${lines.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
      return branch
    },
    answer(request, status, toTag, headers = [], body = '') {
      const to = headerOf(request, 'To') ?? ''
      const lines = [
        `SIP/2.0 ${status} Answer`,
        ...headersOf(request, 'Via').map((via) => `Via: ${via}`),
        `From: ${headerOf(request, 'From')}`,
        `To: ${to}${toTag && !to.includes(';tag=') ? `;tag=${toTag}` : ''}`,
        `Call-ID: ${headerOf(request, 'Call-ID')}`,
        `CSeq: ${headerOf(request, 'CSeq')}`,
        ...(headers.some((line) => line.startsWith('Contact:')) ? [] : [`Contact: <${uri}>`]),
        ...headers,
        ...(body ? ['Content-Type: application/sdp'] : []),
      ]
      send(`${lines.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    },
    request: async (method) =>
      (await next((message) => message.kind === 'request' && message.method === method, method)) as SipRequest,
    response: async (cseq, status) =>
      (await next(
        (message) =>
          message.kind === 'response' &&
          message.status > 100 &&
          (status === undefined || message.status === status) &&
          headerOf(message, 'Call-ID') === asked &&
          headerOf(message, 'CSeq') === cseq,
        `${status ?? ''} to ${cseq}`,
      )) as SipResponse,
    waiting: (match) => arrived.filter(match).length,
    sendRaw: pipe.send,
    tell: (fresh) => void (listener = fresh),
    clear: () => void arrived.splice(0),
    serve: (handler) => void (server = handler),
    lose: (when) => void (loses = when),
    cut: pipe.cut,
    close: pipe.close,
  }
}

const nameOf = (message: SipMessage): string =>
  message.kind === 'request' ? message.method : `${message.status} to ${headerOf(message, 'CSeq')}`

type Pipe = { readonly port: number; send(text: string): void; cut(): void; close(): Promise<void> }

async function openUdp(serverPort: number, take: (bytes: Uint8Array) => void): Promise<Pipe> {
  const socket = dgram.createSocket('udp4')
  socket.on('message', take)
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    port: socket.address().port,
    send: (text) => socket.send(text, serverPort, '127.0.0.1'),
    cut: () => undefined,
    async close() {
      const closed = once(socket, 'close')
      socket.close()
      await closed
    },
  }
}

type Take = (bytes: Uint8Array) => void

/** The messages of every connection it is given. */
function createServing(take: Take) {
  const sockets = new Set<net.Socket>()
  const serve = (socket: net.Socket): void => {
    let rest = Buffer.alloc(0)
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (piece) => {
      rest = Buffer.concat([rest, piece])
      for (let end = endOf(rest); end > 0 && end <= rest.length; end = endOf(rest)) {
        take(rest.subarray(0, end))
        rest = rest.subarray(end)
      }
    })
  }
  return { sockets, serve }
}

async function stopServing(server: net.Server, sockets: ReadonlySet<net.Socket>): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  sockets.forEach((one) => one.destroy())
  await closed
}

/** As a carrier does it whose customers have no certificate: it listens, and what it has to say goes by the connection that came last. */
async function openTls(_serverPort: number, take: Take): Promise<Pipe> {
  const { sockets, serve } = createServing(take)
  const server = tls.createServer(carrierTls, serve)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as net.AddressInfo).port,
    send: (text) => void [...sockets].at(-1)?.write(text),
    cut: () => sockets.forEach((one) => one.destroy()),
    close: () => stopServing(server, sockets),
  }
}

/** One connection, either side's: that of the server comes to our port. */
async function openTcp(serverPort: number, take: Take): Promise<Pipe> {
  const { sockets, serve } = createServing(take)
  const server = net.createServer(serve)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = net.connect(serverPort, '127.0.0.1')
  await once(socket, 'connect')
  serve(socket)
  return {
    port: (server.address() as net.AddressInfo).port,
    send: (text) => void (socket.destroyed ? [...sockets].at(-1) : socket)?.write(text),
    cut: () => sockets.forEach((one) => one === socket || one.destroy()),
    close: () => stopServing(server, sockets),
  }
}

function endOf(bytes: Buffer): number {
  const head = bytes.indexOf('\r\n\r\n')
  if (head === -1) return -1
  return head + 4 + Number(/content-length:\s*(\d+)/i.exec(bytes.toString('latin1', 0, head))?.[1] ?? 0)
}

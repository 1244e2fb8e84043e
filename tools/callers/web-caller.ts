/** Owns a web call placed from a program: it speaks the signaling socket as the browser client does. For the self-test, tests and load tests. */
import { WebSocket } from 'ws'
import type { WebCaller } from '../../gateway/werift/caller.ts'
import { ServerMessage, type ClientMessage } from '../../model/signaling.ts'

export type PlaceWebCallOptions = {
  /** Without the token. */
  readonly signalingUrl: string
  readonly token: string
  /** Comes back to a call, in place of the token; so many messages of the call had arrived. An offer is made only where the service asks for it. */
  readonly resume?: { readonly token: string; readonly received: number }
  createCaller(): WebCaller
  onMessage(message: ServerMessage): void
  readonly origin?: string
}

export type WebCall = {
  readonly callId: string
  readonly sessionId: string
  readonly resumeToken: string
  readonly caller: WebCaller
  sendMessage(message: ClientMessage): void
  /** The close code of the socket, when it closes. */
  readonly socketClosed: Promise<number>
  /** Cuts the socket without a word, as a lost network does; media goes on. */
  drop(): void
  /** Says bye and closes everything. Idempotent. */
  hangUp(): Promise<void>
}

/** Resolves when `ready` came and the offer, where one is due, is sent; the answer is taken in the background. Rejects with the HTTP status when refused. */
export async function placeWebCall(options: PlaceWebCallOptions): Promise<WebCall> {
  const caller = options.createCaller()
  const socket = connect(options)
  const ready = Promise.withResolvers<Extract<ServerMessage, { type: 'ready' }>>()
  const socketClosed = Promise.withResolvers<number>()

  function receive(text: string): void {
    const message = ServerMessage.parse(JSON.parse(text))
    if (message.type === 'ready') ready.resolve(message)
    if (message.type === 'answer') caller.accept(message.sdp).catch(() => socket.close(1000))
    if (message.type === 'candidate') void caller.addCandidate(message.candidate)
    options.onMessage(message)
  }

  socket.on('message', (content: Buffer) => receive(content.toString()))
  socket.on('unexpected-response', (_request, response) => {
    response.resume()
    ready.reject(new Error(`the signaling socket was refused with ${response.statusCode}`))
    socket.terminate()
  })
  socket.on('error', (error) => ready.reject(error))
  socket.on('close', (code) => {
    ready.reject(new Error(`the signaling socket was closed with ${code}`))
    socketClosed.resolve(code)
  })
  const sendMessage = (message: ClientMessage): void => socket.send(JSON.stringify(message), () => undefined)
  try {
    const { callId, sessionId, resumeToken, newOffer = false } = await ready.promise
    if (newOffer || !options.resume) sendMessage({ type: 'offer', sdp: await caller.offer() })
    return {
      callId,
      sessionId,
      resumeToken,
      caller,
      sendMessage,
      socketClosed: socketClosed.promise,
      drop: () => socket.terminate(),
      async hangUp() {
        if (socket.readyState === WebSocket.OPEN) sendMessage({ type: 'bye' })
        socket.close(1000)
        await Promise.all([caller.close(), socketClosed.promise])
      },
    }
  } catch (error) {
    socket.terminate()
    await caller.close()
    throw error
  }
}

function connect({ signalingUrl, token, resume, origin }: PlaceWebCallOptions): WebSocket {
  const url = new URL(signalingUrl)
  if (resume) url.searchParams.set('resume', resume.token)
  else url.searchParams.set('token', token)
  if (resume) url.searchParams.set('received', String(resume.received))
  return new WebSocket(url, { ...(origin !== undefined && { origin }), handshakeTimeout: 10_000 })
}

/** Owns one WebSocket to a provider: JSON both ways, bounded, with a reason when it cannot be opened or is lost. Reasons carry neither URL nor key. */
import { WebSocket } from 'ws'
import type { Clock } from '../../../model/clock.ts'
import { EngineRefusal } from '../../../model/voice-engine.ts'

export type JsonSocket = {
  /** False when it is not sent: the socket is closed, or the provider does not read any more. */
  send(message: object): boolean
  /** Idempotent; nothing is told after it. Without an answer to its close frame the socket is cut after a second. */
  close(): void
}

type Options = {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Providers repeat a key that they refuse: it is in nothing that is told. */
  readonly key: string
  readonly clock: Clock
  /** Nobody waits for it any more, while it is being opened. */
  readonly signal?: AbortSignal
  /** Objects only: anything else closes the socket with `onLost`. */
  onMessage(message: Readonly<Record<string, unknown>>): void
  /** At most once, after it was open, and not after `close`. `code` is that of the close frame, 1006 without one. */
  onLost(details: string, code: number): void
}

const openTimeout = 10_000
const closeTimeout = 1_000
/** One message of a provider; a second of sound has 64 kB in base64. */
const maxPayload = 16 * 1024 * 1024
/** What a provider that does not read may leave with us: some ten seconds of sound. */
const maxBuffered = 1024 * 1024
/** A network that is cut says nothing. Providers under load have taken 30 s to answer a ping. */
const pingEvery = 15_000
const silentFor = 60_000
/** RFC 6455 §7.4.1: unsupported data. */
const unsupported = 1003

/** Rejects with EngineRefusal: 401, 403, 404, 400 and an address that is none are for good, anything else may pass. */
export function openJsonSocket(options: Options): Promise<JsonSocket> {
  const { onMessage, onLost, clock, key, signal } = options
  const { promise, resolve, reject } = Promise.withResolvers<JsonSocket>()
  const socket = socketTo(options)
  if (socket === null) return Promise.reject(new EngineRefusal('its address is none', false))
  let over = false
  let cause = ''

  const close = (code = 1000): void => {
    over = true
    if (socket.readyState === WebSocket.CONNECTING) return socket.terminate()
    socket.close(code)
    const cancel = clock.after(closeTimeout, () => socket.terminate())
    socket.once('close', cancel)
  }
  const lose = (details: string, code: number): void => {
    if (over) return
    over = true
    onLost(details, code)
  }
  socket.on('message', (bytes: Buffer) => {
    if (over) return
    const message = parsed(bytes)
    if (message !== null) return onMessage(message)
    lose('it sent what is no JSON object', unsupported)
    close(unsupported)
  })
  watchForSilence(socket, clock, () => lose('the provider has not been heard for a minute', 1006))
  const giveUp = (): void => {
    over = true
    reject(new EngineRefusal('nobody waits for it any more', true))
    socket.terminate()
  }
  signal?.addEventListener('abort', giveUp, { once: true })
  socket.on('open', () => {
    signal?.removeEventListener('abort', giveUp)
    resolve({ send, close: () => close() })
  })
  socket.on('unexpected-response', (request, response) => {
    const status = response.statusCode ?? 0
    over = true
    reject(new EngineRefusal(`it answered ${status}`, ![400, 401, 403, 404].includes(status)))
    response.resume()
    request.destroy()
  })
  socket.on('error', (error) => {
    cause = withoutKey(error.message, key)
    reject(new EngineRefusal(`it cannot be reached: ${reasonOf(error)}`, true))
  })
  socket.on('close', (code, reason) => {
    const said = withoutKey(reason.toString('utf8').slice(0, 300), key) || cause
    reject(new EngineRefusal(`it closed the connection (${code}${said && `: ${said}`})`, true))
    lose(`the connection was lost (${code}${said && `: ${said}`})`, code)
  })

  const send = (message: object): boolean => {
    if (over || socket.readyState !== WebSocket.OPEN || socket.bufferedAmount > maxBuffered) return false
    socket.send(JSON.stringify(message))
    return true
  }
  return promise
}

/** Also where most of it is starred out. */
const withoutKey = (text: string, key: string): string => text.replaceAll(key, '[key]').replace(/\S*\*\S*/g, '[key]')

/** Null for an address that is none: the error of the library repeats it, with the key that may stand in it. */
function socketTo({ url, headers }: Options): WebSocket | null {
  try {
    return new WebSocket(url, {
      headers: { ...headers },
      maxPayload,
      perMessageDeflate: false,
      handshakeTimeout: openTimeout,
    })
  } catch {
    return null
  }
}

/** Pings an open socket as long as it lives; ends one that has said nothing for long. */
function watchForSilence(socket: WebSocket, clock: Clock, silent: () => void): void {
  let heardAt = clock.now()
  let stop = (): void => {}
  const heard = (): void => {
    heardAt = clock.now()
  }
  const ping = (): void => {
    if (clock.now() - heardAt > silentFor) {
      silent()
      return socket.terminate()
    }
    socket.ping()
    stop = clock.after(pingEvery, ping)
  }
  socket.on('open', () => {
    heard()
    stop = clock.after(pingEvery, ping)
  })
  socket.on('pong', heard)
  socket.on('message', heard)
  socket.on('close', () => stop())
}

const reasonOf = (error: Error & { readonly code?: string }): string => error.code ?? error.message

/** Some providers send JSON in binary frames. */
function parsed(bytes: Buffer): Readonly<Record<string, unknown>> | null {
  try {
    const message: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof message === 'object' && message !== null && !Array.isArray(message)
      ? (message as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

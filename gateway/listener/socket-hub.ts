/** Owns the WebSockets of one listener, whatever the driver: limits, heartbeat, and that `closed` is called exactly once and last. */
import type { SocketConnection, SocketDecision, SocketHandlers, SocketRoute } from '../../model/listener.ts'

/** What a driver's socket can do. None of it throws, also on a socket that is gone. */
export type RawSocket = {
  send(text: string): void
  /** Bytes given to `send` that the system has not taken yet. */
  bufferedBytes(): number
  ping(): void
  /** Sends a close frame and goes away within seconds. */
  close(code: number, reason: string): void
  /** Goes away at once. */
  cut(): void
}

/** What a driver reports of its socket. */
export type SocketEvents = {
  text(text: string): void
  binary(): void
  oversized(): void
  pong(): void
  /** The socket is gone or going, for this reason. */
  gone(code: number): void
}

export type Accepted = Extract<SocketDecision, { accept: true }>

type OpenSocket = {
  readonly events: SocketEvents
  /** Once, at first: the application may send and close at once. */
  begin(accepted: Accepted): void
  beat(): void
  close(code: number, reason: string): void
}

export type SocketHub = ReturnType<typeof createSocketHub>

export function createSocketHub(pingInterval: number) {
  const open = new Set<OpenSocket>()
  const heart = setInterval(() => {
    for (const socket of open) socket.beat()
  }, pingInterval)
  heart.unref()

  function adopt(raw: RawSocket, route: SocketRoute, accepted: Accepted): SocketEvents {
    const socket = createSocket(raw, route, () => open.delete(socket))
    open.add(socket)
    socket.begin(accepted)
    return socket.events
  }

  return {
    adopt,
    closeAll(code: number, reason: string): void {
      for (const socket of open) socket.close(code, reason)
    },
    close: () => clearInterval(heart),
  }
}

/** A connection that was accepted but whose client had left: the application hears of both, in this order. */
export function adoptGone(accepted: Accepted): void {
  const handlers = accepted.open({ send: () => 'dropped', close: () => undefined })
  queueMicrotask(() => handlers.closed(1006))
}

function createSocket(raw: RawSocket, route: SocketRoute, ended: () => void): OpenSocket {
  let handlers: SocketHandlers | null = null
  let isOver = false
  let alive = true
  let patience: NodeJS.Timeout | undefined

  /** Later and not now: the application may be in the middle of `open`, `send` or `close`. */
  function finish(code: number): void {
    if (isOver) return
    isOver = true
    clearTimeout(patience)
    ended()
    queueMicrotask(() => handlers?.closed(code))
  }

  function close(code: number, reason: string): void {
    if (isOver) return
    raw.close(code, reason)
    finish(code)
  }

  function send(text: string): 'sent' | 'dropped' {
    if (isOver) return 'dropped'
    if (raw.bufferedBytes() + Buffer.byteLength(text) > route.maxBufferedBytes) {
      close(1013, 'too slow')
      return 'dropped'
    }
    raw.send(text)
    return 'sent'
  }

  /** Who has not answered the last ping is not there any more. */
  function beat(): void {
    if (!alive) {
      raw.cut()
      return finish(1006)
    }
    alive = false
    raw.ping()
  }

  function text(message: string): void {
    alive = true
    clearTimeout(patience)
    if (!isOver) handlers?.message(message)
  }

  const connection: SocketConnection = { send, close }
  const events: SocketEvents = {
    text,
    binary: () => close(1003, 'text frames only'),
    oversized: () => close(1009, 'too long'),
    pong: () => void (alive = true),
    gone: finish,
  }
  function begin(accepted: Accepted): void {
    handlers = accepted.open(connection)
    const { firstMessageWithin } = accepted
    if (firstMessageWithin === undefined || isOver) return
    patience = setTimeout(() => close(1008, 'no message'), firstMessageWithin)
    patience.unref()
  }
  return { events, begin, beat, close }
}

/** Owns the port of the front door: one HTTP and WebSocket listener, several drivers, the application behind it as plain functions. */
import type { Clock } from './clock.ts'

export type RequestInfo = {
  /** The peer's IP address, without port. */
  readonly remoteAddress: string
  /** To be called when the request has shown who sends it, by a good key: its connection is then among the last that are closed for others. */
  readonly proved?: () => void
}

/**
 * The application: fetch-style, and it never throws (its own rim renders errors). The body of a request is on its way while it is asked: reading
 * it rejects with a Problem when it is too large (413), or when there is no room for it (503), and one that is not read costs no memory.
 */
export type Fetch = (request: Request, info: RequestInfo) => Promise<Response>

export type SocketConnection = {
  /** `dropped`: the socket is closed, or more than `maxBufferedBytes` wait for a slow reader (then the socket is closed too, 1013). */
  send(text: string): 'sent' | 'dropped'
  close(code: number, reason: string): void
}

export type SocketHandlers = {
  message(text: string): void
  /** At most once, and nothing comes after it. Binary and oversized frames close the socket (1003, 1009) before any handler. */
  closed(code: number): void
}

export type SocketDecision =
  | {
      readonly accept: true
      /** Ms; a client that has sent no text by then is closed with 1008. Absent: it may be silent. */
      readonly firstMessageWithin?: number
      open(connection: SocketConnection): SocketHandlers
    }
  /** Answered with this response instead of an upgrade. */
  | { readonly accept: false; readonly response: Response }

export type SocketRoute = {
  /** Asked before the upgrade; the request has URL and headers and no body. */
  upgrade(request: Request, info: RequestInfo): Promise<SocketDecision>
  /** A text frame over this many bytes closes the socket with 1009. */
  readonly maxFrameBytes: number
  /** What may wait unsent for one slow reader. */
  readonly maxBufferedBytes: number
}

export type ListenerOptions = {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly tls: { readonly cert: string; readonly key: string } | null
  /** A body that says to be longer is answered with the application's own 413, see `tooLarge`; one that turns out to be, as Fetch says. */
  readonly maxBodyBytes: number
  /** Where it is another; null: as elsewhere. */
  readonly maxBodyBytesFor?: (method: string, path: string) => number | null
  /** Ms from the first byte. A request whose head and body have not arrived by then is dropped. */
  readonly requestTimeout: number
  readonly clock: Clock
  readonly fetch: Fetch
  /** Renders the 413, so that the error shape stays the application's. */
  tooLarge(request: Request, info: RequestInfo): Response
  /** By exact path. */
  readonly sockets: Readonly<Record<string, SocketRoute>>
}

export type Listener = {
  /** `uws` or `node`: which driver serves. */
  readonly driver: string
  /** The port that was bound. */
  readonly port: number
  /** Stops accepting at once, lets running requests finish for `graceMs`, closes sockets with 1001, then cuts what is left. Idempotent. */
  close(graceMs: number): Promise<void>
}

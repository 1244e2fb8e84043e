/** Owns what a listener bounds by itself, the same for every driver. */
import { isLoopback } from '../../net/addresses.ts'

export type Limits = {
  /** A socket that was silent for so long is pinged, and closed when it stays silent as long again. */
  readonly pingInterval: number
  /** WebSockets are among them. Who comes then takes the place of a connection that waits, or is closed at once; see connection-places.ts. */
  readonly maxConnections: number
  /** The same, of one client address. */
  readonly maxConnectionsPerAddress: number
  /** Addresses that stand for many clients: they are bounded only by the number in all. */
  readonly isExempt: (address: string) => boolean
  /** Ms from the connection, or from the first byte of a request, to the end of the request's head; with TLS also of the handshake. */
  readonly headerTimeout: number
  /** Ms in which a client must take 64 KiB of its answer, or what is left of it. */
  readonly writeTimeout: number
  /** Of all requests whose bodies are held at this moment. Beyond it they are answered 503. */
  readonly maxBodyBytesInFlight: number
}

export const defaultLimits: Limits = {
  pingInterval: 30_000,
  // Below what a process may have open by default, so that calls, recordings and the database keep theirs.
  maxConnections: 10_000,
  maxConnectionsPerAddress: 1_000,
  isExempt: isLoopback,
  headerTimeout: 10_000,
  writeTimeout: 30_000,
  maxBodyBytesInFlight: 64 * 1024 * 1024,
}

/** What a client that sent too much may go on sending, so that it reads the answer instead of a reset. */
export const lingerTimeout = 1_000

/** Owns what a listener bounds by itself, the same for every driver. */

export type Limits = {
  /** A socket that was silent for so long is pinged, and closed when it stays silent as long again. */
  readonly pingInterval: number
  /** WebSockets are among them. One more is closed at once. */
  readonly maxConnections: number
}

export const defaultLimits: Limits = {
  pingInterval: 30_000,
  // Below what a process may have open by default, so that calls, recordings and the database keep theirs.
  maxConnections: 10_000,
}

/** What a client that sent too much may go on sending, so that it reads the answer instead of a reset. */
export const lingerTimeout = 1_000

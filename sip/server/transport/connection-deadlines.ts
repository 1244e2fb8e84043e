/** Owns how long a connection may live without being of use, and when it wants a keep-alive. RFC 5626 §4.4.1. */

export type DeadlineLimits = {
  /** Ms from the connection to its first message; for those that others open. */
  readonly firstMessage: number
  /** Ms a message may take from its first byte to its last. */
  readonly messageTime: number
  /** Ms without a message, either way. */
  readonly idle: number
  /** The same, of a peer that nobody here knows and that has no call. */
  readonly strangerIdle: number
  /** Ms between two keep-alives on connections we opened. 0: none. */
  readonly keepAlive: number
  /** Ms without a byte after a request: the longest a transaction waits. Then the way is dead, and the next call is to take another. */
  readonly unanswered: number
}

export type Deadlines = {
  /** A whole message came. */
  received(): void
  /** Bytes came, and part of a message waits or does not. */
  left(isPartial: boolean): void
  /** `request`: it wants an answer. */
  sent(kind: 'request' | 'message' | 'keepAlive'): void
  /** Any bytes came: the way is good. */
  heard(): void
  /** Why it is to be cut now; null: it is not. */
  expired(isStranger: boolean): string | null
  wantsKeepAlive(): boolean
}

export function createDeadlines(limits: DeadlineLimits, isOurs: boolean, now: () => number): Deadlines {
  const opened = now()
  /** One we opened has been of use from the beginning. */
  let wasUseful = isOurs
  let [lastUse, lastSent] = [opened, opened]
  let partialSince: number | null = null
  let askedSince: number | null = null
  return {
    received() {
      wasUseful = true
      lastUse = now()
      partialSince = null
    },
    left(isPartial) {
      partialSince = isPartial ? (partialSince ?? now()) : null
    },
    sent(kind) {
      lastSent = now()
      if (kind !== 'keepAlive') lastUse = lastSent
      if (kind === 'request') askedSince ??= lastSent
    },
    heard: () => void (askedSince = null),
    expired(isStranger) {
      const at = now()
      // What is not complete after a while never will be, however it trickles.
      if (partialSince !== null && at - partialSince >= limits.messageTime) return 'a message did not come to its end'
      if (!wasUseful && at - opened >= limits.firstMessage) return 'no message came'
      if (askedSince !== null && at - askedSince >= limits.unanswered) return 'the peer answers nothing'
      return at - lastUse >= (isStranger ? Math.min(limits.idle, limits.strangerIdle) : limits.idle) ? 'idle' : null
    },
    wantsKeepAlive: () => isOurs && limits.keepAlive > 0 && now() - lastSent >= limits.keepAlive,
  }
}

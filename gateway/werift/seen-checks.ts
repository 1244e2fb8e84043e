/**
 * Owns which connectivity checks of one call have come: a stranger on the way may send a check of the client once more from an address of
 * its own, and nothing in a check says where it was sent from (RFC 8445 §19.4). Pure.
 */

export type SeenChecks = {
  /** False: this check came from another address before. It may come again from the same one, because requests are repeated. */
  take(transactionId: Buffer, from: string): boolean
}

/** More than three quarters of an hour at the pace of Chromium, which checks every 2.5 s; two words each. */
const remembered = 1024

export function createSeenChecks(): SeenChecks {
  const ids: number[] = []
  const origins: number[] = []
  let next = 0
  return {
    take(transactionId, from) {
      const id = hashOf(transactionId)
      const origin = hashOf(Buffer.from(from))
      const at = ids.indexOf(id)
      if (at >= 0) return origins[at] === origin
      ids[next] = id
      origins[next] = origin
      next = (next + 1) % remembered
      return true
    },
  }
}

/** FNV-1a, 32 bits: ids are random, and one in millions of checks may go unanswered. */
function hashOf(bytes: Buffer): number {
  let hash = 0x811c_9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x0100_0193)
  return hash | 0
}

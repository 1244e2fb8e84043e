/** Owns how long one waits with a re-INVITE that met one of the peer (491). RFC 3261 §14.1. Pure. */

/** Ms: least, most. Where nobody knows any more who made the Call-ID, either may be. */
const waits = { ours: [2_100, 4_000], theirs: [0, 2_000], unknown: [0, 4_000] } as const

/** Ms, in steps of 10. `callId`: who made it; `chance`: 0 ≤ x < 1. */
export function glareWaitOf(callId: keyof typeof waits, chance: number): number {
  const [least, most] = waits[callId]
  return least + Math.floor((chance * (most - least)) / 10) * 10
}

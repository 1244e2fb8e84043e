/** Owns how long a call whose browser has lost its leg waits for it to come back by another process. Pure. */
import type { CallFact } from '../call-event.ts'

/** Ms that a call talks without a leg. A browser finds out at once, and tries again after 250, 500 and 1,000 ms. */
const returnWithin = 5_000
/** However late it was noticed. */
const leastPatience = 1_000

type Left = Extract<CallFact, { type: 'leg_disconnected' }>

export const waitForReturn = [
  'noteLegLeft',
  {
    type: 'wait',
    params: ({ event: { silentFor = 0 } }: { event: Left }) => ({
      deadline: 'return' as const,
      ms: Math.max(leastPatience, returnWithin - silentFor),
    }),
  },
] as const

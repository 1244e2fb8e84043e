/**
 * Owns what an actor asks of the telephone edges over the bus: place this call. One edge takes the request, makes the leg of the call and
 * dials; from then on actor and leg talk as in leg.ts. An actor that took over asks the leg first, so a call is never dialed twice.
 */
import { z } from 'zod'
import { PhoneNumber } from './phone-number.ts'
import { CallHeaders } from './sip-facts.ts'

/** Subject of the requests; edges listen as one queue. */
export const dialSubject = 'sip.dial'

export const DialRequest = z.object({
  callId: z.uuid(),
  epoch: z.number().int(),
  accountId: z.uuid(),
  workerId: z.uuid(),
  fromNumber: PhoneNumber,
  toNumber: PhoneNumber,
  /** Ms of ringing, over all gateways together; then the outcome is `no_answer`. */
  ringTimeout: z.number().positive(),
  /** On the INVITE; absent in requests of before. */
  headers: CallHeaders.optional(),
})
export type DialRequest = z.infer<typeof DialRequest>

export const DialReply = z.discriminatedUnion('type', [
  /** The leg is there; how it goes comes as its events. */
  z.object({ type: z.literal('dialing') }),
  /** Nothing was sent to anybody. `details` is for people. */
  z.object({ type: z.literal('refused'), details: z.string() }),
])
export type DialReply = z.infer<typeof DialReply>

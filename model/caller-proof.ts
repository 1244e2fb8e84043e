/** Owns whether the number of a caller proves who calls. Anybody can have any number shown. docs/security.md "Caller ID". */
import { z } from 'zod'
import type { Direction, Transport } from './call.ts'

export const CallerProof = z.enum(['verified', 'unverified'])
export type CallerProof = z.infer<typeof CallerProof>

type Called = {
  readonly direction: Direction
  readonly transport: Transport
  /** What the edge found out; null where nobody looked. */
  readonly callerVerified: boolean | null
}

/** Null: the account itself named who is on the line, by whom it calls or with its web call. */
export function callerProofOf({ direction, transport, callerVerified }: Called): CallerProof | null {
  if (direction !== 'inbound' || transport !== 'sip_trunk') return null
  return callerVerified === true ? 'verified' : 'unverified'
}

/** Owns what an operator may ask of calls that are still to come: that they are captured from their answer on. docs/observability.md "Captures of calls to come". */
import { z } from 'zod'
import { CapturedRtp } from './call-capture.ts'
import type { AccountId, CallId, WorkerId } from './ids.ts'

/** Bounded in time, in calls, and in what is kept of each. */
export const StandingCaptureWish = z.strictObject({
  hours: z.number().int().min(1).max(168),
  calls: z.number().int().min(1).max(200).default(20),
  rtp: CapturedRtp.default('headers'),
  /** Of each call. */
  minutes: z.number().int().min(1).max(60).default(10),
})
export type StandingCaptureWish = z.infer<typeof StandingCaptureWish>

/** One per worker, and one for all workers of an account. */
export type StandingCapture = {
  readonly accountId: AccountId
  /** Null: of any. */
  readonly workerId: WorkerId | null
  readonly rtp: CapturedRtp
  readonly minutes: number
  readonly mostCalls: number
  /** Of those that were captured for it. */
  readonly callIds: readonly CallId[]
  /** Ms since the epoch. */
  readonly endsAt: number
}

/** Bytes of a minute of G.711 both ways, by what is written of each packet (net/pcap.ts): twice fifty in a second. */
const bytesOfMinute = { headers: 60 * 100 * 56, sound: 60 * 100 * 216 } as const
/** As media/leg/leg-capture.ts ends a file. */
const mostOfCall = 64 << 20

/** Bytes on the disk that all of it may come to. */
export const mostBytesOf = ({ rtp, minutes, calls }: StandingCaptureWish): number =>
  calls * Math.min(mostOfCall, minutes * bytesOfMinute[rtp])

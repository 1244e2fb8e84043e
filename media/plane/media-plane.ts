/**
 * Owns the port between the edges, which signal, and what carries sound: in this thread (local-plane.ts) or in threads of its own
 * (remote-plane.ts). An edge that opens a line is told where a peer finds it, and later makes the leg of its call on it. docs/design/media.md "Where sound is carried"
 */
import type { CallId } from '../../model/ids.ts'
import type { IceCandidate, LegHandlers, LegSignaling, Presence } from '../../model/rtp-transport.ts'
import type { PhoneLine } from './phone-line.ts'

export type MediaPlane = {
  /** A line for a phone call: with ports, and without a leg until its call is known. Rejects with NoPortsLeft where there are none. */
  openPhone(): Promise<PhoneCallLine>
  /** A line for a browser. Its leg is made when the first offer was good. */
  openWeb: OpenWebMedia
}

export type PhoneCallLine = PhoneLine & {
  /** Once; the leg is on the bus when `opened` resolves. The line belongs to the leg from here on. */
  begin(wanted: PhoneLegWanted): PhoneLeg
}

export type PhoneLegWanted = {
  readonly callId: CallId
  /** The call had another leg before: it is one that came over. */
  readonly isFurther?: boolean
  readonly signaling: LegSignaling
  /** Ms from now until it must be answered. */
  readonly connectWithin: number
  /** The leg is done with the call: by `reason` (RtpTransport.close). */
  readonly hangUp: (reason: string | undefined) => void
  /** Once, when the leg and its line are gone. */
  readonly onClosed: () => void
}

export type PhoneLeg = {
  /** What the signaling knows. In order; nothing is told after the end. */
  readonly handlers: Pick<LegHandlers, (typeof phoneEvents)[number]>
  /** A key press that came by signaling. */
  dtmf(digit: string): void
  readonly opened: Promise<void>
  /** Idempotent. */
  close(reason?: string): Promise<void>
}

export const phoneEvents = [
  'ringing',
  'dialFailed',
  'connected',
  'disconnected',
  'alive',
  'transferred',
  'transferFailed',
] as const satisfies readonly (keyof LegHandlers)[]

export type WebMediaEvents = {
  /** The leg is over; the call may still have something to say. */
  legClosed(reason: string): void
  /** A leg that could not hang up or close as it should. */
  failed(error: unknown): void
  /** Nothing of it is left. */
  gone(): void
}

/** `isFurther`: its call had another leg before, by another process. */
export type OpenWebMedia = (callId: CallId, events: WebMediaEvents, isFurther?: boolean) => WebMedia

export type WebMedia = {
  /** The answer; see WebPeer. After a bad offer a better one may follow. */
  answer(offer: string): Promise<string>
  addCandidate(candidate: IceCandidate | null): Promise<void>
  dtmf(digits: string): void
  /** Words for the agent. Without a leg they are lost, as keys are. */
  typed(text: string): void
  /** False when there is no leg yet that could. */
  hangUp(details: string): boolean
  /** The client has got the last answer. */
  wasReached(): boolean
  presence(presence: Presence): void
  /** The client will not come back: a peer without a leg goes, a leg lives as long as its call. */
  release(): void
  /** Idempotent. */
  close(): Promise<void>
}

/** Owns what a media thread and its owner tell and ask each other, by object: see link.ts. A line has the same number on both sides; 0 is the whole. */
import type { CallId } from '../../model/ids.ts'
import type { IceCandidate, Presence } from '../../model/rtp-transport.ts'
import type { MediaSession } from '../rtp/media-session.ts'
import type { PhoneLine } from './phone-line.ts'
import type { phoneEvents } from './media-plane.ts'

/** What a line lets its owner see at any time without being asked: numbers in shared memory. */
export const mirrored = { hearsKeys: 0, packets: 1, reached: 2 } as const
export const createMirror = (): SharedArrayBuffer => new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * 3)

/** Whose leg it is, or will be. */
export type FarCall = { readonly callId: CallId; readonly isFurther: boolean }

/** Of the thread. */
export type PlaneMethods = {
  openPhone(line: number, mirror: SharedArrayBuffer): Promise<PhoneLine['local']>
  openWeb(line: number, of: FarCall, mirror: SharedArrayBuffer): void
  closeLeg(callId: CallId, reason: string): Promise<void>
  /** Says that the thread lives, where its owner looks for it. */
  beat(): void
  /** Everything in order; resolves when nothing is left. */
  close(): Promise<void>
}

export type PhoneMethods = {
  use(session: MediaSession): void
  begin(of: FarCall, connectWithin: number): Promise<void>
  event(name: (typeof phoneEvents)[number], args: readonly unknown[]): void
  dtmf(digit: string): void
  closeLeg(reason: string | undefined): Promise<void>
  close(reason: string | undefined): Promise<void>
}

export type WebMethods = {
  answer(offer: string): Promise<string>
  addCandidate(candidate: IceCandidate | null): Promise<void>
  dtmf(digits: string): void
  typed(text: string): void
  hangUp(details: string): void
  presence(presence: Presence): void
  release(): void
  close(): Promise<void>
}

/** Of the owner. */
export type OwnerMethods = {
  legBegan(callId: CallId): void
  legEnded(callId: CallId): void
}

export type PhoneOwnerMethods = {
  answer(): void
  transfer(to: string): Promise<{ readonly accepted: true } | { readonly accepted: false; readonly details: string }>
  sendDtmf(digits: string): boolean | Promise<boolean>
  hangUp(reason: string | undefined): void
  closed(): void
}

export type WebOwnerMethods = {
  legClosed(reason: string): void
  failed(message: string): void
  gone(): void
}

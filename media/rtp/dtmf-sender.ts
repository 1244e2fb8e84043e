/**
 * Owns pressing keys towards the peer: telephone events, one packet per tick of 20 ms. A press is many packets with one timestamp and a
 * duration that counts up, the first with the marker, the last sent three times with the end bit; then a pause. RFC 4733 §2.5.1.
 */
import { frameMs } from '../../model/frame.ts'

export type DtmfPacket = {
  readonly marker: boolean
  /** Of the beginning of the press. */
  readonly timestamp: number
  readonly payload: Uint8Array
}

export type DtmfSender = {
  /** False, and nothing of it is pressed: too many keys wait. Other characters than keys are passed over. */
  readonly press: (digits: string) => boolean
  /** A press or the pause after it is under way, or a key waits. */
  readonly isBusy: () => boolean
  /** Forgets what waits and what is being pressed. */
  readonly clear: () => void
  /** The next 20 ms, in RTP units of the clock; null is a part of the pause. Called while busy, once per tick. */
  readonly next: (timestamp: number, clockRateHz: number) => DtmfPacket | null
}

/** Ms. Exchanges want 40 at least (ITU-T Q.24); slow ones want more, and a menu that is listened to over a bad line too. */
export type DtmfTiming = { readonly press: number; readonly pause: number }

const usual: DtmfTiming = { press: 120, pause: 100 }
const keys = '0123456789*#ABCD'
const maxWaiting = 64
/** -10 dBm0. */
const volume = 10
const endBit = 0x80
const longestSegment = 0xffff
/** The end is sent this often, at the pace of the press (§2.5.1.4). */
const ends = 3

type Press = {
  readonly event: number
  /** Ticks since the beginning, this one included. */
  tick: number
  /** Where the segment began, and how much of the press lay before it. */
  start: number
  before: number
}

export function createDtmfSender(timing: DtmfTiming = usual): DtmfSender {
  const pressTicks = Math.max(1, Math.round(timing.press / frameMs))
  const pauseTicks = Math.max(ends, Math.round(timing.pause / frameMs))
  const waiting: number[] = []
  let press: Press | null = null

  /** Where the duration says no more, a new segment goes on (§2.5.1.3). */
  const nextSegment = (current: Press) => {
    current.start = (current.start + longestSegment) >>> 0
    current.before += longestSegment
  }

  const packetOf = (current: Press, perTick: number): DtmfPacket => {
    const { event, start, tick } = current
    const full = Math.min(tick, pressTicks) * perTick - current.before
    const duration = Math.min(longestSegment, full)
    const end = tick >= pressTicks && full <= longestSegment ? endBit : 0
    if (full > longestSegment) nextSegment(current)
    const payload = Uint8Array.of(event, end | volume, duration >> 8, duration & 0xff)
    return { marker: tick === 1, timestamp: start, payload }
  }

  return {
    press(digits) {
      const events = digits
        .split('')
        .map((digit) => keys.indexOf(digit))
        .filter((event) => event >= 0)
      if (waiting.length + events.length > maxWaiting) return false
      waiting.push(...events)
      return true
    },
    clear() {
      waiting.length = 0
      press = null
    },
    isBusy: () => press !== null || waiting.length > 0,
    next(timestamp, clockRateHz) {
      press ??= { event: waiting.shift() ?? 0, tick: 0, start: timestamp, before: 0 }
      const current = press
      current.tick++
      if (current.tick >= pressTicks + pauseTicks) press = null
      return current.tick < pressTicks + ends ? packetOf(current, (clockRateHz * frameMs) / 1000) : null
    },
  }
}

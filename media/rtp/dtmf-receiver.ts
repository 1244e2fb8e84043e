/**
 * Owns telephone events: packets of one key press become one digit. A press is many packets with one timestamp (RFC 4733 §2.5.1), the
 * last of them repeated with the end bit. The digit is told by the first packet that arrives, whichever it is, so that no lost
 * packet loses the digit and a lost end delays nothing. Senders whose clock stands still between presses, or runs on within one, are understood.
 */
import type { RtpPacket } from '../../model/rtp-transport.ts'

export type DtmfReceiver = {
  /** The digit when the packet is the first of its press, else null. */
  readonly receive: (packet: RtpPacket) => string | null
}

const digits = '0123456789*#ABCD'
const longestSegment = 0xffff
/** Presses that are remembered: repeated ends may come after the next press began. */
const remembered = 4

export function createDtmfReceiver(): DtmfReceiver {
  const heard: number[] = []
  let last: Press | null = null

  return {
    receive({ payload, timestamp, marker }) {
      const press = pressOf(payload, timestamp)
      if (press === null) return null
      const isOld = heard.includes(timestamp)
      const known = isOld && !(last !== null && isAnother(press, last, marker))
      const continued = !known && !marker && last !== null && continues(press, last)
      if (!isOld && heard.push(timestamp) > remembered) heard.shift()
      if (!known || last?.timestamp === timestamp) last = press
      return known || continued ? null : (digits[press.event] ?? null)
    },
  }
}

type Press = { readonly event: number; readonly ended: boolean; readonly duration: number; readonly timestamp: number }

/** RFC 4733 §2.3: event, E bit + R bit + volume, duration. */
function pressOf(payload: Uint8Array, timestamp: number): Press | null {
  if (payload.length < 4) return null
  const duration = (payload[2]! << 8) | payload[3]!
  return { event: payload[0]!, ended: (payload[1]! & 0x80) !== 0, duration, timestamp }
}

/** The timestamp is that of the press before: of a sender that sends nothing but keys. */
const isAnother = (press: Press, last: Press, marker: boolean): boolean =>
  press.timestamp === last.timestamp && (press.event !== last.event || (marker && last.ended && !press.ended))

/**
 * A press longer than the duration field can say goes on in a new segment, which starts where the field overflowed (§2.5.1.3). Some senders move the
 * timestamp on with each packet: by as much as the press lasts longer, and over the repeated end.
 */
function continues(press: Press, last: Press): boolean {
  if (press.event !== last.event) return false
  const elapsed = (press.timestamp - last.timestamp) >>> 0
  const longer = press.duration - last.duration
  if (last.ended) return press.ended && longer === 0 && elapsed < press.duration
  if (elapsed >= longestSegment && elapsed <= longestSegment + 1) return true
  return press.ended ? longer >= 0 && elapsed >= longer && elapsed < press.duration : elapsed === longer
}

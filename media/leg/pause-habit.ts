/**
 * Owns whether a peer sends nothing while its caller is silent, and says so by no comfort noise: behind such a pause the sequence goes on with the next
 * number, the timestamp with the time that has passed, and the marker says that somebody speaks again. RFC 3551 §4.1. What is lost on the way leaves
 * numbers out.
 */
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'

export type PauseHabit = {
  /** True: it has paused like that before. */
  heard(packet: RtpPacket, audio: NegotiatedAudio): boolean
  /** What came before says nothing of what comes: a hold, another codec. */
  forget(): void
}

/** Ms of a pause: shorter ones are jitter of a sender, longer ones are none of speech. */
const [shortest, longest] = [200, 60_000]
/** One alone may be a sender that was stuck. */
const pausesOfHabit = 2

export function createPauseHabit(): PauseHabit {
  let last: { readonly sequenceNumber: number; readonly timestamp: number } | null = null
  let pauses = 0

  const isBehindPause = ({ sequenceNumber, timestamp, marker }: RtpPacket, clockRateHz: number): boolean => {
    if (last === null || !marker || sequenceNumber !== ((last.sequenceNumber + 1) & 0xffff)) return false
    const passed = (((timestamp - last.timestamp) >>> 0) / clockRateHz) * 1000
    return passed >= shortest && passed <= longest
  }
  return {
    heard(packet, { payloadType, clockRateHz }) {
      if (packet.payloadType !== payloadType) last = null
      else {
        if (pauses < pausesOfHabit && isBehindPause(packet, clockRateHz)) pauses += 1
        last = packet
      }
      return pauses >= pausesOfHabit
    },
    forget: () => void (last = null),
  }
}

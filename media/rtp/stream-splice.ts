/**
 * Owns that the leg above hears one stream. A peer may change its SSRC in mid-call (transfer, music on hold, a gateway that sends key presses
 * as a source of their own), and sequence numbers and timestamps begin anew with it; here they are made to go on. Pure. RFC 3550 §8.
 */
import type { RtpPacket } from '../../model/rtp-transport.ts'

export type StreamSplice = {
  /** The same packet while there is but one source. */
  pass(ssrc: number, packet: RtpPacket, at: number): RtpPacket
  /** Timestamps count by another clock from here on. */
  use(clockRateHz: number): void
  /** What comes from here on is of another sender, also under an SSRC that was heard before. */
  forget(): void
}

type Source = { readonly ssrc: number; sequenceShift: number; timestampShift: number; highest: number }

/** The one that was heard longest ago is forgotten first. */
const maxSources = 4
const maxDriftMs = 2000

export function createStreamSplice(): StreamSplice {
  /** The one that is heard now is the last. */
  let sources: Source[] = []
  let clockRateHz = 8000
  /** What was passed on last, in the leg's numbering. */
  let highest = 0
  let timestamp = 0
  let passedAt = 0
  let hasPassed = false

  const shiftTo = (packet: RtpPacket): number => (highest + 1 - packet.sequenceNumber) & 0xffff

  /** What the timestamp would be if nothing had changed: as much later as time has passed. */
  const dueAt = (at: number): number => timestamp + Math.round(((at - passedAt) * clockRateHz) / 1000)

  function begin(ssrc: number, packet: RtpPacket, at: number): Source {
    const { sequenceNumber } = packet
    if (!hasPassed) return { ssrc, sequenceShift: 0, timestampShift: 0, highest: sequenceNumber }
    const timestampShift = (dueAt(at) - packet.timestamp) >>> 0
    return { ssrc, sequenceShift: shiftTo(packet), timestampShift, highest: sequenceNumber }
  }

  /** A source that has paused its clock meanwhile is brought up to date; one that runs beside the other keeps its own time. */
  function goOn(source: Source, packet: RtpPacket, at: number): Source {
    source.sequenceShift = shiftTo(packet)
    const off = (packet.timestamp + source.timestampShift - dueAt(at)) | 0
    if (Math.abs(off) > (maxDriftMs * clockRateHz) / 1000) source.timestampShift = (source.timestampShift - off) >>> 0
    return source
  }

  function sourceOf(ssrc: number, packet: RtpPacket, at: number): Source {
    const current = sources.at(-1)
    if (current?.ssrc === ssrc) return current
    const known = sources.find((source) => source.ssrc === ssrc)
    // A late packet of the source before is late for the leg as well.
    if (known && aheadOf(known, packet) <= 0) return known
    const next = known ? goOn(known, packet, at) : begin(ssrc, packet, at)
    sources = [...sources.filter((source) => source !== next), next].slice(-maxSources)
    return next
  }

  return {
    use: (rateHz) => void (clockRateHz = rateHz),
    forget: () => void (sources = []),
    pass(ssrc, packet, at) {
      const source = sourceOf(ssrc, packet, at)
      hasPassed = true
      const passed = shifted(packet, source)
      if (aheadOf(source, packet) < 0) return passed
      source.highest = packet.sequenceNumber
      highest = passed.sequenceNumber
      timestamp = passed.timestamp
      passedAt = at
      return passed
    },
  }
}

const aheadOf = ({ highest }: Source, { sequenceNumber }: RtpPacket): number => ((sequenceNumber - highest) << 16) >> 16

function shifted(packet: RtpPacket, { sequenceShift, timestampShift }: Source): RtpPacket {
  if (sequenceShift === 0 && timestampShift === 0) return packet
  return {
    ...packet,
    sequenceNumber: (packet.sequenceNumber + sequenceShift) & 0xffff,
    timestamp: (packet.timestamp + timestampShift) >>> 0,
  }
}

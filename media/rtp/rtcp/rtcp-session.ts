/**
 * Owns RTCP of one call: when a report is due, what it says, and what the peer's reports tell of the wire. Pure: packets, time and chance
 * are arguments. Two participants, so the interval is the least one of RFC 3550 §6.2, without reconsideration.
 */
import type { TransportQuality } from '../../../model/rtp-transport.ts'
import { createReception, type Reception } from './reception.ts'
import { writeRtcp, type ReceivedRtcp, type ReportBlock, type SenderPart } from './rtcp-wire.ts'

export type RtcpSession = {
  /** The call has media; again when the clock of the codec changed. */
  use(clockRateHz: number, at: number): void
  /** False: the call is on hold. What does not come then is not lost; a relay in between drops it, and its numbers go on. */
  expects(isExpected: boolean): void
  /** A packet went out. `octets`: its payload. */
  sent(timestamp: number, octets: number, at: number): void
  /** A packet of the peer came; see Reception for `timestamp`. */
  heard(ssrc: number, sequenceNumber: number, timestamp: number | null, at: number): void
  received(rtcp: ReceivedRtcp, at: number): void
  /** The time of the next report has come. */
  isDue(at: number): boolean
  /** The report, when its time has come. */
  due(at: number): Buffer | null
  /** Null when nothing was ever sent: who never spoke does not say goodbye (§6.3.7). */
  goodbye(at: number): Buffer | null
  quality(): TransportQuality
}

const interval = 5000
/** Between two ends the first one need not wait (§6.2); once there is something of ours to report on, it should not. */
const firstInterval = 500
/** Reports of ours that a peer may still answer to. */
const answerable = 4
/** About a millisecond, in 1/65536 s: on a short way the two clocks' rounding may exceed the trip. */
const roundedOff = 66
const maxJitterMs = 60_000

export function createRtcpSession(own: {
  readonly ssrc: number
  readonly cname: string
  /** 0 ≤ x < 1. */
  readonly random: () => number
}): RtcpSession {
  const sending = createSendingCount()
  const receiving = createReceivingCount()
  let peer: TransportQuality['peer'] = null
  let roundTripMs: number | null = null
  let clockRateHz = 0
  let dueAt = Number.POSITIVE_INFINITY
  let hasReported = false

  function write(at: number, isLast: boolean): Buffer {
    const { ssrc, cname } = own
    return writeRtcp({ ssrc, cname, sender: sending.report(at), block: receiving.report(at), isLast })
  }

  function believe({ fractionLost, packetsLost, jitter, lastReport, sinceLastReport }: ReportBlock, at: number): void {
    const jitterMs = Math.min(maxJitterMs, (jitter * 1000) / clockRateHz)
    const packetsSent = sending.packets()
    peer = { packetsSent, packetsLost: Math.max(0, packetsLost), fractionLost: fractionLost / 256, jitterMs }
    // §6.4.1: A - LSR - DLSR.
    const roundTrip = (middleOf(ntpOf(at)) - lastReport - sinceLastReport) | 0
    if (sending.hasReported(lastReport) && roundTrip > -roundedOff)
      roundTripMs = (Math.max(0, roundTrip) * 1000) / 65_536
  }

  return {
    use(rateHz, at) {
      if (rateHz === clockRateHz) return
      // The first one comes sooner (§6.2).
      if (clockRateHz === 0) dueAt = at + (interval / 2) * (0.5 + own.random())
      clockRateHz = rateHz
      sending.use(rateHz)
      receiving.use(rateHz)
    },
    sent(timestamp, octets, at) {
      if (!hasReported && !sending.hasSent()) dueAt = Math.min(dueAt, at + firstInterval * (0.5 + own.random()))
      sending.add(timestamp, octets, at)
    },
    expects: receiving.expects,
    heard: receiving.add,
    received({ ssrc, senderReport, blocks }, at) {
      if (senderReport !== null) receiving.reported(ssrc, senderReport, at)
      const block = blocks.find((one) => one.ssrc === own.ssrc)
      if (block && clockRateHz > 0) believe(block, at)
    },
    isDue: (at) => at >= dueAt,
    due(at) {
      if (at < dueAt) return null
      hasReported = true
      dueAt = at + interval * (0.5 + own.random())
      return write(at, false)
    },
    goodbye: (at) => (sending.hasSent() ? write(at, true) : null),
    quality: () => ({ ...receiving.quality(), roundTripMs, peer }),
  }
}

function createSendingCount() {
  let clockRateHz = 8000
  let packets = 0
  let octets = 0
  const last = { timestamp: 0, at: 0 }
  /** What had been sent at the report before the last, and at the last one (§6.4: a sender is who sent since the former). */
  let before = 0
  let reported = 0
  let answerables: number[] = []
  return {
    use: (rateHz: number) => void (clockRateHz = rateHz),
    hasReported: (middle: number) => answerables.includes(middle),
    hasSent: () => packets > 0,
    packets: () => packets,
    add(timestamp: number, bytes: number, at: number): void {
      packets += 1
      octets += bytes
      last.timestamp = timestamp
      last.at = at
    },
    report(at: number): SenderPart | null {
      const isSender = packets > before
      before = reported
      reported = packets
      if (!isSender) return null
      const [ntpSeconds, ntpFraction] = ntpOf(at)
      answerables = [...answerables, middleOf([ntpSeconds, ntpFraction])].slice(-answerable)
      const timestamp = last.timestamp + Math.round(((at - last.at) * clockRateHz) / 1000)
      return { ntpSeconds, ntpFraction, timestamp, packets, octets }
    },
  }
}

/** Of the source that is heard now; another one begins from nothing. */
function createReceivingCount() {
  let clockRateHz = 8000
  let source: { readonly ssrc: number; readonly reception: Reception; isNew: boolean } | null = null
  let peerReport: { readonly ssrc: number; readonly middle: number; readonly at: number } | null = null
  let lostBefore = 0
  let isExpected = true

  function forget(): void {
    lostBefore += source?.reception.lost() ?? 0
    source = null
  }

  return {
    use(rateHz: number): void {
      forget()
      clockRateHz = rateHz
    },
    expects(next: boolean): void {
      if (!isExpected) source?.reception.rest()
      isExpected = next
    },
    add(ssrc: number, sequenceNumber: number, timestamp: number | null, at: number): void {
      if (source?.ssrc !== ssrc) forget()
      source ??= { ssrc, reception: createReception(clockRateHz), isNew: true }
      source.isNew = true
      if (!isExpected) source.reception.rest()
      source.reception.add(sequenceNumber, timestamp, at)
    },
    reported: (ssrc: number, middle: number, at: number) => void (peerReport = { ssrc, middle, at }),
    /** Null when nothing came since the report before. */
    report(at: number): ReportBlock | null {
      if (!source?.isNew) return null
      source.isNew = false
      const known = peerReport?.ssrc === source.ssrc ? peerReport : null
      return {
        ssrc: source.ssrc,
        ...source.reception.report(),
        lastReport: known?.middle ?? 0,
        sinceLastReport: known ? delayOf(at - known.at) : 0,
      }
    },
    quality: () => ({
      packetsLost: lostBefore + (source?.reception.lost() ?? 0),
      jitterMs: source?.reception.jitterMs() ?? 0,
    }),
  }
}

/** §4: who has no notion of the time of day may count from anywhere. Seconds and their fraction, 32 bits each. */
const ntpOf = (at: number): readonly [number, number] => [
  Math.floor(at / 1000) % 0x1_0000_0000,
  Math.floor(((at % 1000) / 1000) * 0x1_0000_0000),
]

const middleOf = ([seconds, fraction]: readonly [number, number]): number =>
  (((seconds & 0xffff) << 16) | (fraction >>> 16)) >>> 0

/** DLSR (§6.4.1): ms as units of 1/65536 s. A slot of the ticker that runs late has a time from before the peer's last report. */
const delayOf = (ms: number): number => Math.min(0xffff_ffff, Math.max(0, Math.round((ms * 65_536) / 1000)))

/**
 * Owns what the packets of one call that arrive say about its way: losses by their numbers, jitter by RFC 3550 §6.4.1, and what comes too late to be
 * played by a player that holds 60 ms.
 */
import { mosOf } from '../../model/mos.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'

export type LineMeter = {
  add(packet: Pick<RtpPacket, 'sequenceNumber' | 'timestamp'>, at: number): void
  read(): LineQuality
}

export type LineQuality = {
  readonly received: number
  readonly lost: number
  readonly late: number
  /** Ms. */
  readonly jitter: number
  /** 0 to 1; null before the first packet. */
  readonly loss: number | null
  readonly mos: number | null
}

/** What a usual player holds, ms: a frame that comes later than this behind the quickest of late is not played. */
const playedWithin = 60
/** The sender's time and ours have parted: it paused, or began anew. */
const parted = 2_000

export function createLineMeter({ codec, clockRateHz }: Pick<NegotiatedAudio, 'codec' | 'clockRateHz'>): LineMeter {
  const perMs = clockRateHz / 1000
  let [received, late, jitter, missing] = [0, 0, 0, 0]
  let last: { sequence: number; timestamp: number; transit: number } | null = null
  let quickest = Number.POSITIVE_INFINITY
  /** Of the timestamp, which wraps. */
  let line = 0
  return {
    add({ sequenceNumber, timestamp }, at) {
      received++
      const step = last === null ? 1 : ((sequenceNumber - last.sequence) << 16) >> 16
      line += last === null ? 0 : ((timestamp - last.timestamp) | 0) / perMs
      const transit = at - line
      const drift = last === null ? 0 : transit - last.transit
      if (Math.abs(drift) > parted) quickest = Number.POSITIVE_INFINITY
      else jitter += (Math.abs(drift) - jitter) / 16
      quickest = Math.min(quickest, transit)
      if (transit - quickest > playedWithin) late++
      // What comes behind its follower was counted as missing.
      missing += step <= 0 ? -1 : step - 1
      last = { sequence: step > 0 ? sequenceNumber : (last?.sequence ?? sequenceNumber), timestamp, transit }
    },
    read() {
      const lost = Math.max(0, missing)
      const loss = received === 0 ? null : lost / (received + lost)
      const unheard = received === 0 ? 1 : (lost + late) / (received + lost)
      const mos = received === 0 ? null : mosOf({ codec, loss: unheard, delayMs: playedWithin + jitter })
      return { received, lost, late, jitter, loss, mos }
    },
  }
}

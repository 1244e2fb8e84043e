/**
 * Owns the order of received packets. A packet in order is released at once: recognition wants speech early, and nobody listens to a
 * playout clock. Only when a packet is missing do the ones behind it wait, for as long as packets are seen to be late (20 to 120 ms);
 * then the missing one is released as lost, together with the packet after it, which may repeat it (forward error correction).
 * Pure: packets and time are arguments. RFC 3550 §5.1, appendix A.1.
 */
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { createArrivalJitter } from './arrival-jitter.ts'

/** `lost` carries the packet right after the gap with the last lost one only. */
export type Released = { readonly packet: RtpPacket } | { readonly lost: number; readonly next: RtpPacket | null }

export type JitterBufferStats = {
  readonly received: number
  readonly lost: number
  /** Came after they had been given up, belonged to no stream, or were overtaken by a new beginning. */
  readonly late: number
  readonly duplicated: number
  /** Times the stream began anew. */
  readonly resynchronised: number
  /** p95 of the delay over the quickest packet. */
  readonly jitterMs: number
}

export type JitterBuffer = {
  readonly push: (packet: RtpPacket, now: number) => void
  /** The next thing in order, null when there is nothing yet. Called until null after every push, and at least every 20 ms. */
  readonly due: (now: number) => Released | null
  readonly stats: () => JitterBufferStats
}

export type JitterBufferOptions = {
  readonly clockRateHz: number
  /** Packets of other payload types (telephone events) have timestamps that say nothing of their arrival. */
  readonly soundPayloadType: number
}

/** Packets that can wait: 1.28 s of 20 ms. A greater step forward is a new beginning. */
const capacity = 64
const minWait = 20
const maxWait = 120
/** What is waited beyond the measured lateness. */
const waitMargin = 10
/** A timestamp so far from its place belongs to another stream. */
const strangeMs = 5000

export function createJitterBuffer({ clockRateHz, soundPayloadType }: JitterBufferOptions): JitterBuffer {
  const ring = createPacketRing()
  const jitter = createArrivalJitter(clockRateHz)
  const count = { received: 0, lost: 0, late: 0, duplicated: 0, resynchronised: 0 }
  /** 16-bit sequence number that is released next; null before the first packet. */
  let next: number | null = null
  let lastTimestamp = 0
  /** Begins a new stream if the next packet goes on with it: one stray packet never moves us. */
  let suspect: RtpPacket | null = null

  const restartAt = (seq: number) => {
    count.late += ring.size()
    ring.clear()
    next = seq
    count.resynchronised++
  }

  const isStrange = (ahead: number, { timestamp }: RtpPacket): boolean =>
    ahead !== 0 && Math.abs(((timestamp - lastTimestamp) | 0) / clockRateHz) * 1000 > strangeMs

  const store = (packet: RtpPacket, now: number) => {
    if (!ring.put(packet, now)) return void count.duplicated++
    lastTimestamp = packet.timestamp
    if (packet.payloadType === soundPayloadType) jitter.add(packet.timestamp, now)
  }

  const pushSuspect = (packet: RtpPacket, now: number) => {
    const first = suspect !== null && packet.sequenceNumber === after(suspect.sequenceNumber) ? suspect : null
    suspect = first === null ? packet : null
    if (first === null) return void count.late++
    count.late--
    restartAt(first.sequenceNumber)
    store(first, now)
    store(packet, now)
  }

  const releaseLoss = (seq: number, now: number): Released | null => {
    if (now - ring.earliestArrival() < waitOf(jitter.p95())) return null
    count.lost++
    next = after(seq)
    return { lost: seq, next: ring.at(next) }
  }

  return {
    push(packet, now) {
      if (count.received++ === 0) lastTimestamp = packet.timestamp
      next ??= packet.sequenceNumber
      const ahead = signed16(packet.sequenceNumber - next)
      if (ahead < -capacity || isStrange(ahead, packet)) return pushSuspect(packet, now)
      suspect = null
      if (ahead < 0) return void count[ring.wasTaken(packet.sequenceNumber) ? 'duplicated' : 'late']++
      if (ahead >= capacity) restartAt(packet.sequenceNumber)
      store(packet, now)
    },
    due(now) {
      if (next === null || ring.size() === 0) return null
      const packet = ring.take(next)
      if (packet === null) return releaseLoss(next, now)
      next = after(next)
      return { packet }
    },
    stats: () => ({ ...count, jitterMs: jitter.p95() }),
  }
}

type Slot = { packet: RtpPacket | null; arrivedAt: number; takenSeq: number }

/** Waiting packets by sequence number; all of them lie within `capacity` of each other, and 2^16 is a multiple of it. */
function createPacketRing() {
  const slots: readonly Slot[] = Array.from({ length: capacity }, () => ({ packet: null, arrivedAt: 0, takenSeq: -1 }))
  const slotOf = (seq: number): Slot => slots[seq % capacity]!
  let size = 0
  return {
    size: () => size,
    at: (seq: number): RtpPacket | null => slotOf(seq).packet,
    wasTaken: (seq: number): boolean => slotOf(seq).takenSeq === seq,
    put(packet: RtpPacket, now: number): boolean {
      const slot = slotOf(packet.sequenceNumber)
      if (slot.packet !== null) return false
      slot.packet = packet
      slot.arrivedAt = now
      size++
      return true
    },
    take(seq: number): RtpPacket | null {
      const slot = slotOf(seq)
      const { packet } = slot
      if (packet === null) return null
      slot.packet = null
      slot.takenSeq = seq
      size--
      return packet
    },
    /** When the packet came that waits longest. */
    earliestArrival(): number {
      let earliest = Infinity
      for (const { packet, arrivedAt } of slots) if (packet !== null && arrivedAt < earliest) earliest = arrivedAt
      return earliest
    },
    clear() {
      size = 0
      for (const slot of slots) Object.assign(slot, { packet: null, takenSeq: -1 })
    },
  }
}

const after = (seq: number): number => (seq + 1) & 0xffff

const signed16 = (difference: number): number => (difference << 16) >> 16

const waitOf = (latenessMs: number): number => Math.min(maxWait, Math.max(minWait, latenessMs + waitMargin))

/**
 * Owns how well sound got through in a call: what its leg counted up to its end, and what answers tell of it. docs/contract/rest.md
 * "Phone calls".
 */
import { z } from 'zod'
import { mosOf } from './mos.ts'

const count = z.number().int().nonnegative()
const ms = z.number().nonnegative()

const Way = z.object({
  /** That were sent and should have arrived. */
  packets: count,
  lost: count,
  /** RFC 3550, 6.4.1, as measured last; null: not known. */
  jitterMs: ms.nullable(),
})
type Way = z.infer<typeof Way>

/** What a leg tells at its end. It crosses the bus, and is stored with the call. */
export const LegQuality = z.object({
  codec: z.enum(['opus', 'pcmu', 'pcma', 'g722']),
  /** Of sound in one packet to the peer. */
  packetMs: ms,
  /** From the peer; null when nothing came. */
  received: Way.nullable(),
  /** To the peer, as it reported last; null when it sent no reports (RTCP). */
  sent: Way.nullable(),
  roundTripMs: ms.nullable(),
  concealedMs: ms,
  lateFrames: count,
  /** That came from elsewhere than the peer and were dropped; absent: none, or of a leg of before. */
  strangerPackets: count.optional(),
})
export type LegQuality = z.infer<typeof LegQuality>

const WayQuality = z
  .object({
    loss: z.number().min(0).max(1).describe('Part of the packets that got lost, from 0 to 1.'),
    jitterMs: z.number().nullable().describe('Interarrival jitter (RFC 3550) as measured last, in milliseconds.'),
  })
  .nullable()

export const CallQuality = z
  .object({
    mos: z
      .number()
      .nullable()
      .describe(
        'Estimated mean opinion score, 1 (bad) to 4.5, of the worse of both directions, by the E-model (ITU-T G.107) from codec, loss and delay. Calls of the same codec are comparable.',
      ),
    codec: LegQuality.shape.codec.describe('As negotiated last.'),
    received: WayQuality.describe('What came from the other side; null when nothing came.'),
    sent: WayQuality.describe(
      'What was sent to the other side, as it reported last; null when it sent no reports (RTCP).',
    ),
    roundTripMs: z.number().nullable().describe('On the network, as measured last, in milliseconds.'),
    concealedMs: z
      .number()
      .describe('Sound of the other side that was guessed in place of lost packets, in milliseconds.'),
    lateFrames: z
      .number()
      .int()
      .describe('Frames of the agent (20 ms of sound each) that this service sent more than 10 ms late.'),
    strangerPackets: z
      .number()
      .int()
      .optional()
      .describe(
        'Packets of sound or reports that came to this call from an address that is not the other side’s, and were dropped. Not there when there were none.',
      ),
  })
  .describe(
    'How well sound got through, counted up to the end of the media. Not there before that, when no sound could flow, and when the process that carried it was killed.',
  )
export type CallQuality = z.infer<typeof CallQuality>

export function toCallQuality(leg: LegQuality): CallQuality {
  const { codec, received, sent, roundTripMs, concealedMs, lateFrames, strangerPackets } = leg
  const scores = [received, sent].flatMap((way) => (way ? [scoreOf(leg, way)] : []))
  return {
    mos: scores.length === 0 ? null : rounded(Math.min(...scores), 100),
    codec,
    received: received && toWayQuality(received),
    sent: sent && toWayQuality(sent),
    roundTripMs: roundTripMs === null ? null : rounded(roundTripMs, 10),
    concealedMs: Math.round(concealedMs),
    lateFrames,
    ...(strangerPackets !== undefined && { strangerPackets }),
  }
}

const toWayQuality = (way: Way) => ({
  loss: rounded(lossOf(way), 10_000),
  jitterMs: way.jitterMs === null ? null : rounded(way.jitterMs, 10),
})

/** A round trip that nobody measured counts as none: then the score tells of codec and loss only. */
function scoreOf({ codec, packetMs, roundTripMs }: LegQuality, way: Way): number {
  return mosOf({ codec, loss: lossOf(way), delayMs: (roundTripMs ?? 0) / 2 + packetMs })
}

const lossOf = ({ packets, lost }: Way): number => (packets === 0 ? 0 : Math.min(1, lost / packets))

const rounded = (value: number, steps: number): number => Math.round(value * steps) / steps

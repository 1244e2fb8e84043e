/** Owns what a leg tells of the quality of its sound when it has ended: to its call, in one line of the log, and to those who watch the service. */
import { toCallQuality, type LegQuality } from '../../model/call-quality.ts'
import type { NegotiatedAudio, TransportStats } from '../../model/rtp-transport.ts'
import type { Telemetry } from '../../model/telemetry.ts'
import type { MediaStats } from './leg-media.ts'

export type LegStats = MediaStats & {
  readonly transport: TransportStats | null
}

export function qualityOf({ codec, packetMs }: NegotiatedAudio, stats: LegStats): LegQuality {
  const { concealedMs, agentFramesLate: lateFrames, transport } = stats
  const peer = transport?.quality?.peer
  const strangerPackets = transport?.dropped?.strangers ?? 0
  return {
    codec,
    packetMs,
    received: receivedOf(stats),
    sent: peer ? { packets: peer.packetsSent, lost: peer.packetsLost, jitterMs: peer.jitterMs } : null,
    roundTripMs: transport?.quality?.roundTripMs ?? null,
    concealedMs,
    lateFrames,
    ...(strangerPackets > 0 && { strangerPackets }),
  }
}

/** By the reports of the wire, where it makes some; else by what the jitter buffer gave up. */
function receivedOf({ transport, received }: LegStats): LegQuality['received'] {
  const wire = transport?.quality
  const came = wire ? transport.packetsReceived : (received?.received ?? 0)
  const lost = wire ? wire.packetsLost : (received?.lost ?? 0)
  return came === 0 ? null : { packets: came + lost, lost, jitterMs: wire?.jitterMs ?? null }
}

export function tellQuality(telemetry: Telemetry, quality: LegQuality, line: 'web' | 'phone'): void {
  const { mos, codec, received, sent, roundTripMs, concealedMs, lateFrames, strangerPackets } = toCallQuality(quality)
  for (const [direction, way] of [
    ['received', received],
    ['sent', sent],
  ] as const) {
    if (way) telemetry.observe('leg.loss', way.loss, { line, direction })
    if (way && way.jitterMs !== null) telemetry.observe('leg.jitter', way.jitterMs, { line, direction })
  }
  if (roundTripMs !== null) telemetry.observe('leg.round_trip', roundTripMs, { line })
  if (mos !== null) telemetry.observe('leg.mos', mos, { line, codec })
  telemetry.observe('leg.concealed', concealedMs, { line })
  telemetry.count('leg.late_frames', { line }, lateFrames)
  if (strangerPackets !== undefined) telemetry.count('leg.stranger_packets', { line }, strangerPackets)
}

/** Owns RTP as it goes out: only in a direction that was agreed on, to where the peer is, under one SSRC of this call. */
import type { RtpPacket } from '../../model/rtp-transport.ts'
import type { MediaSession } from './media-session.ts'
import type { Address, PeerSource } from './peer-source.ts'
import type { RtcpSession } from './rtcp/rtcp-session.ts'
import type { Security } from './srtp/security.ts'

export type OutgoingRtp = {
  use(session: MediaSession): void
  /** Dropped where nothing must be sent. */
  send(packet: RtpPacket): void
  readonly counts: Readonly<Record<'packets' | 'bytes', number>>
}

export type OutgoingRtpDeps = {
  readonly ssrc: number
  readonly source: PeerSource
  readonly security: Security
  readonly rtcp: RtcpSession
  readonly now: () => number
  send(datagram: Buffer, to: Address): void
  /** Told of each packet before it is protected; null: nobody is. */
  tap(): ((direction: 'out', packet: Buffer, to: Address) => void) | null
}

const headerBytes = 12
const halfOfSequence = 0x8000

export function createOutgoingRtp({ ssrc, source, security, rtcp, now, ...wire }: OutgoingRtpDeps): OutgoingRtp {
  const counts = { packets: 0, bytes: 0 }
  let maySend = false
  /** RFC 3711 §3.3.1: begins in the lower half, so that a peer that misses the first packets cannot miss a wrap. */
  let shift: number | null = null

  function datagramOf(packet: RtpPacket, sequenceNumber: number): Buffer {
    const datagram = Buffer.allocUnsafe(headerBytes + packet.payload.length + security.tagBytes())
    datagram[0] = 0x80
    datagram[1] = packet.payloadType | (packet.marker ? 0x80 : 0)
    datagram.writeUInt16BE(sequenceNumber, 2)
    datagram.writeUInt32BE(packet.timestamp, 4)
    datagram.writeUInt32BE(ssrc, 8)
    datagram.set(packet.payload, headerBytes)
    return datagram
  }

  return {
    counts,
    use: ({ direction }) => void (maySend = direction === 'sendrecv' || direction === 'sendonly'),
    send(packet) {
      const target = maySend ? source.target() : null
      if (target === null) return
      shift ??= packet.sequenceNumber & halfOfSequence
      const datagram = datagramOf(packet, (packet.sequenceNumber + shift) & 0xffff)
      wire.tap()?.('out', datagram.subarray(0, headerBytes + packet.payload.length), target)
      if (!security.protect(datagram)) return
      wire.send(datagram, target)
      counts.packets += 1
      counts.bytes += packet.payload.length
      rtcp.sent(packet.timestamp, packet.payload.length, now())
    },
  }
}

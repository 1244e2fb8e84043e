/**
 * Owns RTP and RTCP of one call apart from its sockets: one SSRC and one name of ours, protection, what comes in, what goes out, and what
 * the reports of both ends tell. A phone's sockets and a browser's DTLS association carry it. RFC 3550.
 */
import { randomBytes, randomInt } from 'node:crypto'
import type { RtpPacket, TransportStats } from '../../model/rtp-transport.ts'
import { isLoopback, plainAddressOf } from '../../net/addresses.ts'
import { isLocal } from '../../net/special-networks.ts'
import { createIncomingRtp } from './incoming-rtp.ts'
import type { MediaSession } from './media-session.ts'
import { createOutgoingRtp } from './outgoing-rtp.ts'
import type { Address, Ground, PeerSource } from './peer-source.ts'
import { createRtcpLink } from './rtcp/rtcp-link.ts'
import { createRtcpSession } from './rtcp/rtcp-session.ts'
import { isRtcp } from './rtp-wire.ts'
import { createSecurity } from './srtp/security.ts'

export type RtpStream = {
  /** For descriptions: a peer takes reports for ours by both. */
  readonly ssrc: number
  readonly cname: string
  /** What offer and answer agreed on: at first, and again when it changes. Before it nothing is sent and what comes is dropped. */
  use(session: MediaSession): void
  send(packet: RtpPacket): void
  /** What came on the port of RTP, which may be RTCP (RFC 5761 §4). */
  receive(datagram: Buffer, from: Address): void
  /** What came on the port of RTCP. */
  receiveRtcp(datagram: Buffer, from: Address): void
  /** RTCP is sent when it is due. */
  tick(at: number): void
  goodbye(): void
  /** Null takes it off. */
  tap(tap: StreamTap | null): void
  stats(): Required<TransportStats>
}

/** Without SRTP; `peer` is where it came from, or goes to. */
export type StreamTap = (direction: 'in' | 'out', packet: Buffer, peer: Address) => void

export type RtpStreamDeps = {
  readonly source: PeerSource
  readonly now: () => number
  packet(packet: RtpPacket): void
  /** Authentic RTCP came: a sign of life. */
  alive(): void
  /** The peer's address was learned. */
  learned(): void
  sendRtp(datagram: Buffer, to: Address): void
  /** `onRtp`: from the port of RTP. */
  sendRtcp(datagram: Buffer, to: Address, onRtp: boolean): void
}

export function createRtpStream({ source, now, ...deps }: RtpStreamDeps): RtpStream {
  const ssrc = randomInt(1, 2 ** 32)
  // RFC 7022 §4.2: a name for this call only, which tells nobody anything.
  const cname = randomBytes(12).toString('base64')
  const security = createSecurity()
  const rtcp = createRtcpSession({ ssrc, cname, random: Math.random })
  const shared = { source, security, rtcp, now }
  let tap: StreamTap | null = null
  const tapped: StreamTap = (direction, packet, peer) => tap?.(direction, packet, peer)
  const incoming = createIncomingRtp({ ...shared, packet: deps.packet, learned: deps.learned, tapped })
  const outgoing = createOutgoingRtp({ ...shared, ssrc, send: deps.sendRtp, tap: () => tap })
  const link = createRtcpLink({ ...shared, send: deps.sendRtcp, alive: deps.alive })

  return {
    ssrc,
    cname,
    use(session) {
      security.use(session.srtp)
      source.expect(session.remote, groundOf(session, now()))
      rtcp.use(session.audio.clockRateHz, now())
      rtcp.expects(session.direction === 'sendrecv')
      incoming.use(session)
      outgoing.use(session)
      link.use(session)
    },
    send: outgoing.send,
    receive(datagram, from) {
      if (isRtcp(datagram)) link.receive(datagram, from, true)
      else incoming.receive(datagram, from)
    },
    receiveRtcp: (datagram, from) => link.receive(datagram, from, false),
    tick: link.tick,
    goodbye: link.goodbye,
    tap: (next) => void (tap = next),
    stats() {
      const { packets, bytes, strangers, flood, unusable } = incoming.counts
      return {
        packetsReceived: packets,
        bytesReceived: bytes,
        packetsSent: outgoing.counts.packets,
        bytesSent: outgoing.counts.bytes,
        quality: rtcp.quality(),
        dropped: {
          strangers: strangers - source.onProbation() + link.strangers(),
          flood,
          unusable,
          lastStranger: incoming.lastStranger() ?? link.lastStranger(),
        },
      }
    },
  }
}

const groundOf = (session: MediaSession, at: number): Ground => ({
  natHost: natHostOf(session),
  isSecure: session.srtp !== null,
  listens: session.direction === 'sendrecv' || session.direction === 'recvonly',
  isNameless: session.isNameless === true,
  at,
})

/** A peer behind a NAT may write its address of the inside; then the host that signaled is what NAT made of it. RFC 3581 §1. */
function natHostOf({ remote, signaledFrom = null }: MediaSession): string | null {
  if (remote === null || signaledFrom === null) return null
  return isLocal(remote.address) && !isLoopback(remote.address) ? plainAddressOf(signaledFrom) : null
}

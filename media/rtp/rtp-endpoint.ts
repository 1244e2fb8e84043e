/**
 * Owns the media of one phone call on its pair of sockets: RTP to and from the peer in the direction that was agreed on, SRTP, RTCP. It
 * knows no codec and no leg; who made it calls `tick`. RFC 3550, RFC 3264 §5–§8.
 */
import { randomBytes, randomInt } from 'node:crypto'
import type { Log } from '../../model/log.ts'
import type { RtpPacket, RtpTransport, TransportStats } from '../../model/rtp-transport.ts'
import { plainAddressOf } from '../../net/addresses.ts'
import { isRtcp } from './rtp-wire.ts'
import type { MediaSession } from './media-session.ts'
import { createIncomingRtp } from './incoming-rtp.ts'
import { createOutgoingRtp } from './outgoing-rtp.ts'
import { createPeerSource } from './peer-source.ts'
import { createRtcpLink } from './rtcp/rtcp-link.ts'
import { createRtcpSession } from './rtcp/rtcp-session.ts'
import { createSecurity } from './srtp/security.ts'
import type { SocketPair } from './socket-pair.ts'

export type RtpEndpointHandlers = {
  packet(packet: RtpPacket): void
  /** Authentic RTCP came: a sign of life. */
  alive(): void
  /** Where the peer's sound really comes from, each time it is learned. `asSignaled`: as its SDP says. */
  learned(source: { readonly address: string; readonly port: number; readonly asSignaled: boolean }): void
}

export type RtpEndpoint = RtpTransport & {
  /** As a peer reaches it. */
  readonly local: { readonly address: string; readonly port: number; readonly rtcpPort: number }
  /** What offer and answer agreed on: at first, and again after each re-INVITE. Before it nothing is sent and what comes is dropped. */
  use(session: MediaSession): void
  /** Every 20 ms or so, with the time of the ticker: RTCP is sent when it is due. */
  tick(at: number): void
}

export type RtpEndpointDeps = {
  readonly pair: SocketPair
  /** By which peers reach the sockets. */
  readonly address: string
  readonly handlers: RtpEndpointHandlers
  readonly now: () => number
  readonly log: Log
  /** Told once, when the ports are free again. */
  readonly closed: () => void
}

export function createRtpEndpoint(deps: RtpEndpointDeps): RtpEndpoint {
  const { pair } = deps
  const parts = createParts(deps)
  const { incoming, outgoing, link, rtcp } = parts
  let closing: Promise<void> | null = null

  async function close(): Promise<void> {
    link.goodbye()
    await pair.close()
    deps.closed()
    const { strangers, flood } = incoming.counts
    if (strangers > 0 || flood > 0) deps.log.warn('RTP was dropped', { port: pair.port, strangers, flood })
  }

  pair.rtp.onDatagram((datagram, from) => {
    if (isRtcp(datagram)) link.receive(datagram, from, true)
    else incoming.receive(datagram, from)
  })
  pair.rtcp.onDatagram((datagram, from) => link.receive(datagram, from, false))
  for (const port of [pair.rtp, pair.rtcp])
    port.onError((error) => deps.log.error('media socket failed', { port: pair.port, error }))

  return {
    local: { address: deps.address, port: pair.port, rtcpPort: pair.port + 1 },
    use(session) {
      if (!closing) parts.use(withPlainAddress(session))
    },
    send(packet) {
      if (!closing) outgoing.send(packet)
    },
    tick(at) {
      if (!closing) link.tick(at)
    },
    stats: () => statsOf(incoming.counts, outgoing.counts, rtcp.quality()),
    async close() {
      closing ??= close()
      await closing
    },
  }
}

function createParts({ pair, handlers, now }: RtpEndpointDeps) {
  const ssrc = randomInt(1, 2 ** 32)
  const source = createPeerSource()
  const security = createSecurity()
  // RFC 7022 §4.2: a name for this call only, which tells nobody anything.
  const cname = randomBytes(12).toString('base64')
  const rtcp = createRtcpSession({ ssrc, cname, random: Math.random })
  const incoming = createIncomingRtp({
    source,
    security,
    rtcp,
    now,
    packet: (packet) => handlers.packet(packet),
    learned() {
      const found = source.learned()
      if (found) handlers.learned(found)
    },
  })
  const outgoing = createOutgoingRtp({ ssrc, source, security, rtcp, now, send: pair.rtp.send })
  const link = createRtcpLink({
    source,
    security,
    rtcp,
    now,
    send: (datagram, to, onRtp) => (onRtp ? pair.rtp : pair.rtcp).send(datagram, to),
    alive: () => handlers.alive(),
  })

  function use(session: MediaSession): void {
    security.use(session.srtp)
    source.expect(session.remote)
    rtcp.use(session.audio.clockRateHz, now())
    incoming.use(session)
    outgoing.use(session)
    link.use(session)
  }
  return { incoming, outgoing, link, rtcp, use }
}

/** An address that cannot be reached is none: nothing is sent. */
function withPlainAddress(session: MediaSession): MediaSession {
  const { remote } = session
  const address = remote && plainAddressOf(remote.address)
  const isReachable = address !== null && !unspecified.has(address) && isPort(remote?.port)
  return { ...session, remote: remote && isReachable ? { ...remote, address } : null }
}

const unspecified: ReadonlySet<string> = new Set(['0.0.0.0', '::'])
const isPort = (port: number | undefined): boolean => port !== undefined && port > 0 && port <= 0xffff

function statsOf(
  received: ReturnType<typeof createIncomingRtp>['counts'],
  sent: ReturnType<typeof createOutgoingRtp>['counts'],
  quality: NonNullable<TransportStats['quality']>,
): TransportStats {
  const { packets, bytes, strangers, flood, unusable } = received
  return {
    packetsReceived: packets,
    bytesReceived: bytes,
    packetsSent: sent.packets,
    bytesSent: sent.bytes,
    quality,
    dropped: { strangers, flood, unusable },
  }
}

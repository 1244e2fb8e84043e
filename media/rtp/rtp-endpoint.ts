/**
 * Owns the media of one phone call on its pair of sockets: RTP to and from the peer in the direction that was agreed on, SRTP, RTCP. It
 * knows no codec and no leg; who made it calls `tick`. RFC 3550, RFC 3264 §5–§8.
 */
import type { Log } from '../../model/log.ts'
import type { RtpPacket, RtpTransport } from '../../model/rtp-transport.ts'
import { isWildcard, plainAddressOf } from '../../net/addresses.ts'
import { createDatagramGuard } from './datagram-guard.ts'
import type { MediaSession } from './media-session.ts'
import { createPeerSource } from './peer-source.ts'
import { createRtpStream } from './rtp-stream.ts'
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
  const { pair, handlers } = deps
  const source = createPeerSource()
  const stream = createRtpStream({
    source,
    now: deps.now,
    packet: (packet) => handlers.packet(packet),
    alive: () => handlers.alive(),
    learned() {
      const found = source.learned()
      if (found) handlers.learned(found)
    },
    sendRtp: pair.rtp.send,
    sendRtcp: (datagram, to, onRtp) => (onRtp ? pair.rtp : pair.rtcp).send(datagram, to),
  })
  let closing: Promise<void> | null = null

  async function close(): Promise<void> {
    stream.goodbye()
    await pair.close()
    deps.closed()
    const { strangers, flood } = stream.stats().dropped
    if (strangers > 0 || flood > 0) deps.log.warn('RTP was dropped', { port: pair.port, strangers, flood })
  }

  const guarded = createDatagramGuard(deps)
  pair.rtp.onDatagram(guarded(stream.receive))
  pair.rtcp.onDatagram(guarded(stream.receiveRtcp))
  for (const port of [pair.rtp, pair.rtcp])
    port.onError((error) => deps.log.error('media socket failed', { port: pair.port, error }))

  return {
    local: { address: deps.address, port: pair.port, rtcpPort: pair.port + 1 },
    use(session) {
      if (!closing) stream.use(withPlainAddress(session))
    },
    send(packet) {
      if (!closing) stream.send(packet)
    },
    tick(at) {
      if (!closing) stream.tick(at)
    },
    tap(tap) {
      const local = { address: deps.address, port: pair.port }
      stream.tap(tap && ((direction, packet, remote) => tap(direction, packet, { local, remote })))
    },
    stats: stream.stats,
    async close() {
      closing ??= close()
      await closing
    },
  }
}

/** An address that cannot be reached is none: nothing is sent. */
function withPlainAddress(session: MediaSession): MediaSession {
  const { remote } = session
  const address = remote && plainAddressOf(remote.address)
  const isReachable = address !== null && !isWildcard(address) && isPort(remote?.port)
  return { ...session, remote: remote && isReachable ? { ...remote, address } : null }
}

const isPort = (port: number | undefined): boolean => port !== undefined && port > 0 && port <= 0xffff

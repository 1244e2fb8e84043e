/** Owns RTCP on the wire of one call: whose reports are believed, and where ours go – a port of its own, or that of RTP (RFC 5761). */
import type { MediaSession } from '../media-session.ts'
import { maxDatagramBytes } from '../srtp/counter-mode.ts'
import { createRateLimit, perSecond } from '../../../net/token-bucket.ts'
import type { Address, PeerSource } from '../peer-source.ts'
import type { RtcpSession } from './rtcp-session.ts'
import { readRtcp, type ReceivedRtcp } from './rtcp-wire.ts'
import type { Security } from '../srtp/security.ts'

export type RtcpLink = {
  /** `remote` has the address in its plain form. */
  use(session: MediaSession): void
  /** `onRtp`: it came on the port of RTP. */
  receive(datagram: Buffer, from: Address, onRtp: boolean): void
  tick(at: number): void
  /** The last report; nothing when the peer has gone. */
  goodbye(): void
  /** Reports that were dropped because of where they came from. */
  strangers(): number
  lastStranger(): string | null
}

export type RtcpLinkDeps = {
  readonly source: PeerSource
  readonly security: Security
  readonly rtcp: RtcpSession
  readonly now: () => number
  /** `onRtp`: from the port of RTP. */
  send(datagram: Buffer, to: Address, onRtp: boolean): void
  alive(): void
}

/** A peer sends one every few seconds. Of the peer's hosts, and of all others together where SRTP has to tell them. */
const reportsPerSecond = 20

export function createRtcpLink({ source, security, rtcp, now, ...wire }: RtcpLinkDeps): RtcpLink {
  const mayPeer = createRateLimit(perSecond(reportsPerSecond))
  const mayOthers = createRateLimit(perSecond(reportsPerSecond))
  let session: MediaSession | null = null
  /** The last one that SDP told: on hold there may be none. */
  let remote: MediaSession['remote'] = null
  /** Where the peer's RTCP comes from. */
  let learned: Address | null = null
  let strangers = 0
  let lastStranger: string | null = null

  function target(): Address | null {
    const rtp = source.target()
    if (rtp === null || session?.rtcpMux) return rtp
    // Whoever was taken for the peer at first, and is not, gets no reports either.
    if (learned !== null && (security.isOn() || source.knows(learned))) return learned
    const found = source.learned()
    const told = found === null || found.asSignaled ? remote : null
    return withPort(told ? { address: told.address, port: told.rtcpPort } : { ...rtp, port: rtp.port + 1 })
  }

  function send(compound: Buffer | null): void {
    const to = compound && target()
    if (to) wire.send(security.protectRtcp(compound), to, session?.rtcpMux ?? false)
  }

  function refuseStranger({ address }: Address): null {
    strangers += 1
    lastStranger = address
    return null
  }

  /** Without SRTP only the address speaks for it. Null: it is not the peer's, or more than the peer would send. */
  function read(datagram: Buffer, from: Address, at: number): ReceivedRtcp | null {
    const isKnown = source.knows(from)
    if (!isKnown && !security.isOn()) return refuseStranger(from)
    if (!(isKnown ? mayPeer(at) : mayOthers(at))) return null
    const compound = security.unprotectRtcp(datagram)
    if (compound === null && !isKnown) return refuseStranger(from)
    // What SRTP proved need not prove itself by its form.
    return compound && readRtcp(compound, security.isOn())
  }

  return {
    use(next) {
      session = next
      if (next.remote === null) return
      const isMoved = next.remote.address !== remote?.address || next.remote.rtcpPort !== remote.rtcpPort
      if (isMoved) learned = null
      remote = next.remote
    },
    receive(datagram, from, onRtp) {
      const at = now()
      if (!session || datagram.length > maxDatagramBytes) return
      const report = read(datagram, from, at)
      if (!report) return
      if (!onRtp) learned = from
      else if (security.isOn()) source.reported?.(from, report.ssrc, at)
      rtcp.received(report, at)
      if (!report.saysGoodbye) wire.alive()
    },
    // A slot of the ticker may run late, and what a report says is true of the time at which it goes out.
    tick(at) {
      if (rtcp.isDue(at)) send(rtcp.due(Math.max(at, now())))
    },
    goodbye: () => send(rtcp.goodbye(now())),
    strangers: () => strangers,
    lastStranger: () => lastStranger,
  }
}

const withPort = (to: Address): Address | null => (to.port > 0 && to.port <= 0xffff ? to : null)

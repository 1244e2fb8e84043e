/**
 * Owns RTP as it comes in: from the cheapest question to the dearest, so that a flood costs little. Is it the peer's address, is there
 * budget, is it authentic, is it a packet of what was agreed on – then it is counted, and passed on unless the call is on hold.
 */
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { readRtp } from './rtp-wire.ts'
import type { MediaSession } from './media-session.ts'
import { maxDatagramBytes } from './srtp/counter-mode.ts'
import { createRateLimit, perSecond } from '../../net/token-bucket.ts'
import type { Address, PeerSource } from './peer-source.ts'
import type { RtcpSession } from './rtcp/rtcp-session.ts'
import type { Security } from './srtp/security.ts'
import { createOtherTypes, isComfortNoise } from './other-types.ts'
import { createStreamSplice } from './stream-splice.ts'

export type IncomingRtp = {
  use(session: MediaSession): void
  receive(datagram: Buffer, from: Address): void
  readonly counts: Readonly<Record<'packets' | 'bytes' | 'strangers' | 'flood' | 'unusable', number>>
  /** The address that the last packet of a stranger had. */
  lastStranger(): string | null
}

export type IncomingRtpDeps = {
  readonly source: PeerSource
  readonly security: Security
  readonly rtcp: RtcpSession
  readonly now: () => number
  packet(packet: RtpPacket): void
  /** The peer's address was learned. */
  learned(): void
  /** A packet of the peer's, as it was without SRTP. */
  tapped(direction: 'in', packet: Buffer, from: Address): void
}

/** Packets of 10 ms are 100 a second; key presses come on top. */
const peerPerSecond = 250
/** Of the peer's hosts from other ports, and of whoever else may become the peer: of each in sum. */
const othersPerSecond = 100

export function createIncomingRtp({ source, security, rtcp, now, ...tell }: IncomingRtpDeps): IncomingRtp {
  const counts = { packets: 0, bytes: 0, strangers: 0, flood: 0, unusable: 0 }
  const budgets = {
    peer: createRateLimit(perSecond(peerPerSecond)),
    near: createRateLimit(perSecond(othersPerSecond)),
    candidate: createRateLimit(perSecond(othersPerSecond)),
  }
  const splice = createStreamSplice()
  const others = createOtherTypes()
  let session: MediaSession | null = null
  let lastStranger: string | null = null
  /** The packet that was read last. */
  let opened: Buffer | null = null

  function refuse(as: 'flood' | 'unusable'): null {
    counts[as] += 1
    return null
  }

  function refuseStranger({ address }: Address): null {
    counts.strangers += 1
    lastStranger = address
    return null
  }

  /** Null: counted as what it is. */
  function read(datagram: Buffer, from: Address, at: number): RtpPacket | null {
    const judgement = source.judge(from, at)
    if (judgement === 'stranger') return refuseStranger(from)
    if (judgement === 'former') return refuse('unusable')
    if (!budgets[judgement](at)) return refuse('flood')
    const plain = security.unprotect(datagram)
    opened = plain
    // Where SRTP tells who is the peer, it tells who is not.
    if (plain === null && judgement !== 'peer') refuseStranger(from)
    const read = plain && readRtp(plain)
    const packet = read && session && others.agreed(read, session.audio)
    return packet && isAgreedOn(packet) ? packet : refuse('unusable')
  }

  function isAgreedOn({ payloadType }: RtpPacket): boolean {
    if (session === null) return false
    const { audio } = session
    return (
      payloadType === audio.payloadType ||
      payloadType === audio.telephoneEventPayloadType ||
      isComfortNoise(payloadType, audio)
    )
  }

  function isOfPeer(ssrc: number, { sequenceNumber }: RtpPacket, from: Address, at: number): boolean {
    const isAuthentic = security.isOn()
    const verdict = source.proved(from, { ssrc, sequenceNumber, isAuthentic }, at)
    if (verdict === 'stranger') refuseStranger(from)
    if (verdict === 'learned') learned()
    return verdict !== 'stranger'
  }

  /** What it was refused before was not a stranger's. */
  function learned(): void {
    const found = source.learned()
    counts.strangers -= found?.refused ?? 0
    if (found?.tookOver) splice.forget()
    tell.learned()
  }

  function accept(ssrc: number, packet: RtpPacket, { audio, direction }: MediaSession, at: number): void {
    counts.packets += 1
    counts.bytes += packet.payload.length
    const isSound = packet.payloadType === audio.payloadType
    rtcp.heard(ssrc, packet.sequenceNumber, isSound ? packet.timestamp : null, at)
    // On hold the stream is followed and not heard.
    if (direction === 'sendrecv' || direction === 'recvonly') tell.packet(splice.pass(ssrc, packet, at))
  }

  return {
    counts,
    lastStranger: () => lastStranger,
    use(next) {
      session = next
      splice.use(next.audio.clockRateHz)
    },
    receive(datagram, from) {
      const at = now()
      const isPlausible = datagram.length >= 12 && datagram.length <= maxDatagramBytes
      if (session === null || !isPlausible) return void refuse('unusable')
      const packet = read(datagram, from, at)
      if (packet === null) return
      const ssrc = datagram.readUInt32BE(8)
      if (!isOfPeer(ssrc, packet, from, at)) return
      if (opened) tell.tapped('in', opened, from)
      accept(ssrc, packet, session, at)
    },
  }
}

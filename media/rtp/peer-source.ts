/**
 * Owns the answer to "is this the peer, and where is it?": symmetric RTP (RFC 4961) without letting an unknown sender in. What is sent goes where
 * SDP says until the peer's packets are seen to come from elsewhere (NAT); from then on it goes there. Pure: packets and time are arguments.
 *
 * - Known hosts are the one that SDP names, the one that signaled where SDP names an address of the inside of its NAT, and the one that
 *   was learned. Their packets are believed at once; the nearer one to SDP takes over from the farther whenever it speaks.
 * - Any other host becomes the peer only before one was learned, for a while after an offer or answer, and by packets in sequence.
 * - Whoever was learned stays until a new description. Another port of its host is what NAT may give it: believed at once when it goes on
 *   with the same stream, else when the port before is silent.
 * - Under SRTP only packets that prove themselves come here, and the newest of them tells where the peer is.
 *
 * docs/design/media.md "Whose packet is it".
 */
import { createNewestPackets } from './newest-packets.ts'

export type Address = { readonly address: string; readonly port: number }

/** `near`: of a known host. `candidate`: of another one that may become the peer. `former`: from where the peer was a moment ago. */
export type Judgement = 'peer' | 'near' | 'candidate' | 'former' | 'stranger'

export type PeerSource = {
  /** What SDP says; null: no address. The same as before changes nothing, so that a session refresh opens no door. */
  expect(signaled: Address | null, ground?: Ground): void
  /** Null: nothing must be sent. */
  target(): Address | null
  /** Where packets really come from; null before the first one. */
  learned(): Learned | null
  /** Before anything is spent on a packet. */
  judge(from: Address, at: number): Judgement
  /** A report from there may be the peer's although nothing proves it. */
  knows(from: Address): boolean
  /** After the packet turned out to be one of this call. `learned`: it is the peer's, and from here on its address is this one. */
  proved(from: Address, packet: SourcePacket, at: number): 'stranger' | 'peer' | 'learned'
  /** Packets that were refused of those who may still turn out to be the peer. */
  onProbation(): number
  /** As `proved`, of a report on the port of RTP that SRTP proved. */
  reported?(from: Address, ssrc: number, at: number): void
}

/** `refused`: packets from there that came before it was believed. `tookOver`: from another host, which was none of the peer's. */
export type Learned = Address & { readonly asSignaled: boolean; readonly refused: number; readonly tookOver: boolean }

/** What is known besides the address of SDP. */
export type Ground = {
  /** The host that signaled, where NAT made another address of the one in SDP. */
  readonly natHost?: string | null
  /** SRTP is on: every packet that comes further than `judge` is authentic. */
  readonly isSecure?: boolean
  /** False: on hold; sound need not come, and no unknown host is let in. */
  readonly listens?: boolean
  /** No hold, although SDP names no address that is sent to: the peer is where it is heard from. */
  readonly isNameless?: boolean
  readonly at?: number
}

export type SourcePacket = { readonly ssrc: number; readonly sequenceNumber: number; readonly isAuthentic: boolean }

/** Another stream from another port of the peer's host begins behind a pause of the one before it. */
const silentAfter = 1000
/** A report says where the peer is only while no sound does: it has no place in the order of packets. */
export const quietAfter = 1000
/** Late packets from where the peer was before a re-INVITE must not be learned anew. */
const formerFor = 1000
/** A peer from which no packet came for so long has ended the call or is known by its host (media/leg/silence-watch.ts). */
const unknownFor = 30_000
/** As MIN_SEQUENTIAL of RFC 3550 §A.1, and one more. */
const sequential = 3
const maxCandidates = 4

export function createPeerSource(): PeerSource {
  const candidates = createCandidates()
  const newest = createNewestPackets()
  let signaled: Address | null = null
  let ground: Ground = {}
  let isHeld = true
  let wasNameless = false
  let learned: Address | null = null
  let refused = 0
  let tookOver = false
  let heardAt = Number.NEGATIVE_INFINITY
  let former: Address | null = null
  let formerAt = 0
  let expectedAt = 0
  let seenAt = 0

  function judge(from: Address, at: number): Judgement {
    seenAt = at
    if (isSame(from, learned)) return 'peer'
    if (learned === null && isSame(from, signaled)) return 'peer'
    if (at - formerAt < formerFor && isSame(from, former)) return 'former'
    if (knows(from)) return 'near'
    return ground.isSecure || isOpen(at) ? 'candidate' : 'stranger'
  }

  const isOpen = (at: number): boolean => learned === null && ground.listens !== false && at - expectedAt <= unknownFor

  const knows = (from: Address): boolean => from.address === learned?.address || nearnessOf(from) > 0

  /** To what SDP says: that address, another port of its host, the host that signaled, anywhere. */
  function nearnessOf(from: Address): number {
    if (from.address === signaled?.address) return from.port === signaled.port ? 3 : 2
    return from.address === ground.natHost ? 1 : 0
  }

  function isBelieved(from: Address, packet: SourcePacket, at: number): boolean {
    const nearness = nearnessOf(from)
    if (learned === null) return nearness > 0 || candidates.add(from, packet)
    const isNearer = nearness > nearnessOf(learned)
    if (from.address !== learned.address && isNearer) return true
    const place = newest.placeOf(packet.ssrc, packet.sequenceNumber)
    if (from.address === learned.address && (place === 'newest' || (isNearer && place === 'first'))) return true
    return at - heardAt >= silentAfter && candidates.add(from, packet)
  }

  /** From the address before a packet or two may still come, of which plain RTP tells nothing. */
  function learn(from: Address, at: number): void {
    tookOver = !ground.isSecure && learned !== null && learned.address !== from.address
    if (tookOver) newest.clear()
    else if (learned !== null && !ground.isSecure) [former, formerAt] = [learned, at]
    learned = from
    refused = candidates.refusedOf(from)
    candidates.clear()
  }

  return {
    expect(next, known = {}) {
      const { at = seenAt, isNameless = false } = known
      isHeld = next === null && !isNameless
      ground = known
      if (learned === null) expectedAt = at
      if (isHeld || (next === null ? wasNameless : isSame(next, signaled))) return
      wasNameless = next === null
      ;[former, formerAt, expectedAt] = [learned, at, at]
      signaled = next
      learned = null
      candidates.clear()
      newest.clear()
    },
    target: () => (isHeld ? null : (learned ?? signaled)),
    learned: () => learned && { ...learned, asSignaled: isSame(learned, signaled), refused, tookOver },
    judge,
    knows,
    onProbation: candidates.refused,
    proved(from, packet, at) {
      const { ssrc, sequenceNumber, isAuthentic } = packet
      const judgement = judge(from, at)
      if (judgement === 'former' || (judgement === 'stranger' && !isAuthentic)) return 'stranger'
      if (judgement !== 'peer' && !isAuthentic && !isBelieved(from, packet, at)) return 'stranger'
      heardAt = at
      const place = newest.follow(ssrc, sequenceNumber)
      if (isSame(from, learned) || (isAuthentic && place === 'late' && learned !== null)) return 'peer'
      learn(from, at)
      return 'learned'
    },
    reported(from, _ssrc, at) {
      if (ground.isSecure && !isSame(from, learned) && at - heardAt > quietAfter) learn(from, at)
    },
  }
}

const isSame = (one: Address, other: Address | null): boolean =>
  one === other || (other !== null && one.port === other.port && one.address === other.address)

type Candidate = { readonly from: Address; readonly ssrc: number; next: number; count: number; refused: number }

/** Sources on probation: a few, of which the oldest is forgotten first. */
function createCandidates() {
  let candidates: Candidate[] = []
  return {
    clear: () => void (candidates = []),
    refused: (): number => candidates.reduce((sum, candidate) => sum + candidate.refused, 0),
    refusedOf: (from: Address): number =>
      candidates.reduce((sum, candidate) => sum + (isSame(candidate.from, from) ? candidate.refused : 0), 0),
    /** True when enough packets came in sequence. */
    add(from: Address, { ssrc, sequenceNumber }: SourcePacket): boolean {
      const known = candidates.find((candidate) => candidate.ssrc === ssrc && isSame(candidate.from, from))
      const candidate = known ?? { from, ssrc, next: sequenceNumber, count: 0, refused: 0 }
      if (!known) candidates = [...candidates, candidate].slice(-maxCandidates)
      candidate.count = candidate.next === sequenceNumber ? candidate.count + 1 : 1
      candidate.next = (sequenceNumber + 1) & 0xffff
      if (candidate.count >= sequential) return true
      candidate.refused += 1
      return false
    },
  }
}

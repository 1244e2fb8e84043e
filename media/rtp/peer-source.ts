/**
 * Owns the answer to "is this the peer, and where is it?": symmetric RTP (RFC 4961) without letting an unknown sender in. What is sent goes where
 * SDP says until the peer's packets are seen to come from elsewhere (NAT); from then on it goes there. Pure: packets and time are arguments.
 *
 * Who is believed: the address of the SDP at once, and its host on another port, as NAT does it; any other only after a few packets
 * in sequence, or one that SRTP proved. Whoever was learned stays until silent for a while; only who is nearer to the SDP may take over earlier.
 */

export type Address = { readonly address: string; readonly port: number }

/** `candidate`: it may become the peer when its packet proves good. */
export type Judgement = 'peer' | 'candidate' | 'stranger'

export type PeerSource = {
  /** What SDP says; null: nowhere. The same as before changes nothing, so that a session refresh opens no door. */
  expect(signaled: Address | null): void
  /** Null: nothing must be sent. */
  target(): Address | null
  /** Where packets really come from; null before the first one. */
  learned(): (Address & { readonly asSignaled: boolean }) | null
  /** Before anything is spent on a packet. */
  judge(from: Address, at: number): Judgement
  /** After the packet turned out to be one of this call. `learned`: it is the peer's, and from here on its address is this one. */
  proved(from: Address, packet: SourcePacket, at: number): 'stranger' | 'peer' | 'learned'
  /** The same for a report on the port of RTP that SRTP proved. */
  reported?(from: Address, ssrc: number, at: number): void
}

export type SourcePacket = { readonly ssrc: number; readonly sequenceNumber: number; readonly isAuthentic: boolean }

/** The peer may pause (hold, silence suppression) and NAT may move it; both rarely, and a stranger would wait for it. */
const silentAfter = 3000
/** Late packets from where the peer was before a re-INVITE must not be learned anew. */
const formerFor = 1000
/** As MIN_SEQUENTIAL of RFC 3550 §A.1, and one more. */
const sequential = 3
const maxCandidates = 4

export function createPeerSource(): PeerSource {
  const candidates = createCandidates()
  let signaled: Address | null = null
  let isHeld = true
  let learned: Address | null = null
  let heardAt = Number.NEGATIVE_INFINITY
  let former: Address | null = null
  let expectedAt = 0
  let seenAt = 0

  function judge(from: Address, at: number): Judgement {
    seenAt = at
    if (isSame(from, learned)) return 'peer'
    if (learned === null && isSame(from, signaled)) return 'peer'
    const mustWait = learned !== null && nearnessOf(from) <= nearnessOf(learned)
    if (mustWait && at - heardAt < silentAfter) return 'stranger'
    if (isSame(from, former) && at - expectedAt < formerFor) return 'stranger'
    return 'candidate'
  }

  /** To what SDP says: that address, another port of its host, anywhere. */
  function nearnessOf(from: Address): number {
    if (from.address !== signaled?.address) return 0
    return from.port === signaled.port ? 2 : 1
  }

  function isBelieved(from: Address, packet: SourcePacket): boolean {
    if (packet.isAuthentic || isSame(from, learned)) return true
    if (learned === null && from.address === signaled?.address) return true
    return candidates.add(from, packet)
  }

  return {
    expect(next) {
      isHeld = next === null
      if (next === null || isSame(next, signaled)) return
      former = learned
      expectedAt = seenAt
      signaled = next
      learned = null
      candidates.clear()
    },
    target: () => (isHeld ? null : (learned ?? signaled)),
    learned: () => learned && { ...learned, asSignaled: isSame(learned, signaled) },
    judge,
    proved(from, packet, at) {
      if (judge(from, at) === 'stranger' || !isBelieved(from, packet)) return 'stranger'
      heardAt = at
      if (isSame(from, learned)) return 'peer'
      learned = from
      candidates.clear()
      return 'learned'
    },
  }
}

const isSame = (one: Address, other: Address | null): boolean =>
  other !== null && one.port === other.port && one.address === other.address

/** Sources on probation: a few, of which the oldest is forgotten first. */
function createCandidates() {
  let candidates: { readonly from: Address; readonly ssrc: number; next: number; count: number }[] = []
  return {
    clear: () => void (candidates = []),
    /** True when enough packets came in sequence. */
    add(from: Address, { ssrc, sequenceNumber }: SourcePacket): boolean {
      const known = candidates.find((candidate) => candidate.ssrc === ssrc && isSame(candidate.from, from))
      const candidate = known ?? { from, ssrc, next: sequenceNumber, count: 0 }
      if (!known) candidates = [...candidates, candidate].slice(-maxCandidates)
      candidate.count = candidate.next === sequenceNumber ? candidate.count + 1 : 1
      candidate.next = (sequenceNumber + 1) & 0xffff
      return candidate.count >= sequential
    },
  }
}

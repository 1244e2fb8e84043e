/**
 * Owns where a peer is that another protocol proved (ICE and DTLS): at the address of the newest packet that SRTP proved. NAT may give the
 * peer another address at any time; a packet that comes again, or late from where the peer was, moves nothing. Pure.
 */
import { createNewestPackets } from './newest-packets.ts'
import { quietAfter, type Address, type PeerSource } from './peer-source.ts'

/** Stands for the address of a peer that only the path knows. */
export const pathEnd: Address = { address: '', port: 0 }

export type PathSourceDeps = {
  /** What is sent goes there now. */
  isTarget(from: Address): boolean
  /** The newest packet came from there, which is not the target, or is of a source that was not heard before. */
  heard(from: Address, ssrc: number): void
}

export function createPathSource({ isTarget, heard }: PathSourceDeps): PeerSource {
  const newest = createNewestPackets()
  let soundAt = Number.NEGATIVE_INFINITY

  return {
    expect: () => undefined,
    // The path knows where it is.
    target: () => pathEnd,
    learned: () => null,
    judge: (from) => (isTarget(from) ? 'peer' : 'candidate'),
    knows: isTarget,
    onProbation: () => 0,
    proved(from, { ssrc, sequenceNumber }, at) {
      const place = newest.follow(ssrc, sequenceNumber)
      if (place === 'first' || (place === 'newest' && !isTarget(from))) heard(from, ssrc)
      soundAt = at
      return 'peer'
    },
    reported(from, ssrc, at) {
      if (!isTarget(from) && at - soundAt > quietAfter) heard(from, ssrc)
    },
  }
}

/**
 * Owns where a peer is that another protocol proved (ICE and DTLS): at the address of the newest packet that SRTP proved. NAT may give the
 * peer another address at any time; a packet that comes again, or late from where the peer was, moves nothing. Pure.
 */
import type { Address, PeerSource } from './peer-source.ts'

/** Stands for the address of a peer that only the path knows. */
export const pathEnd: Address = { address: '', port: 0 }

/** A browser has one at a time. */
const maxSources = 4

/** A report says where the peer is only while no sound does: it has no place in the order of packets. */
const quietAfter = 1000

export type PathSourceDeps = {
  /** What is sent goes there now. */
  isTarget(from: Address): boolean
  /** The newest packet came from there, which is not the target, or is of a source that was not heard before. */
  heard(from: Address, ssrc: number): void
}

export function createPathSource({ isTarget, heard }: PathSourceDeps): PeerSource {
  /** Highest sequence numbers by SSRC. */
  const sources = new Map<number, number>()
  let soundAt = Number.NEGATIVE_INFINITY

  /** Whether it is the newest packet of its source. */
  function follow(ssrc: number, sequenceNumber: number): 'first' | 'newest' | 'late' {
    const highest = sources.get(ssrc)
    if (highest !== undefined && ((sequenceNumber - highest) << 16) >> 16 <= 0) return 'late'
    if (highest === undefined && sources.size >= maxSources) sources.clear()
    sources.set(ssrc, sequenceNumber)
    return highest === undefined ? 'first' : 'newest'
  }

  return {
    expect: () => undefined,
    // The path knows where it is.
    target: () => pathEnd,
    learned: () => null,
    judge: (from) => (isTarget(from) ? 'peer' : 'candidate'),
    proved(from, { ssrc, sequenceNumber }, at) {
      const place = follow(ssrc, sequenceNumber)
      if (place === 'first' || (place === 'newest' && !isTarget(from))) heard(from, ssrc)
      soundAt = at
      return 'peer'
    },
    reported(from, ssrc, at) {
      if (!isTarget(from) && at - soundAt > quietAfter) heard(from, ssrc)
    },
  }
}

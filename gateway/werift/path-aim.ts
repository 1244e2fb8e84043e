/**
 * Owns the choice of the address that one call's media is sent to. Until the DTLS association is there it is where the latest check came
 * from. From then on authentic media leads, because NAT may move a client that checks without nominating; a nominating check does
 * too, and any check once the former address is silent. Pure: addresses and time are arguments. RFC 8445 §7.3.1.5, §12.
 */
import type { CandidateAddress } from '../read-sdp.ts'

export type PathAim = {
  /** Null before the first check. */
  target(): CandidateAddress | null
  isTarget(from: CandidateAddress): boolean
  /** From here on media proves itself. */
  secured(): void
  /** A check that is signed and has not come before. */
  checked(from: CandidateAddress, nominates: boolean, at: number): void
  /** The newest authentic packet. */
  heard(from: CandidateAddress, at: number): void
  /** Anything at all came from the target. */
  sounds(at: number): void
}

/** Media comes every 20 ms; on hold the client sends checks and reports only, and the first one from elsewhere is believed. */
const silentAfter = 2000

export function createPathAim(): PathAim {
  let target: CandidateAddress | null = null
  let isSecured = false
  let soundedAt = Number.NEGATIVE_INFINITY

  const isTarget = (from: CandidateAddress): boolean => target?.port === from.port && target.address === from.address

  function aimAt(from: CandidateAddress, at: number): void {
    target = from
    soundedAt = at
  }

  return {
    target: () => target,
    isTarget,
    secured: () => void (isSecured = true),
    checked(from, nominates, at) {
      if (!isSecured || nominates || isTarget(from) || at - soundedAt > silentAfter) aimAt(from, at)
    },
    heard: aimAt,
    sounds: (at) => void (soundedAt = at),
  }
}

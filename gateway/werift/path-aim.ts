/**
 * Owns the choice of the address that one call's media is sent to. Until the DTLS association is there it is where the latest check came
 * from, and nothing goes there but by way of the handshakes. From then on only what is authentic leads, DTLS and media: a check can be
 * taken down on its way and be sent once more from anywhere. Pure. RFC 8445 §12, §19.4.
 */
import type { CandidateAddress } from '../read-sdp.ts'

export type PathAim = {
  /** Null before the first check. */
  target(): CandidateAddress | null
  isTarget(from: CandidateAddress): boolean
  /** The client proved itself there by DTLS. */
  secured(from: CandidateAddress): void
  isSecured(): boolean
  /** A check that is signed and has not come before. */
  checked(from: CandidateAddress): void
  /** The newest authentic packet. */
  heard(from: CandidateAddress): void
}

export function createPathAim(): PathAim {
  let target: CandidateAddress | null = null
  let isSecured = false

  return {
    target: () => target,
    isTarget: (from) => target?.port === from.port && target.address === from.address,
    secured(from) {
      isSecured = true
      target = from
    },
    isSecured: () => isSecured,
    checked(from) {
      if (!isSecured) target = from
    },
    heard: (from) => void (target = from),
  }
}

/**
 * Owns whether an INVITE proves that its caller has the number it shows: by the word of a trunk that is trusted for it. RFC 3325
 * (P-Asserted-Identity), RFC 8224 and 3GPP TS 24.229 §7.2A.20 (verstat), ATIS-1000074 (attestation).
 */
import type { TrunkSettings } from '../../model/trunk.ts'
import { assertedOf, callerOf } from '../numbers.ts'
import type { MessageIn } from '../stack-types.ts'
import { verstatOf } from './sip-facts.ts'

/** Full attestation, or none named. B says who sent the call and not whose number it is, C neither. */
const proving = /^TN-Validation-Passed(?:-A)?$/i

/** What the carrier found out counts before what it asserts: a number that it could not validate is none that it knows. */
export function isCallerVerified(
  invite: MessageIn,
  { trustsIdentity = false, numberFormat = null }: Pick<TrunkSettings, 'trustsIdentity' | 'numberFormat'>,
): boolean {
  if (!trustsIdentity) return false
  const number = callerOf(invite, true, numberFormat)
  if (number === null) return false
  const verstat = verstatOf(invite)
  return verstat === null ? number === assertedOf(invite, numberFormat) : proving.test(verstat)
}

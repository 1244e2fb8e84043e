/** Owns telling the answers that a SIP server makes in the place of a peer: 408 and 503 (RFC 3261 §8.1.3.1), 487 of a call that is given up. */
import type { ResponseIn } from './stack-types.ts'

/** Why nobody answered, for people; null: somebody did. What nobody sent comes from no address. */
export function whyUnanswered({ source_address: address, status, reason }: ResponseIn): string | null {
  if (address !== '' && address !== '0.0.0.0') return null
  return status === 408 ? 'no answer in time' : reason
}

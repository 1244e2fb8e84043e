/**
 * Owns the words of SIP: what a message is once it has been read. RFC 3261 §7. Header names are in their long form with the usual capitals
 * (`Via`, `Call-ID`, `CSeq`, `WWW-Authenticate`), values unfolded and trimmed; one field per line of the message, in its order.
 */

export type HeaderField = { readonly name: string; readonly value: string }

export type SipRequest = {
  readonly kind: 'request'
  /** Upper case as it stood; methods are case-sensitive. */
  readonly method: string
  /** Request-URI, as it stood. */
  readonly uri: string
  readonly headers: readonly HeaderField[]
  readonly body: Uint8Array
  /** Bytes as it came; absent: it was made here. */
  readonly size?: number
}

export type SipResponse = {
  readonly kind: 'response'
  readonly status: number
  readonly reason: string
  readonly headers: readonly HeaderField[]
  readonly body: Uint8Array
}

export type SipMessage = SipRequest | SipResponse

/** A request that cannot be taken as it is, and what it is answered where it can be answered at all. RFC 3261 §8.2, §16.3. */
export type MessageFault = {
  readonly status: 400 | 405 | 406 | 413 | 415 | 416 | 420 | 482 | 483 | 493 | 501 | 505
  readonly reason: string
  /** Such as Unsupported, Allow. */
  readonly headers: readonly HeaderField[]
}

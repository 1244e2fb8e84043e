/** Owns the SIP messages of a call as they are kept for who diagnoses it: what was sent and came, when, and between which addresses. */

export type SipLadderEntry = {
  /** Ms since the epoch. */
  readonly at: number
  /** As this service sees it. */
  readonly direction: 'in' | 'out'
  readonly protocol: 'udp' | 'tcp' | 'tls'
  /** `203.0.113.7:5060`. */
  readonly local: string
  readonly remote: string
  /** Start line, headers and SDP, without secrets; cut where it is long. */
  readonly text: string
}

/** `leftOut`: messages beyond what is kept of one call. */
export type SipLadder = { readonly entries: readonly SipLadderEntry[]; readonly leftOut: number }

/**
 * Owns the signaling of a call as it is kept for who diagnoses it, SIP messages and those of a browser's socket alike: what was sent and came, when, and
 * between which addresses.
 */

export type LadderEntry = {
  /** Ms since the epoch. */
  readonly at: number
  /** As this service sees it. */
  readonly direction: 'in' | 'out'
  /** ws: the signaling socket of a browser. */
  readonly protocol: 'udp' | 'tcp' | 'tls' | 'ws'
  /** `203.0.113.7:5060`. Of a socket: by which name it was asked for. */
  readonly local: string
  /** Port 0: it is not known. */
  readonly remote: string
  /** SIP: start line, headers and SDP. A socket: the JSON object. Without secrets; cut where it is long. */
  readonly text: string
}

const longest = 4_096

/** Of a message: what of it is kept as `text`. */
export const ladderTextOf = (text: string): string => text.slice(0, longest).toWellFormed()

/** `leftOut`: messages beyond what is kept of one call. */
export type MessageLadder = { readonly entries: readonly LadderEntry[]; readonly leftOut: number }

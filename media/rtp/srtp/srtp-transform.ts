/** Owns what a suite does to the bytes of one packet, apart from who sent it and whether it came before. RFC 3711 §3.1, §3.4. */

/** Works in place. `start`: where the payload begins. `index`: the sequence number with its rollover counter, 48 bits. */
export type RtpTransform = {
  /** Behind the packet. */
  readonly tagBytes: number
  protect(packetAndRoom: Buffer, start: number, index: number): void
  /** False: not authentic, and the datagram is as it was. */
  unprotect(datagram: Buffer, start: number, index: number): boolean
}

/** Works in place, on a compound packet with its trailer behind it, in which the E flag and the index stand already. */
export type RtcpTransform = {
  /** E flag, index and tag. */
  readonly trailerBytes: number
  readonly indexFromEnd: number
  protect(datagram: Buffer, index: number): void
  /** False: not authentic, and the datagram is as it was. */
  unprotect(datagram: Buffer, index: number, isEncrypted: boolean): boolean
}

/** Owns the RTP packet as bytes, after SRTP is taken off. RFC 3550 §5.1. */
import type { RtpPacket } from '../../model/rtp-transport.ts'

/** Null for what is no RTP packet. The payload is a view into `bytes`. */
export function readRtp(bytes: Buffer): RtpPacket | null {
  if (bytes.length < 12) return null
  const first = bytes[0]!
  const second = bytes[1]!
  const start = payloadStartOf(bytes, first)
  const padding = first & 0x20 ? (bytes[bytes.length - 1] ?? 0) : 0
  if (first >> 6 !== 2 || start === null || start + padding > bytes.length) return null
  return {
    payloadType: second & 0x7f,
    marker: second >= 0x80,
    sequenceNumber: bytes.readUInt16BE(2),
    timestamp: bytes.readUInt32BE(4),
    // As `subarray` of a Buffer, which would take five times as long.
    payload: new Uint8Array(bytes.buffer, bytes.byteOffset + start, bytes.length - padding - start),
  }
}

/** RTCP on the same port: the second byte is 192–223. RFC 5761 §4. */
export const isRtcp = (datagram: Buffer): boolean => {
  const type = datagram[1] ?? 0
  return type >= 192 && type <= 223
}

/** Of a packet or report, protected or not (RFC 3711 §3.1, §3.4); null for what is neither. */
export function ssrcOf(datagram: Buffer): number | null {
  if (datagram.length < 12 || datagram[0]! >> 6 !== 2) return null
  return datagram.readUInt32BE(isRtcp(datagram) ? 4 : 8)
}

/** Where the payload begins, after contributing sources and the header extension; null when that lies outside. */
export function payloadStartOf(bytes: Buffer, first: number): number | null {
  const afterSources = 12 + (first & 0x0f) * 4
  if (!(first & 0x10)) return afterSources
  return afterSources + 4 <= bytes.length ? afterSources + 4 + bytes.readUInt16BE(afterSources + 2) * 4 : null
}

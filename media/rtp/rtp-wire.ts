/** Owns the RTP packet as bytes, after SRTP is taken off, and which packets of one source are fresh. RFC 3550 §5.1, RFC 3711 §3.3.2. */
import type { RtpPacket } from '../../model/rtp-transport.ts'

/** Null for what is no RTP packet. The payload is a view into `bytes`. */
export function readRtp(bytes: Buffer): RtpPacket | null {
  if (bytes.length < 12) return null
  const first = bytes.readUInt8(0)
  const second = bytes.readUInt8(1)
  const start = payloadStartOf(bytes, first)
  const padding = first & 0x20 ? (bytes.at(-1) ?? 0) : 0
  if (first >> 6 !== 2 || start === null || start + padding > bytes.length) return null
  return {
    payloadType: second & 0x7f,
    marker: second >= 0x80,
    sequenceNumber: bytes.readUInt16BE(2),
    timestamp: bytes.readUInt32BE(4),
    payload: bytes.subarray(start, bytes.length - padding),
  }
}

/** RTCP on the same port: the second byte is 192–223. RFC 5761 §4. */
export const isRtcp = (datagram: Buffer): boolean => {
  const type = datagram[1] ?? 0
  return type >= 192 && type <= 223
}

export type FreshPackets = {
  /** Before any cryptography: false when this packet was seen already, is too old, or its source is one too many. */
  mayBeFresh(ssrc: number, sequenceNumber: number): boolean
  /** After the packet proved authentic. */
  saw(ssrc: number, sequenceNumber: number): void
}

const maxSources = 4
const windowSize = 64

/** A window of 64 packets per source; the sequence number is compared as a signed 16-bit distance. */
export function createFreshPackets(): FreshPackets {
  const sources = new Map<number, { highest: number; seen: bigint }>()
  const distanceOf = (from: number, to: number): number => ((to - from) << 16) >> 16

  function mayBeFresh(ssrc: number, sequenceNumber: number): boolean {
    const source = sources.get(ssrc)
    if (!source) return sources.size < maxSources
    const behind = -distanceOf(source.highest, sequenceNumber)
    if (behind < 0) return true
    return behind < windowSize && (source.seen & (1n << BigInt(behind))) === 0n
  }

  function saw(ssrc: number, sequenceNumber: number): void {
    const source = sources.get(ssrc)
    if (!source) return void sources.set(ssrc, { highest: sequenceNumber, seen: 1n })
    const ahead = distanceOf(source.highest, sequenceNumber)
    if (ahead <= 0) source.seen |= 1n << BigInt(-ahead)
    else {
      source.seen = ahead < windowSize ? BigInt.asUintN(windowSize, (source.seen << BigInt(ahead)) | 1n) : 1n
      source.highest = sequenceNumber
    }
  }
  return { mayBeFresh, saw }
}

/** Where the payload begins, after contributing sources and the header extension; null when that lies outside. */
export function payloadStartOf(bytes: Buffer, first: number): number | null {
  const afterSources = 12 + (first & 0x0f) * 4
  if (!(first & 0x10)) return afterSources
  return afterSources + 4 <= bytes.length ? afterSources + 4 + bytes.readUInt16BE(afterSources + 2) * 4 : null
}

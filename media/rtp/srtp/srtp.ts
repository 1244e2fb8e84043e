/**
 * Owns SRTP of one direction of one call, under a key that signaling told (SDES). No MKI, no key derivation rate, encryption and
 * authentication always on, as the suites of RFC 4568 §6.2 have it. RFC 3711.
 */
import { payloadStartOf } from '../rtp-wire.ts'
import type { SrtpKey } from '../media-session.ts'
import { createReplayWindow, type ReplayWindow } from './replay-window.ts'
import { deriveSessionKeys } from './srtp-keys.ts'
import { createSrtpTransform } from './srtp-transform.ts'

export type SrtpSending = {
  /** What `protect` needs behind a packet. */
  readonly tagBytes: number
  /** Works in place: an RTP packet with room for the tag behind it. False: its sequence number was used, and it must not be sent. */
  protect(packetAndRoom: Buffer): boolean
}

export type SrtpReceiving = {
  /** The RTP packet, decrypted in the datagram. Null: malformed, not authentic, or seen before; the datagram is as it was. */
  unprotect(datagram: Buffer): Buffer | null
  /** How often the sequence number of that source has wrapped; null: never heard. */
  rolloverOf(ssrc: number): number | null
}

/** Sources under one key: transfers and music bring new ones. None is forgotten, or its packets could be played again. */
export const maxSources = 32

const wrap = 0x1_0000
const tagBytesOf = ({ suite }: SrtpKey): number => (suite === 'AES_CM_128_HMAC_SHA1_80' ? 10 : 4)

/** For one SSRC. Sequence numbers go upwards; one that does not would use a keystream twice. */
export function createSrtpSending(key: SrtpKey): SrtpSending {
  const tagBytes = tagBytesOf(key)
  const transform = createSrtpTransform(deriveSessionKeys(key, 'rtp'))
  const sent = createReplayWindow()
  return {
    tagBytes,
    protect(packetAndRoom) {
      const packet = packetAndRoom.subarray(0, packetAndRoom.length - tagBytes)
      const sequenceNumber = packet.readUInt16BE(2)
      const index = sent.highest() < 0 ? sequenceNumber : sent.nearest(sequenceNumber)
      if (index <= sent.highest()) return false
      sent.saw(index)
      transform.crypt(packet.subarray(headerBytesOf(packet) ?? 12), packet.readUInt32BE(8), index)
      transform.tagOf(packet, Math.floor(index / wrap)).copy(packetAndRoom, packet.length, 0, tagBytes)
      return true
    },
  }
}

/** `before`: what received under an older key. A peer may go on counting its rollovers when the key changes (§3.3.1). */
export function createSrtpReceiving(key: SrtpKey, before: SrtpReceiving | null = null): SrtpReceiving {
  const tagBytes = tagBytesOf(key)
  const transform = createSrtpTransform(deriveSessionKeys(key, 'rtp'))
  const sources = new Map<number, ReplayWindow>()

  /** Indexes to try. Of a new source packets may have been lost before we heard it, and a wrap with them. */
  function indexesOf(source: ReplayWindow | undefined, ssrc: number, sequenceNumber: number): number[] {
    if (source) return [source.nearest(sequenceNumber)]
    if (sources.size >= maxSources) return []
    const rollovers = new Set([0, 1, before?.rolloverOf(ssrc) ?? 0])
    return [...rollovers].map((rollover) => rollover * wrap + sequenceNumber)
  }

  function unprotect(datagram: Buffer): Buffer | null {
    const start = headerBytesOf(datagram)
    const end = datagram.length - tagBytes
    if (start === null || start > end) return null
    const packet = datagram.subarray(0, end)
    const tag = datagram.subarray(end)
    const ssrc = packet.readUInt32BE(8)
    const source = sources.get(ssrc)
    const isGood = (index: number): boolean =>
      index >= 0 &&
      (source?.isFresh(index) ?? true) &&
      transform.isTagOf(tag, packet, Math.floor(index / wrap) % 0x1_0000_0000)
    const index = indexesOf(source, ssrc, packet.readUInt16BE(2)).find(isGood)
    if (index === undefined) return null
    remember(source, ssrc).saw(index)
    transform.crypt(packet.subarray(start), ssrc, index)
    return packet
  }

  function remember(source: ReplayWindow | undefined, ssrc: number): ReplayWindow {
    if (source) return source
    const made = createReplayWindow()
    sources.set(ssrc, made)
    return made
  }

  return {
    unprotect,
    rolloverOf(ssrc) {
      const source = sources.get(ssrc)
      return source ? Math.floor(source.highest() / wrap) : null
    },
  }
}

/** Where the payload begins, encrypted or not; null for what is no RTP packet. RFC 3550 §5.1, §5.3.1. */
function headerBytesOf(datagram: Buffer): number | null {
  if (datagram.length < 12 || datagram[0]! >> 6 !== 2) return null
  return payloadStartOf(datagram, datagram[0]!)
}

/**
 * Owns SRTP of one direction of one call, under a key that signaling (SDES) or DTLS agreed on: indexes, and which of them came before. No
 * MKI, no key derivation rate, encryption and authentication always on, as RFC 4568 §6.2 and RFC 5764 §4.1.2 have it. RFC 3711.
 */
import { payloadStartOf } from '../rtp-wire.ts'
import type { SrtpKey } from '../media-session.ts'
import { createReplayWindow, type ReplayWindow } from './replay-window.ts'
import { rtpTransformOf } from './transform-of.ts'

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

/** For one SSRC. Sequence numbers go upwards; one that does not would use a keystream twice. */
export function createSrtpSending(key: SrtpKey): SrtpSending {
  const transform = rtpTransformOf(key)
  const sent = createReplayWindow()
  return {
    tagBytes: transform.tagBytes,
    protect(packetAndRoom) {
      const sequenceNumber = packetAndRoom.readUInt16BE(2)
      const index = sent.highest() < 0 ? sequenceNumber : sent.nearest(sequenceNumber)
      if (index <= sent.highest()) return false
      sent.saw(index)
      transform.protect(packetAndRoom, headerBytesOf(packetAndRoom) ?? 12, index)
      return true
    },
  }
}

/** `before`: what received under an older key. A peer may go on counting its rollovers when the key changes (§3.3.1). */
export function createSrtpReceiving(key: SrtpKey, before: SrtpReceiving | null = null): SrtpReceiving {
  const transform = rtpTransformOf(key)
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
    const end = datagram.length - transform.tagBytes
    if (start === null || start > end) return null
    const ssrc = datagram.readUInt32BE(8)
    const source = sources.get(ssrc)
    const isGood = (index: number): boolean =>
      index >= 0 && (source?.isFresh(index) ?? true) && transform.unprotect(datagram, start, index)
    const index = indexesOf(source, ssrc, datagram.readUInt16BE(2)).find(isGood)
    if (index === undefined) return null
    remember(source, ssrc).saw(index)
    return datagram.subarray(0, end)
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

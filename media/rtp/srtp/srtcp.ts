/** Owns SRTCP of one direction of one call: its indexes, and which of them came before. RFC 3711 §3.4. */
import type { SrtpKey } from '../media-session.ts'
import { createReplayWindow, type ReplayWindow } from './replay-window.ts'
import { rtcpTransformOf } from './transform-of.ts'
import { maxSources } from './srtp.ts'

/** A compound RTCP packet to the datagram that is sent. */
export type SrtcpSending = (compound: Buffer) => Buffer
/** The compound packet, decrypted in the datagram. Null: malformed, not authentic, or seen before. */
export type SrtcpReceiving = (datagram: Buffer) => Buffer | null

/** The header and the SSRC of the sender stay readable. */
const clearBytes = 8
const encryptedFlag = 0x8000_0000
const indexes = 0x8000_0000

export function createSrtcpSending(key: SrtpKey): SrtcpSending {
  const transform = rtcpTransformOf(key)
  let index = 0
  return (compound) => {
    const datagram = Buffer.allocUnsafe(compound.length + transform.trailerBytes)
    compound.copy(datagram)
    datagram.writeUInt32BE(encryptedFlag + index, datagram.length - transform.indexFromEnd)
    transform.protect(datagram, index)
    index = (index + 1) % indexes
    return datagram
  }
}

export function createSrtcpReceiving(key: SrtpKey): SrtcpReceiving {
  const transform = rtcpTransformOf(key)
  const sources = new Map<number, ReplayWindow>()

  return (datagram) => {
    const end = datagram.length - transform.trailerBytes
    if (end < clearBytes) return null
    const ssrc = datagram.readUInt32BE(4)
    const flagAndIndex = datagram.readUInt32BE(datagram.length - transform.indexFromEnd)
    const index = flagAndIndex % indexes
    const source = sources.get(ssrc) ?? createReplayWindow()
    const isKnown = sources.has(ssrc)
    if ((!isKnown && sources.size >= maxSources) || !source.isFresh(index)) return null
    if (!transform.unprotect(datagram, index, flagAndIndex >= encryptedFlag)) return null
    sources.set(ssrc, source)
    source.saw(index)
    return datagram.subarray(0, end)
  }
}

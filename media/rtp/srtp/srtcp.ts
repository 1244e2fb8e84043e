/** Owns SRTCP of one direction of one call. Its tag has 80 bits in both suites (RFC 4568 §6.2.2). RFC 3711 §3.4. */
import type { SrtpKey } from '../media-session.ts'
import { createReplayWindow, type ReplayWindow } from './replay-window.ts'
import { deriveSessionKeys } from './srtp-keys.ts'
import { createSrtpTransform } from './srtp-transform.ts'
import { maxSources } from './srtp.ts'

/** A compound RTCP packet to the datagram that is sent. */
export type SrtcpSending = (compound: Buffer) => Buffer
/** The compound packet, decrypted in the datagram. Null: malformed, not authentic, or seen before. */
export type SrtcpReceiving = (datagram: Buffer) => Buffer | null

const tagBytes = 10
/** The header and the SSRC of the sender stay readable. */
const clearBytes = 8
const encryptedFlag = 0x8000_0000
const indexes = 0x8000_0000

export function createSrtcpSending(key: SrtpKey): SrtcpSending {
  const transform = createSrtpTransform(deriveSessionKeys(key, 'rtcp'))
  let index = 0
  return (compound) => {
    const datagram = Buffer.allocUnsafe(compound.length + 4 + tagBytes)
    compound.copy(datagram)
    transform.crypt(datagram.subarray(clearBytes, compound.length), compound.readUInt32BE(4), index)
    datagram.writeUInt32BE(encryptedFlag + index, compound.length)
    const authenticated = datagram.subarray(0, compound.length + 4)
    transform.tagOf(authenticated).copy(datagram, authenticated.length, 0, tagBytes)
    index = (index + 1) % indexes
    return datagram
  }
}

export function createSrtcpReceiving(key: SrtpKey): SrtcpReceiving {
  const transform = createSrtpTransform(deriveSessionKeys(key, 'rtcp'))
  const sources = new Map<number, ReplayWindow>()

  return (datagram) => {
    const end = datagram.length - tagBytes - 4
    if (end < clearBytes) return null
    const authenticated = datagram.subarray(0, end + 4)
    const ssrc = datagram.readUInt32BE(4)
    const trailer = datagram.readUInt32BE(end)
    const index = trailer % indexes
    const source = sources.get(ssrc) ?? createReplayWindow()
    const isKnown = sources.has(ssrc)
    if ((!isKnown && sources.size >= maxSources) || !source.isFresh(index)) return null
    if (!transform.isTagOf(datagram.subarray(end + 4), authenticated)) return null
    sources.set(ssrc, source)
    source.saw(index)
    const compound = datagram.subarray(0, end)
    if (trailer >= encryptedFlag) transform.crypt(compound.subarray(clearBytes), ssrc, index)
    return compound
  }
}

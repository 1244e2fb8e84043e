/**
 * Owns the suites AES_CM_128_HMAC_SHA1_80 and _32: AES in counter mode and an HMAC-SHA1 that is cut, over the packet as it is sent.
 * RFC 3711 §4.1, §4.2.
 */
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import { createCounterMode } from './counter-mode.ts'
import type { SessionKeys } from './srtp-keys.ts'
import type { RtcpTransform, RtpTransform } from './srtp-transform.ts'

export function createAesCmRtp(keys: SessionKeys, tagBytes: number): RtpTransform {
  const { crypt, tagOf, isTagOf } = createAesCm(keys)
  return {
    tagBytes,
    protect(packetAndRoom, start, index) {
      const packet = packetAndRoom.subarray(0, packetAndRoom.length - tagBytes)
      crypt(packet.subarray(start), packet.readUInt32BE(8), index)
      tagOf(packet, rolloverOf(index)).copy(packetAndRoom, packet.length, 0, tagBytes)
    },
    unprotect(datagram, start, index) {
      const packet = datagram.subarray(0, datagram.length - tagBytes)
      if (!isTagOf(datagram.subarray(packet.length), packet, rolloverOf(index))) return false
      crypt(packet.subarray(start), packet.readUInt32BE(8), index)
      return true
    },
  }
}

/** Its tag has 80 bits in both suites (RFC 4568 §6.2.2) and stands behind the index. */
const rtcpTagBytes = 10
const indexBytes = 4
const clearBytes = 8

export function createAesCmRtcp(keys: SessionKeys): RtcpTransform {
  const { crypt, tagOf, isTagOf } = createAesCm(keys)
  const trailerBytes = indexBytes + rtcpTagBytes
  return {
    trailerBytes,
    indexFromEnd: trailerBytes,
    protect(datagram, index) {
      const compound = datagram.subarray(0, datagram.length - trailerBytes)
      crypt(compound.subarray(clearBytes), compound.readUInt32BE(4), index)
      const authenticated = datagram.subarray(0, datagram.length - rtcpTagBytes)
      tagOf(authenticated).copy(datagram, authenticated.length, 0, rtcpTagBytes)
    },
    unprotect(datagram, index, isEncrypted) {
      const compound = datagram.subarray(0, datagram.length - trailerBytes)
      const authenticated = datagram.subarray(0, datagram.length - rtcpTagBytes)
      if (!isTagOf(datagram.subarray(authenticated.length), authenticated)) return false
      if (isEncrypted) crypt(compound.subarray(clearBytes), compound.readUInt32BE(4), index)
      return true
    },
  }
}

const rolloverOf = (index: number): number => Math.floor(index / 0x1_0000) % 0x1_0000_0000

function createAesCm({ cipherKey, authenticationKey, salt }: SessionKeys) {
  const applyKeystream = createCounterMode(cipherKey)
  // As an object of its own: node takes bytes for a key several times slower, and every packet passes a key.
  const key = createSecretKey(authenticationKey)
  const initial = Buffer.alloc(16)
  initial.set(salt)
  const counter = Buffer.alloc(16)
  const rolloverBytes = Buffer.alloc(4)

  /** Encrypts or decrypts in place. §4.1.1: (salt * 2^16) XOR (SSRC * 2^64) XOR (index * 2^16) */
  function crypt(bytes: Uint8Array, ssrc: number, index: number): void {
    counter.set(initial)
    counter.writeUInt32BE((initial.readUInt32BE(4) ^ ssrc) >>> 0, 4)
    counter.writeUInt16BE((initial.readUInt16BE(8) ^ Math.floor(index / 0x1_0000_0000)) & 0xffff, 8)
    counter.writeUInt32BE((initial.readUInt32BE(10) ^ index) >>> 0, 10)
    applyKeystream(bytes, counter)
  }

  /** 20 bytes, to be cut. `rollover` is left out for RTCP. §4.2.1 */
  function tagOf(bytes: Uint8Array, rollover?: number): Buffer {
    const hmac = createHmac('sha1', key).update(bytes)
    if (rollover === undefined) return hmac.digest()
    rolloverBytes.writeUInt32BE(rollover)
    return hmac.update(rolloverBytes).digest()
  }

  const isTagOf = (tag: Uint8Array, bytes: Uint8Array, rollover?: number): boolean =>
    timingSafeEqual(tag, tagOf(bytes, rollover).subarray(0, tag.length))

  return { crypt, tagOf, isTagOf }
}

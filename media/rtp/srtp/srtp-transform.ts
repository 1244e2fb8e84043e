/** Owns what SRTP and SRTCP do to bytes under one set of session keys: the counter of a packet, encryption and the tag. RFC 3711 §4.1, §4.2. */
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import { createCounterMode } from './counter-mode.ts'
import type { SessionKeys } from './srtp-keys.ts'

export type SrtpTransform = {
  /** Encrypts or decrypts in place. `index` has at most 48 bits. */
  crypt(bytes: Uint8Array, ssrc: number, index: number): void
  /** 20 bytes, to be cut. `rollover` is left out for RTCP. §4.2.1 */
  tagOf(bytes: Uint8Array, rollover?: number): Buffer
  /** In constant time. */
  isTagOf(tag: Uint8Array, bytes: Uint8Array, rollover?: number): boolean
}

export function createSrtpTransform({ cipherKey, authenticationKey, salt }: SessionKeys): SrtpTransform {
  const applyKeystream = createCounterMode(cipherKey)
  // As an object of its own: node takes bytes for a key several times slower, and every packet passes a key.
  const key = createSecretKey(authenticationKey)
  const initial = Buffer.alloc(16)
  initial.set(salt)
  const counter = Buffer.alloc(16)
  const rolloverBytes = Buffer.alloc(4)

  function tagOf(bytes: Uint8Array, rollover?: number): Buffer {
    const hmac = createHmac('sha1', key).update(bytes)
    if (rollover === undefined) return hmac.digest()
    rolloverBytes.writeUInt32BE(rollover)
    return hmac.update(rolloverBytes).digest()
  }

  return {
    crypt(bytes, ssrc, index) {
      // §4.1.1: (salt * 2^16) XOR (SSRC * 2^64) XOR (index * 2^16)
      counter.set(initial)
      counter.writeUInt32BE((initial.readUInt32BE(4) ^ ssrc) >>> 0, 4)
      counter.writeUInt16BE((initial.readUInt16BE(8) ^ Math.floor(index / 0x1_0000_0000)) & 0xffff, 8)
      counter.writeUInt32BE((initial.readUInt32BE(10) ^ index) >>> 0, 10)
      applyKeystream(bytes, counter)
    },
    tagOf,
    isTagOf: (tag, bytes, rollover) => timingSafeEqual(tag, tagOf(bytes, rollover).subarray(0, tag.length)),
  }
}

/** Owns the keys of SRTP: master keys of a call, and the session keys that are derived from them. RFC 3711 §4.3, RFC 4568 §6.2, RFC 7714 §11. */
import { randomBytes } from 'node:crypto'
import type { CryptoSuite, SrtpKey } from '../media-session.ts'
import { createCounterMode } from './counter-mode.ts'

/** Of RTP or of RTCP. */
export type SessionKeys = {
  /** 16 bytes. */
  readonly cipherKey: Uint8Array
  /** 20 bytes; an AEAD suite has no use for it. */
  readonly authenticationKey: Uint8Array
  /** 14 bytes; 12 in an AEAD suite. */
  readonly salt: Uint8Array
}

export const masterKeyBytes = 16
/** RFC 3711 §8.2, RFC 7714 §12. */
export const saltBytesOf = (suite: CryptoSuite): number => (suite === 'AEAD_AES_128_GCM' ? 12 : 14)

/** A new one for each call and suite. */
export const createSrtpKey = (suite: CryptoSuite): SrtpKey => ({
  suite,
  keyAndSalt: randomBytes(masterKeyBytes + saltBytesOf(suite)),
})

export const isSameKey = (one: SrtpKey, other: SrtpKey): boolean =>
  one.suite === other.suite && Buffer.compare(one.keyAndSalt, other.keyAndSalt) === 0

/** The labels of §4.3.2; RTCP's are three higher. The key derivation rate is 0: one set of keys per master key. */
export function deriveSessionKeys({ suite, keyAndSalt }: SrtpKey, kind: 'rtp' | 'rtcp'): SessionKeys {
  const saltBytes = saltBytesOf(suite)
  const hasLength = keyAndSalt.length === masterKeyBytes + saltBytes
  if (!hasLength) throw new Error(`a master key and salt of ${suite} have ${masterKeyBytes + saltBytes} bytes`)
  const first = kind === 'rtp' ? 0 : 3
  return {
    cipherKey: derive(keyAndSalt, first, 16),
    authenticationKey: derive(keyAndSalt, first + 1, 20),
    salt: derive(keyAndSalt, first + 2, saltBytes),
  }
}

/** §4.3.3: the keystream under the master key, from the master salt with the label in its eighth byte. A salt of 12 bytes ends in zeros (RFC 7714 §11). */
export function derive(keyAndSalt: Uint8Array, label: number, length: number): Uint8Array {
  const counter = new Uint8Array(16)
  counter.set(keyAndSalt.subarray(masterKeyBytes))
  counter[7]! ^= label
  const key = new Uint8Array(length)
  createCounterMode(keyAndSalt.subarray(0, masterKeyBytes))(key, counter)
  return key
}

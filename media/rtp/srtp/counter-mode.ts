/**
 * Owns AES in counter mode as SRTP uses it. One block cipher lives as long as its key and encrypts the counters of a whole packet at
 * once: a cipher object per packet would cost more than the encryption. RFC 3711 §4.1.1.
 */
import { createCipheriv, createSecretKey } from 'node:crypto'

/** XORs the bytes in place with the keystream that begins at `counter`: 16 bytes, the last two of them 0. The same undoes it. */
export type CounterMode = (bytes: Uint8Array, counter: Uint8Array) => void

/** What the owner lets in at most, in bytes. */
export const maxDatagramBytes = 2048

const blockBytes = 16

/** `key` has 16 bytes. */
export function createCounterMode(key: Uint8Array): CounterMode {
  const cipher = createCipheriv('aes-128-ecb', createSecretKey(key), null).setAutoPadding(false)
  const counters = Buffer.alloc(maxDatagramBytes)
  return (bytes, counter) => {
    if (bytes.length > maxDatagramBytes) throw new Error('more than a datagram')
    const used = Math.ceil(bytes.length / blockBytes) * blockBytes
    for (let at = 0, block = 0; at < used; at += blockBytes, block += 1) {
      counters.set(counter, at)
      counters[at + 15] = block
    }
    const stream = cipher.update(counters.subarray(0, used))
    for (let at = 0; at < bytes.length; at += 1) bytes[at]! ^= stream[at]!
  }
}

/** Owns `a=crypto`: keys of SRTP within SDP. RFC 4568. No MKI, no rekeying, no session parameter that changes what is sent. */
import type { CryptoSuite, SrtpKey } from '../../media/rtp/media-session.ts'

export type CryptoLine = SrtpKey & { readonly tag: string }

const suites: readonly string[] = ['AES_CM_128_HMAC_SHA1_80', 'AES_CM_128_HMAC_SHA1_32'] satisfies CryptoSuite[]

/** Value of one attribute. Null: not usable, whether malformed or of an unknown kind (§6.3, §7.1.1). */
export function readCrypto(value: string): CryptoLine | null {
  const [, tag, suite, keyInfo, rest = ''] =
    /^(\d{1,9})\s+(\w{1,64})\s+inline:(\S{1,256})((?:\s+\S{1,64}){0,16})$/i.exec(value) ?? []
  const name = suites.find((known) => known === suite?.toUpperCase()) as CryptoSuite | undefined
  const keyAndSalt = readKey(keyInfo ?? '')
  if (!tag || !name || !keyAndSalt || !rest.trim().split(/\s+/).every(isHarmless)) return null
  return { tag, suite: name, keyAndSalt }
}

/**
 * `key|lifetime|MKI:length`: 30 bytes are 40 characters of base64. A lifetime is longer than any call. A length of MKI, or a second key, is
 * refused: each packet would carry it (§6.1).
 */
function readKey(text: string): Uint8Array | null {
  const [key = '', ...more] = text.split('|')
  if (!/^[A-Za-z0-9+/]{40}$/.test(key) || !more.every((part) => /^(2\^\d{1,2}|\d{1,15})$/.test(part))) return null
  return new Uint8Array(Buffer.from(key, 'base64'))
}

/** A hint for the replay window, and what its sender says may be ignored (§6.3.6, §6.3.7). */
const isHarmless = (param: string): boolean => param === '' || /^WSH=\d+$/i.test(param) || param.startsWith('-')

export const writeCrypto = (tag: string, { suite, keyAndSalt }: SrtpKey): string =>
  `a=crypto:${tag} ${suite} inline:${Buffer.from(keyAndSalt).toString('base64')}`

/** Ours are numbered from 1. */
export const offeredTag = (index: number): string => String(index + 1)

/**
 * Owns the one opinion about an IP address: its spelling, whom it reaches, and whom it counts as. Every limit, list and guard judges by what
 * is said here. Pure. RFC 4291, RFC 6052.
 */
import { textOf, wordsOf, type AddressWords } from './address-words.ts'

export type Family = 4 | 6

/** Of an address, not of a name. */
export const familyOf = (address: string): Family => (address.includes(':') ? 6 : 4)

export const loopbackOf = (family: Family): string => (family === 6 ? '::1' : '127.0.0.1')

/** Of a plain address. */
export const isWildcard = (address: string): boolean => address === '0.0.0.0' || address === '::'

/** A host as URLs and SIP write IPv6 addresses. RFC 3986 §3.2.2. */
export const withoutBrackets = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/**
 * The one spelling of an address, by which two are compared, and to which can be sent: IPv6 as RFC 5952 has it, IPv4 that is written as
 * IPv6 (`::ffff:0:0/96`) as the IPv4 it is. The zone of a link-local address stays; elsewhere a zone means nothing. Null: no address.
 */
export function plainAddressOf(text: string): string | null {
  if (!text.includes(':')) return wordsOf(text) && text
  const address = readAddress(text)
  return address && textOf(address.words) + address.zone
}

/**
 * The plain form of a peer's address as sockets of node tell it. The system knows one spelling only, so nothing is parsed: packets
 * ask for it.
 */
export const peerAddressOf = (address: string): string =>
  address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address

/** As `plainAddressOf`, of the host it leads to: IPv4 behind NAT64 is that IPv4, a zone is left out. */
export function reachedAddressOf(text: string): string | null {
  const words = reachedWordsOf(text)
  return words && textOf(words)
}

/** By these every network judges. */
export function reachedWordsOf(text: string): AddressWords | null {
  const address = readAddress(text)
  return address && reachedBy(address.words)
}

/**
 * `64:ff9b::/96` is how a host without IPv4 reaches each IPv4 host (NAT64, RFC 6052). Addresses that carry IPv4 in any other way (6to4,
 * Teredo, IPv4-compatible) are IPv6 addresses of their own.
 */
export const reachedBy = (words: AddressWords): AddressWords =>
  isMapped(words) || isThroughNat64(words) ? words.slice(6) : words

/** This machine. Not through NAT64: what has such a source came from the network (RFC 6052 §3.1). */
export function isLoopback(address: string): boolean {
  if (!address.startsWith('127.') && !address.includes(':')) return false
  const words = readAddress(address)?.words ?? null
  if (words === null) return false
  return words.length === 2 ? words[0]! >> 8 === 127 : words[7] === 1 && textOf(words) === '::1'
}

/** Of use on its own link only. */
export const isLinkLocal = (address: string): boolean => isLinkLocalWord(readAddress(address)?.words[0])

/**
 * Whom limits count: IPv4 as it is, of IPv6 the first 64 bits, because whoever has one address has all of its network. What is no
 * address counts as itself.
 */
export function addressGroupOf(address: string): string {
  if (!address.includes(':')) return address
  const words = reachedWordsOf(address)
  if (words === null) return address
  if (words.length === 2) return textOf(words)
  const [a = 0, b = 0, c = 0, d = 0] = words
  return `${a.toString(16)}:${b.toString(16)}:${c.toString(16)}:${d.toString(16)}`
}

/** A zone is part of an address of its link only. RFC 4007 §11.2. */
function readAddress(text: string): { readonly words: AddressWords; readonly zone: string } | null {
  const end = text.indexOf('%')
  const words = wordsOf(end < 0 ? text : text.slice(0, end))
  if (words === null) return null
  const zone = end < 0 ? '' : text.slice(end)
  if (zone !== '' && !(isLinkLocalWord(words[0]) && /^%[\w.:-]+$/.test(zone))) return null
  return { words: isMapped(words) ? words.slice(6) : words, zone }
}

/** fe80::/10. */
const isLinkLocalWord = (first = 0): boolean => first >> 6 === 0xfe80 >> 6

/** ::ffff:0:0/96, RFC 4291 §2.5.5.2. */
const isMapped = (words: AddressWords): boolean =>
  words[5] === 0xffff && words[0] === 0 && words[1] === 0 && isEmpty(words)

const isThroughNat64 = (words: AddressWords): boolean =>
  words[0] === 0x64 && words[1] === 0xff9b && words[5] === 0 && isEmpty(words)

/** The third to the fifth. */
const isEmpty = (words: AddressWords): boolean => words[2] === 0 && words[3] === 0 && words[4] === 0

/**
 * Owns networks in CIDR notation, and sets of them (RFC 4632, RFC 4291 §2.3). An address is judged by the host it leads to, in whichever
 * spelling it comes. Pure.
 */
import { textOf, wordsOf, type AddressWords } from './address-words.ts'
import { reachedBy, reachedWordsOf } from './addresses.ts'

export type Networks = {
  /** False for what is no address. */
  includes(address: string): boolean
  /** The first of the networks it lies in, in its plain form. Null: in none. */
  holding(address: string): string | null
}

/** Throws for text that is neither a network nor an address. */
export function networksOf(texts: readonly string[]): Networks {
  const networks = texts.map((text) => {
    const network = readNetwork(text)
    if (network === null) throw new Error(`${text} is no network in CIDR notation`)
    return network
  })
  const find = (address: string): Network | undefined => {
    const words = networks.length === 0 ? null : reachedWordsOf(address)
    return words === null ? undefined : networks.find((network) => contains(network, words))
  }
  return {
    includes: (address) => find(address) !== undefined,
    holding: (address) => find(address)?.text ?? null,
  }
}

export const isNetwork = (text: string): boolean => readNetwork(text) !== null

/** The one spelling, as the database takes it: `198.51.100.0/24`. Null: it is none. */
export const plainNetworkOf = (text: string): string | null => readNetwork(text)?.text ?? null

/** Bits of a prefix: what has fewer holds the hosts of many. */
const narrowest = { ipv4: 16, ipv6: 48 } as const

/** Wider than a /16 of IPv4 or a /48 of IPv6, in whichever spelling. What is no network is not. */
export function isWideNetwork(text: string): boolean {
  const network = readNetwork(text)
  return network !== null && network.prefix < (network.words.length === 2 ? narrowest.ipv4 : narrowest.ipv6)
}

/** `prefix` in bits of its own family: a network of IPv4 that is written as IPv6 is one of IPv4, and one of IPv6 holds no IPv4. */
type Network = { readonly words: AddressWords; readonly prefix: number; readonly text: string }

function readNetwork(text: string): Network | null {
  const [, address = '', given] = /^([^/]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? []
  const words = wordsOf(address)
  if (words === null) return null
  const bits = 16 * words.length
  const prefix = given === undefined ? bits : Number(given)
  if (prefix > bits) return null
  const reached = reachedBy(words)
  const carrier = bits - 16 * reached.length
  return prefix < carrier ? toNetwork(words, prefix) : toNetwork(reached, prefix - carrier)
}

function toNetwork(address: AddressWords, prefix: number): Network {
  const words = address.map((word, index) => word & maskOf(prefix - 16 * index))
  return { words, prefix, text: `${textOf(words)}/${prefix}` }
}

/** Of a word of which so many bits count. */
const maskOf = (bits: number): number => (0xffff << (16 - Math.min(16, Math.max(0, bits)))) & 0xffff

function contains({ words, prefix }: Network, address: AddressWords): boolean {
  if (words.length !== address.length) return false
  const whole = prefix >> 4
  for (let index = 0; index < whole; index += 1) if (words[index] !== address[index]) return false
  const rest = prefix & 15
  return rest === 0 || (words[whole]! ^ address[whole]!) >> (16 - rest) === 0
}

/**
 * Owns the verdict on an IP address: is it public, or allowed all the same? IANA special-purpose registries (RFC 6890, RFC 8190),
 * and the cloud metadata addresses that lie in public space. Pure.
 */
import { BlockList, isIP } from 'node:net'

const blocked4 = [
  '0.0.0.0/8', // "this network", RFC 791
  '10.0.0.0/8', // private, RFC 1918
  '100.64.0.0/10', // carrier-grade NAT, RFC 6598
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's metadata and host agent
  '169.254.0.0/16', // link-local, RFC 3927: metadata of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments, RFC 6890
  '192.0.2.0/24', // documentation, RFC 5737
  '192.88.99.0/24', // 6to4 relays, RFC 7526
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarking, RFC 2544
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast, RFC 5771
  '240.0.0.0/4', // reserved, broadcast
]

/** Everything outside 2000::/3 is no global unicast address: `::`, `::1`, unique local, link-local, site-local, multicast, discard. */
const blocked6 = [
  '::/3',
  '4000::/2',
  '8000::/1',
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarking
  '2001:db8::/32', // documentation, RFC 3849
  '2002::/16', // 6to4 carries any IPv4 address, RFC 3056
  '3fff::/20', // documentation, RFC 9637
]

/** Throws for text that is neither a network nor an address. */
function addNetwork(list: BlockList, text: string): void {
  const [address = '', given] = text.split('/')
  const family = isIP(address)
  const prefix = given ?? (family === 6 ? '128' : '32')
  if (family === 0 || !/^\d{1,3}$/.test(prefix)) throw new Error(`${text} is no network in CIDR notation`)
  list.addSubnet(address, Number(prefix), family === 6 ? 'ipv6' : 'ipv4')
}

export function networksOf(texts: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of texts) addNetwork(list, text)
  return list
}

export const includes = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/**
 * IPv4 written as IPv6 is judged as the IPv4 it reaches: `::ffff:0:0/96` (mapped) and `64:ff9b::/96`, which is how a machine
 * without IPv4 reaches every IPv4 host (NAT64, RFC 6052). Null for what is no address.
 */
export function plainAddressOf(address: string): string | null {
  if (isIP(address) === 4) return address
  if (isIP(address) !== 6 || address.includes('%')) return null
  // The URL parser is the canonical form: at most one `::`, hexadecimal groups only.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const embedded = /^(?:::ffff|64:ff9b:):(?:([0-9a-f]{1,4}):)?([0-9a-f]{1,4})$/.exec(canonical)
  if (!embedded) return canonical
  const high = Number.parseInt(embedded[1] ?? '0', 16)
  const low = Number.parseInt(embedded[2] ?? '0', 16)
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

export type AddressRules = {
  /** Open to anybody. Anything that is no plain address is not. */
  readonly isPublic: (address: string) => boolean
}

export function createAddressRules(): AddressRules {
  const blocked = { 4: networksOf(blocked4), 6: networksOf(blocked6) }
  return {
    isPublic(address) {
      const plain = plainAddressOf(address)
      if (plain === null) return false
      return !includes(isIP(plain) === 6 ? blocked[6] : blocked[4], plain)
    },
  }
}

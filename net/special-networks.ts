/**
 * Owns the networks that are not the public internet: IANA special-purpose registries (RFC 6890, RFC 8190), and the cloud metadata
 * addresses that lie in public space. Pure.
 */
import { isLoopback, reachedAddressOf } from './addresses.ts'
import { networksOf } from './networks.ts'

/** Private networks, free for anyone to use: RFC 1918, RFC 4193. */
export const privateUse = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']

const notPublic = networksOf([
  ...privateUse,
  '0.0.0.0/8', // "this network", RFC 791
  '100.64.0.0/10', // carrier-grade NAT, RFC 6598
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's metadata and host agent
  '169.254.0.0/16', // link-local, RFC 3927: metadata of most clouds
  '192.0.0.0/24', // protocol assignments, RFC 6890
  '192.0.2.0/24', // documentation, RFC 5737
  '192.88.99.0/24', // 6to4 relays, RFC 7526
  '198.18.0.0/15', // benchmarking, RFC 2544
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast, RFC 5771
  '240.0.0.0/4', // reserved, broadcast
  // Outside of 2000::/3 nothing is global unicast: `::`, `::1`, unique local, link-local, site-local, multicast, discard.
  '::/3',
  '4000::/2',
  '8000::/1',
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarking
  '2001:db8::/32', // documentation, RFC 3849
  '2002::/16', // 6to4 carries any IPv4 address, RFC 3056
  '3fff::/20', // documentation, RFC 9637
])

/** Open to anybody. What is no address is not. */
export function isPublic(address: string): boolean {
  const reached = reachedAddressOf(address)
  return reached !== null && !notPublic.includes(reached)
}

const local = networksOf([...privateUse, '100.64.0.0/10', 'fe80::/10'])

/** Of a network that many have, or of one machine: it leads to somebody else from elsewhere. */
export const isLocal = (address: string): boolean => local.includes(address) || isLoopback(address)

/** Both in one of the private networks: no NAT is expected between them. */
export function inSamePrivateNetwork(one: string, other: string): boolean {
  const network = local.holding(one)
  return network !== null && network === local.holding(other)
}

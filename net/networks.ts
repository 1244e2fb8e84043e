/** Owns what an IP address tells of where it is. RFC 1918, RFC 4193, RFC 6598. */
import { BlockList, isIP } from 'node:net'

export type Family = 4 | 6

export const familyOf = (address: string): Family => (address.includes(':') ? 6 : 4)

/** `::ffff:192.0.2.1` is the IPv4 address it carries. */
export const plainAddress = (address: string): string =>
  address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address

export const isLoopback = (address: string): boolean => address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address)

export const isWildcard = (address: string): boolean => address === '0.0.0.0' || address === '::'

export const loopbackOf = (family: Family): string => (family === 6 ? '::1' : '127.0.0.1')

const privateNetworks = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7', 'fe80::/10']

export type Networks = {
  /** Of a network such as `192.0.2.7/24`: is the address in it? False for what is no network. */
  isWithin(address: string, network: string): boolean
  /** Both in one of the private networks: no NAT is expected between them. */
  inSamePrivateNetwork(one: string, other: string): boolean
}

/** Networks that are kept ready to be compared with. */
const maxReady = 200

export function createNetworks(): Networks {
  const ready = new Map<string, BlockList>()

  function readyOf(network: string): BlockList {
    const known = ready.get(network)
    if (known) return known
    const [start = '', prefix = ''] = network.split('/')
    const list = new BlockList()
    if (isIP(start) !== 0) list.addSubnet(start, Number(prefix), typeOf(start))
    if (ready.size >= maxReady) ready.clear()
    ready.set(network, list)
    return list
  }

  function isWithin(address: string, network: string): boolean {
    const plain = address.replace(/%.*$/, '')
    return isIP(plain) !== 0 && readyOf(network).check(plain, typeOf(plain))
  }

  return {
    isWithin,
    inSamePrivateNetwork: (one, other) =>
      privateNetworks.some((network) => isWithin(one, network) && isWithin(other, network)),
  }
}

const typeOf = (address: string): 'ipv4' | 'ipv6' => (familyOf(address) === 6 ? 'ipv6' : 'ipv4')

/** Whom limits count: of IPv6 the first 64 bits, because whoever has one address has all of its network. */
export function addressGroupOf(address: string): string {
  const plain = plainAddress(address)
  if (familyOf(plain) === 4) return plain
  const [head = '', tail] = plain.replace(/%.*$/, '').split('::')
  const groups = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array<string>(Math.max(0, 8 - groups.length - last.length)).fill('0')
  return [...groups, ...zeros, ...last].slice(0, 4).join(':')
}

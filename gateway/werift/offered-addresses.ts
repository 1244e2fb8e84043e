/** Owns the addresses at which browsers are told to look for media, and those that are bound for it. Pure. RFC 8445 §5.1.1.1. */
import type { NetworkInterfaceInfo } from 'node:os'
import { familyOf, isLinkLocal, isWildcard, loopbackOf } from '../../net/addresses.ts'

export type MediaAddresses = {
  /** An IP address; a wildcard (0.0.0.0, ::) offers the addresses of all interfaces of its family. */
  readonly bindAddress: string
  /** What clients outside reach this host by (behind NAT); offered before the local addresses. */
  readonly publicAddress?: string | undefined
  /**
   * Binds every interface and offers their addresses beside `bindAddress`, which is loopback: browsers that run here may send from
   * any address of this machine, and Firefox never sends to loopback.
   */
  readonly offersInterfaces?: boolean
}

export type Interfaces = NodeJS.Dict<readonly Pick<NetworkInterfaceInfo, 'address' | 'internal'>[]>

/** Each is checked by every client, and a machine with containers has an interface for each network of theirs. */
const maxLocal = 16

export const boundAddresses = ({ bindAddress, offersInterfaces }: MediaAddresses): readonly string[] =>
  offersInterfaces ? ['0.0.0.0', '::'] : [bindAddress]

/** The public one first, loopback last: a browser on this host may need it, no other one does. */
export function offeredAddresses(addresses: MediaAddresses, interfaces: Interfaces): string[] {
  const { publicAddress } = addresses
  const local = localAddresses(addresses, interfaces)
  return [...new Set(publicAddress === undefined ? local : [publicAddress, ...local])]
}

function localAddresses({ bindAddress, offersInterfaces = false }: MediaAddresses, interfaces: Interfaces): string[] {
  if (!offersInterfaces && !isWildcard(bindAddress)) return [bindAddress]
  const found = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    // Link-local addresses need a scope that a candidate cannot carry.
    .filter(({ address }) => !isLinkLocal(address))
    .filter(({ address }) => offersInterfaces || familyOf(address) === familyOf(bindAddress))
  const loopback = offersInterfaces ? [bindAddress] : []
  loopback.push(...found.filter(({ internal }) => internal).map(({ address }) => address))
  const others = found.filter(({ internal }) => !internal).map(({ address }) => address)
  return [...others.slice(0, maxLocal), ...loopback]
}

/** Where this host reaches itself without a packet leaving it. */
export const selfAddressOf = ({ bindAddress }: MediaAddresses): string =>
  isWildcard(bindAddress) ? loopbackOf(familyOf(bindAddress)) : bindAddress

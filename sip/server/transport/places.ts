/** Owns which of our addresses a peer sees: the listener that serves a way, and the external address where one is set. */
import { type Family, familyOf, isLinkLocal, isLoopback, isWildcard, loopbackOf } from '../../../net/addresses.ts'
import type { Networks } from '../../../net/networks.ts'
import { inSamePrivateNetwork } from '../../../net/special-networks.ts'
import type { Endpoint, Protocol, Target } from './transport.ts'

/** One address this machine has. */
export type OwnAddress = {
  readonly address: string
  /** Loopback. */
  readonly internal: boolean
  readonly network: Networks
}

export type Bound = { readonly protocol: Protocol; readonly local: Endpoint }

export type ExternalAddress = { readonly ipv4: string | null; readonly ipv6: string | null }

export type PlacesOptions = {
  readonly bound: readonly Bound[]
  readonly externalAddress: ExternalAddress
  /** What the host has; asked now and then, because it changes. */
  ownAddresses(): readonly OwnAddress[]
}

export type Places = {
  /** Who sends to this peer: of the protocol and family. Null: no listener is there. */
  listenerFor(protocol: Protocol, remote: string): Bound | null
  /** The address of the host the peer's packets go to. */
  localOf(bound: Bound, remote: string): Endpoint
  /** As Transports.externalOf. */
  externalOf(protocol: Protocol, remote: string): Endpoint
  /** What Via says to this peer. */
  sentBy(target: Target): Endpoint
  /** For the list of listeners. */
  externalOfBound(bound: Bound): Endpoint
  /** Did we write this sent-by? RFC 3261 §18.1.2. */
  isOurs(host: string, port: number | null): boolean
}

export function createPlaces({ bound, externalAddress, ownAddresses }: PlacesOptions): Places {
  const names = createPublicNames()
  const externalFor = (family: Family): string | null => (family === 4 ? externalAddress.ipv4 : externalAddress.ipv6)

  function listenerFor(protocol: Protocol, remote: string): Bound | null {
    const fitting = bound.filter(
      ({ protocol: own, local }) => own === protocol && familyOf(local.address) === familyOf(remote),
    )
    const byReach = (wanted: boolean) => fitting.find(({ local }) => reaches(local.address, remote) === wanted)
    return byReach(true) ?? byReach(false) ?? null
  }

  function localAddressOf(address: string, remote: string): string {
    if (!isWildcard(address)) return address
    const family = familyOf(address)
    if (isLoopback(remote)) return loopbackOf(family)
    const own = ownAddresses().filter((one) => familyOf(one.address) === family && !one.internal)
    const near = own.find(({ network }) => network.includes(remote))
    // A link-local address is of use on its own link only.
    const global = own.find((one) => !isLinkLocal(one.address))
    return (near ?? global ?? own[0])?.address ?? loopbackOf(family)
  }

  function isNear(local: string, remote: string): boolean {
    if (isLoopback(remote) || inSamePrivateNetwork(local, remote)) return true
    return ownAddresses().some(({ address, network }) => address === local && network.includes(remote))
  }

  function externalOf(protocol: Protocol, remote: string): Endpoint {
    // A protocol without a listener is used for connections of our own only: what comes back comes by them.
    const listener =
      listenerFor(protocol, remote) ?? bound.find(({ local }) => reaches(local.address, remote)) ?? bound[0]
    if (!listener) return { address: loopbackOf(familyOf(remote)), port: 5060 }
    const local = localAddressOf(listener.local.address, remote)
    const external = externalFor(familyOf(local))
    return { address: external === null || isNear(local, remote) ? local : external, port: listener.local.port }
  }

  return {
    listenerFor,
    localOf: ({ local }, remote) => ({ address: localAddressOf(local.address, remote), port: local.port }),
    externalOf,
    sentBy({ protocol, remote, publicName = null, via }) {
      if (via) names.used(placeNameOf(via.sentBy.address, via.sentBy.port))
      if (via) return via.sentBy
      const place = externalOf(protocol, remote.address)
      return publicName === null ? place : { ...place, address: names.used(publicName) }
    },
    externalOfBound({ local }) {
      const family = familyOf(local.address)
      const external = isLoopback(local.address) ? null : externalFor(family)
      return {
        address: external ?? localAddressOf(local.address, family === 6 ? '2001:db8::1' : '192.0.2.1'),
        port: local.port,
      }
    },
    isOurs: (host, port) =>
      names.has(placeNameOf(host, port ?? 5060)) ||
      (bound.some(({ local }) => local.port === (port ?? 5060)) &&
        (host === externalAddress.ipv4 ||
          host === externalAddress.ipv6 ||
          names.has(host) ||
          bound.some(({ local }) => local.address === host) ||
          ownAddresses().some(({ address }) => address === host))),
  }
}

/** Of another process, in whose name something was sent. */
const placeNameOf = (host: string, port: number): string => `${host} ${port}`

const maxNames = 1_000

/** Those that Via said lately: answers come back with them. */
function createPublicNames() {
  const names = new Set<string>()
  return {
    used(name: string): string {
      const [oldest] = names.keys()
      if (names.size >= maxNames && oldest !== undefined) names.delete(oldest)
      names.delete(name.toLowerCase())
      names.add(name.toLowerCase())
      return name
    },
    has: (host: string): boolean => names.has(host.toLowerCase()),
  }
}

/** A socket bound to loopback reaches loopback only, and one bound to another address does not. */
const reaches = (local: string, remote: string): boolean =>
  familyOf(local) === familyOf(remote) && (isWildcard(local) || isLoopback(local) === isLoopback(remote))

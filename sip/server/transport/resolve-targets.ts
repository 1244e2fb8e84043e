/** Owns where a request goes: from the host of a URI to addresses in the order they are tried. RFC 3263 §4. */
import type { Clock } from '../../../model/clock.ts'
import { deadline, unlessAborted } from '../../../model/deadline.ts'
import type { SipUri } from '../message/uri.ts'
import type { Resolver } from './dns-resolver.ts'
import { type Family, familyOf, loopbackOf, plainAddressOf, withoutBrackets } from '../../../net/addresses.ts'
import { type SrvRecord, srvOrder } from './srv-order.ts'
import { type Protocol, type Target, TransportError } from './transport.ts'
import { defaultPortOf } from './via-of-way.ts'

export type Destination = {
  /** A name, or an address without brackets. */
  readonly host: string
  /** Null: as the DNS says, else the default of the protocol. */
  readonly port: number | null
  /** As `transport=` says; null: as the DNS says, else UDP. */
  readonly transport: string | null
  /** `sips:`: by TLS only. */
  readonly isSecure: boolean
}

/** RFC 3263 §4: `maddr` stands for the host. */
export const destinationOf = ({ scheme, host, port, params }: SipUri): Destination => ({
  host: withoutBrackets(params.get('maddr') ?? host),
  port,
  transport: params.get('transport') ?? null,
  isSecure: scheme === 'sips',
})

export type ResolveOptions = {
  readonly resolver: Resolver
  /** Who asked is gone. */
  readonly signal: AbortSignal
  readonly clock: Clock
  /** 0 ≤ x < 1. */
  random(): number
  /** Those we can send by, in order of preference. */
  readonly families?: readonly Family[]
  readonly protocols?: readonly Protocol[]
  readonly maxTargets?: number
  /** Ms for everything together. */
  readonly timeout?: number
}

type Settled = Required<ResolveOptions>

const defaults = {
  families: [4, 6],
  protocols: ['udp', 'tcp', 'tls'],
  maxTargets: 10,
  timeout: 5_000,
} as const

/** At least one. Rejects with TransportError: nothing was found, or not in time, or what is asked for cannot be had. */
export async function resolveTargets(destination: Destination, options: ResolveOptions): Promise<Target[]> {
  const settled: Settled = { ...defaults, ...options }
  const found = await inTime(targetsOf(destination, settled), destination, settled)
  const ways = new Map(
    found.map((target) => [`${target.protocol} ${target.remote.address} ${target.remote.port}`, target]),
  )
  if (ways.size === 0) throw new TransportError(`no address was found for ${destination.host}`)
  return [...ways.values()].slice(0, settled.maxTargets)
}

function inTime<Found>(
  found: Promise<Found>,
  { host }: Destination,
  { signal, clock, timeout }: Settled,
): Promise<Found> {
  const wanted = unlessAborted(found, signal, () => new TransportError(`nobody waits for ${host} any more`))
  return deadline(clock, timeout, wanted, () => {
    throw new TransportError(`the DNS did not answer for ${host} in time`)
  })
}

async function targetsOf(destination: Destination, options: Settled): Promise<Target[]> {
  const { host, port } = destination
  const asked = askedProtocol(destination, options)
  const protocol = asked ?? (destination.isSecure ? 'tls' : 'udp')
  const at = (address: string): Target => toTarget(destination, protocol, address, port ?? defaultPortOf(protocol))
  const literal = plainAddressOf(host)
  if (literal !== null) return options.families.includes(familyOf(literal)) ? [at(literal)] : []
  if (/^localhost\.?$/i.test(host)) return options.families.map((family) => at(loopbackOf(family)))
  // §4.2: a port that is named leaves nothing for SRV to say.
  if (port !== null) return byAddress(destination, protocol, host, port, options)
  const services = asked ? [serviceOf(asked, host)] : await servicesOf(destination, options)
  const bySrv = await Promise.all(services.map((service) => byService(destination, service, options)))
  if (bySrv.some((found) => found !== null)) return bySrv.flatMap((found) => found ?? [])
  return byAddress(destination, protocol, host, defaultPortOf(protocol), options)
}

const toTarget = ({ host }: Destination, protocol: Protocol, address: string, port: number): Target => ({
  protocol,
  remote: { address, port },
  // RFC 5922 §7.2: the name that was asked for, not one an unsigned DNS led to.
  serverName: protocol === 'tls' ? host.replace(/\.$/, '') : null,
})

/** §4.1. Null: none was asked for. */
function askedProtocol({ transport, isSecure }: Destination, { protocols }: Settled): Protocol | null {
  if (transport === null) return null
  const named = protocols.find((protocol) => protocol === transport.toLowerCase())
  const asked = isSecure && named === 'tcp' ? 'tls' : named
  if (asked && protocols.includes(asked) && !(isSecure && asked === 'udp')) return asked
  throw new TransportError(`${isSecure ? 'sips' : 'sip'} by ${transport} cannot be had`)
}

/** `name`: of the SRV records. */
type Service = { readonly protocol: Protocol; readonly name: string }

const prefixes: Readonly<Record<Protocol, string>> = { udp: '_sip._udp', tcp: '_sip._tcp', tls: '_sips._tcp' }
const serviceOf = (protocol: Protocol, host: string): Service => ({ protocol, name: `${prefixes[protocol]}.${host}` })

const protocolOfService: Readonly<Record<string, Protocol>> = { 'SIP+D2U': 'udp', 'SIP+D2T': 'tcp', 'SIPS+D2T': 'tls' }

/** §4.1: as NAPTR orders them; without NAPTR every protocol that is possible. */
async function servicesOf(destination: Destination, { resolver, protocols }: Settled): Promise<Service[]> {
  const { host, isSecure } = destination
  const isPossible = (protocol: Protocol): boolean => protocols.includes(protocol) && (!isSecure || protocol === 'tls')
  const records = await orNothing(resolver.naptr(host))
  const named = records
    .filter(({ flags }) => flags.toLowerCase() === 's')
    .toSorted((one, other) => one.order - other.order || one.preference - other.preference)
    .flatMap(({ service, replacement }) => {
      const protocol = protocolOfService[service.toUpperCase()]
      return protocol && isPossible(protocol) ? [{ protocol, name: replacement }] : []
    })
  return named.length > 0
    ? named.slice(0, maxServices)
    : protocols.filter(isPossible).map((one) => serviceOf(one, host))
}

const maxServices = 4
/** A zone may list any number of servers; each costs a lookup. */
const maxServers = 10

/** Null: there are no such records. */
async function byService(destination: Destination, { protocol, name }: Service, options: Settled) {
  const records = await orNothing(options.resolver.srv(name))
  if (records.length === 0) return null
  const ordered = srvOrder(records.slice(0, 4 * maxServers), options.random)
    .filter(isOffered)
    .slice(0, maxServers)
  const found = await Promise.all(
    ordered.map((record) => orNothing(byAddress(destination, protocol, record.name, record.port, options))),
  )
  return found.flat()
}

const isOffered = ({ name }: SrvRecord): boolean => name !== '.' && name !== ''

async function byAddress(
  destination: Destination,
  protocol: Protocol,
  name: string,
  port: number,
  { resolver, families }: Settled,
): Promise<Target[]> {
  const literal = plainAddressOf(name)
  if (literal !== null) return [toTarget(destination, protocol, literal, port)]
  const lookups = await Promise.allSettled(families.map((family) => resolver.addresses(name, family)))
  const addresses = lookups.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
  const refused = lookups.find((one) => one.status === 'rejected')
  if (addresses.length === 0 && refused)
    throw new TransportError(`the DNS did not answer for ${name}`, { cause: refused.reason })
  return addresses.map((address) => toTarget(destination, protocol, address, port))
}

/** Servers that choke on NAPTR or SRV are common; then the next rule is followed, as without such records. */
const orNothing = <Found>(answer: Promise<readonly Found[]>): Promise<readonly Found[]> => answer.catch(() => [])

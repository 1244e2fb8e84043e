/** Owns asking the DNS, as far as SIP needs it. */
import { lookup, Resolver as NodeResolver } from 'node:dns/promises'
import { NODATA, NOTFOUND } from 'node:dns'
import type { Family } from '../../../net/addresses.ts'
import type { SrvRecord } from './srv-order.ts'

export type NaptrRecord = {
  readonly order: number
  readonly preference: number
  readonly flags: string
  readonly service: string
  readonly replacement: string
}

/** No records: an empty list. Reject when there was no answer, or one that says nothing. */
export type Resolver = {
  naptr(name: string): Promise<readonly NaptrRecord[]>
  srv(name: string): Promise<readonly SrvRecord[]>
  addresses(name: string, family: Family): Promise<readonly string[]>
}

export type DnsResolver = Resolver & {
  /** Waiting look-ups are rejected. Idempotent. */
  close(): void
}

export type DnsResolverOptions = {
  /** `address` or `address:port`; null: those of the system, and its hosts file for what they do not know. */
  readonly servers: readonly string[] | null
  /** Ms for one attempt. */
  readonly timeout: number
  readonly tries: number
}

export const defaultDns: DnsResolverOptions = { servers: null, timeout: 1_500, tries: 2 }

export function createDnsResolver({ servers, timeout, tries }: DnsResolverOptions = defaultDns): DnsResolver {
  const resolver = new NodeResolver({ timeout, tries, maxTimeout: timeout })
  if (servers) resolver.setServers(servers)
  return {
    naptr: (name) => orNone(resolver.resolveNaptr(name)),
    srv: (name) => orNone(resolver.resolveSrv(name)),
    async addresses(name, family) {
      const found = await orNone(family === 6 ? resolver.resolve6(name) : resolver.resolve4(name))
      return found.length > 0 || servers ? found : ofSystem(name, family)
    },
    close: () => resolver.cancel(),
  }
}

async function orNone<Found>(answer: Promise<Found[]>): Promise<Found[]> {
  try {
    return await answer
  } catch (error) {
    if (isNothing(error)) return []
    throw error
  }
}

const isNothing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === NODATA || error.code === NOTFOUND)

async function ofSystem(name: string, family: Family): Promise<string[]> {
  // A name that does not resolve has no address; the reason is of no interest.
  const found = await lookup(name, { family, all: true }).catch(() => [])
  return found.map(({ address }) => address)
}

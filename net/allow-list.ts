/** Owns the lists of hosts by which an operator opens what is closed to tenants: names, addresses and networks (WEBHOOK_ALLOW_HOSTS, SIP_ALLOW_HOSTS). */
import { isIP } from 'node:net'
import { withoutBrackets } from './addresses.ts'
import { networksOf } from './networks.ts'

export type AllowList = {
  readonly hasNetworks: boolean
  readonly name: (hostname: string) => boolean
  readonly address: (address: string) => boolean
}

/** A name, an address or a network. */
export function isAllowEntry(entry: string): boolean {
  try {
    createAllowList([entry])
    return true
  } catch {
    return false
  }
}

/** An IPv6 address may stand in brackets. Throws for an entry that is no name, address or network. */
export function createAllowList(entries: readonly string[]): AllowList {
  const hosts = entries.map((entry) => withoutBrackets(entry.trim().toLowerCase())).filter((entry) => entry !== '')
  const names = new Set(hosts.filter((entry) => !entry.includes('/') && isIP(entry) === 0))
  for (const name of names)
    if (!/^[a-z0-9._-]+$/.test(name)) throw new Error(`${name} is no host name, address or network`)
  const numeric = hosts.filter((entry) => !names.has(entry))
  const networks = networksOf(numeric)
  return {
    hasNetworks: numeric.length > 0,
    name: (hostname) => names.has(hostname.toLowerCase()),
    address: networks.includes,
  }
}

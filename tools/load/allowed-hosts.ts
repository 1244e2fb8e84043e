/** Owns where traffic of a load may go: to this machine, and to hosts that whoever runs it has named. */
import { isIP } from 'node:net'
import { lookup } from 'node:dns/promises'
import { withoutBrackets } from '../../net/addresses.ts'
import { isLoopbackHost } from '../../net/loopback-host.ts'

export type AllowedHosts = {
  /** Throws with the option that would allow it. */
  check(host: string, what: string): void
  allows(host: string): boolean
}

/** As it stands in a URL. */
export const bracketedHost = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host)

/** Names bring their addresses along: sound goes to addresses. */
export async function allowedHostsOf(names: readonly string[]): Promise<AllowedHosts> {
  const allowed = new Set(names.map((name) => withoutBrackets(name).toLowerCase()))
  for (const name of names)
    if (isIP(withoutBrackets(name)) === 0)
      for (const { address } of await lookup(name, { all: true }).catch(() => [])) allowed.add(address)
  const allows = (host: string): boolean =>
    isLoopbackHost(bracketedHost(withoutBrackets(host))) || allowed.has(withoutBrackets(host).toLowerCase())
  return {
    allows,
    check(host, what) {
      if (!allows(host)) throw new Error(`${what} is at ${host}, which is not this machine: --i-may-load ${host}`)
    },
  }
}

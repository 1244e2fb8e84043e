/**
 * Owns which names the endpoint may be asked under, and which pages may ask: a name that an attacker lets point here (DNS rebinding) is neither.
 * docs/contract/mcp.md "Endpoint".
 */
import { Problem } from '../model/problem.ts'
import { plainAddressOf, withoutBrackets } from '../net/addresses.ts'
import { isLoopbackHost } from '../net/loopback-host.ts'

/** Both throw Problem ORIGIN_NOT_ALLOWED. */
export type CheckHosts = {
  /** The name that it is asked under. */
  host(request: Request): void
  /** The same, and which page asks: its origin; null when no page does. */
  page(request: Request): string | null
}

/** `publicUrl` null: names of this machine, and addresses, which nobody can let point elsewhere. */
export function createCheckHosts(publicUrl: string | null): CheckHosts {
  const ours = publicUrl === null ? null : new URL(publicUrl).hostname
  const isOurs = ({ hostname, host }: URL): boolean =>
    isLoopbackHost(host) || (ours === null ? plainAddressOf(withoutBrackets(hostname)) !== null : hostname === ours)
  const host = ({ url }: Request): URL => {
    const asked = new URL(url)
    if (!isOurs(asked)) throw refusal('This service is not known by that host name: PUBLIC_URL names it.')
    return asked
  }
  return {
    host,
    page(request) {
      const asked = host(request)
      const origin = request.headers.get('origin')
      if (origin !== null && !isOf(origin, ours ?? asked.hostname))
        throw refusal('Pages of this origin may not ask here.')
      return origin
    },
  }
}

/** A page of the service itself, or of this machine. */
function isOf(origin: string, hostname: string): boolean {
  if (!URL.canParse(origin)) return false
  const page = new URL(origin)
  return /^https?:$/.test(page.protocol) && (page.hostname === hostname || isLoopbackHost(page.host))
}

const refusal = (details: string): Problem => new Problem('ORIGIN_NOT_ALLOWED', details)

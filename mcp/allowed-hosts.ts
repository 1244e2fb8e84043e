/**
 * Owns which names the endpoint may be asked under, and which pages may ask: a name that an attacker lets point here (DNS rebinding) is neither.
 * docs/contract/mcp.md "Endpoint".
 */
import { Problem } from '../model/problem.ts'
import { isLoopbackHost } from '../net/loopback-host.ts'

/** Throws Problem ORIGIN_NOT_ALLOWED. The origin when a page asks; null when no page does. */
export type CheckHosts = (request: Request) => string | null

/** `publicUrl` null: only names of this machine. */
export function createCheckHosts(publicUrl: string | null): CheckHosts {
  const ours = publicUrl === null ? null : new URL(publicUrl).hostname
  const isOurs = (url: string): boolean => {
    if (!URL.canParse(url)) return false
    const { hostname, host, protocol } = new URL(url)
    return /^https?:$/.test(protocol) && (hostname === ours || isLoopbackHost(host))
  }
  return (request) => {
    if (!isOurs(request.url)) throw refusal('This service is not known by that host name: PUBLIC_URL names it.')
    const origin = request.headers.get('origin')
    if (origin !== null && !isOurs(origin)) throw refusal('Pages of this origin may not ask here.')
    return origin
  }
}

const refusal = (details: string): Problem => new Problem('ORIGIN_NOT_ALLOWED', details)

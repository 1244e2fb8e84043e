/** Owns which names mean this very host. */
import { isLoopback, withoutBrackets } from './addresses.ts'

/** A Host header, with or without port. Names are loopback only when nobody but this machine can resolve them (RFC 6761 section 6.3). */
export function isLoopbackHost(host: string): boolean {
  if (!URL.canParse(`http://${host}`)) return false
  const { hostname } = new URL(`http://${host}`)
  return hostname === 'localhost' || hostname.endsWith('.localhost') || isLoopback(withoutBrackets(hostname))
}

/** Owns what counts as this very machine. */

/** An IPv4, IPv6 or IPv4-mapped address, as the listener reports a peer. */
export const isLoopbackAddress = (address: string): boolean => /^(::ffff:)?127\.\d+\.\d+\.\d+$|^::1$/i.test(address)

/** A Host header, with or without port. Names are loopback only when nobody but this machine can resolve them (RFC 6761 section 6.3). */
export function isLoopbackHost(host: string): boolean {
  if (!URL.canParse(`http://${host}`)) return false
  const { hostname } = new URL(`http://${host}`)
  return (
    hostname === 'localhost' || hostname.endsWith('.localhost') || isLoopbackAddress(hostname.replace(/[[\]]/g, ''))
  )
}

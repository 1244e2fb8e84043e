/**
 * Owns whose request it is when proxies stand before the service: the last address in X-Forwarded-For that is no proxy of ours. What stands
 * before that one was written by somebody nobody here knows.
 */
import { BlockList, isIP } from 'node:net'

/** `trusted`: the addresses and networks (CIDR) of our own proxies; none: the peer is the client. */
export function createClientAddress(trusted: readonly string[]): (request: Request, peer: string) => string {
  const proxies = networksOf(trusted)
  const isProxy = (address: string): boolean =>
    isIP(address) !== 0 && proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  return (request, peer) => {
    if (trusted.length === 0 || !isProxy(peer)) return peer
    const named = request.headers.get('x-forwarded-for')?.split(',') ?? []
    let client = peer
    for (let index = named.length - 1; index >= 0 && isProxy(client); index -= 1) {
      const next = named[index]?.trim() ?? ''
      if (isIP(next) === 0) return client
      client = next
    }
    return client
  }
}

function networksOf(texts: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of texts) {
    const [address = '', prefix] = text.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    list.addSubnet(address, Number(prefix ?? (family === 'ipv6' ? 128 : 32)), family)
  }
  return list
}

/**
 * Owns whose request it is when proxies stand before the service: the last address in X-Forwarded-For that is no proxy of ours. What stands
 * before that one is the word of an unknown client.
 */
import { plainAddressOf } from '../../net/addresses.ts'

/** `isProxy` tells of an address whether it is one of our own proxies. */
export function createClientAddress(isProxy: (address: string) => boolean): (request: Request, peer: string) => string {
  return (request, peer) => {
    if (!isProxy(peer)) return peer
    const named = request.headers.get('x-forwarded-for')?.split(',') ?? []
    let client = peer
    for (let index = named.length - 1; index >= 0 && isProxy(client); index -= 1) {
      const next = plainAddressOf(named[index]?.trim() ?? '')
      if (next === null) return client
      client = next
    }
    return client
  }
}

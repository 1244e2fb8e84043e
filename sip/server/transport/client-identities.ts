/**
 * Owns the certificates that we show to those we call over TLS, and who may name which: a request names its own by an id that never leaves
 * this process, as the parameter `client` of its next hop. RFC 5246 §7.4.6.
 */
import { createHash } from 'node:crypto'

/** PEM. */
export type ClientIdentity = { readonly cert: string; readonly key: string }

export type ClientIdentities = {
  /** The id of it. */
  add(identity: ClientIdentity): string
  /** Null: it was not added lately. */
  of(id: string): ClientIdentity | null
}

/** Trunks have few of them; the one that was not used for longest is forgotten first. */
const maxIdentities = 1_000

export function createClientIdentities(): ClientIdentities {
  const byId = new Map<string, ClientIdentity>()
  return {
    add(identity) {
      const id = createHash('sha256').update(`${identity.cert}\n${identity.key}`).digest('hex').slice(0, 32)
      const [oldest] = byId.keys()
      if (byId.size >= maxIdentities && oldest !== undefined) byId.delete(oldest)
      byId.delete(id)
      byId.set(id, identity)
      return id
    },
    of: (id) => byId.get(id) ?? null,
  }
}

/**
 * Owns by which addresses this service is an authorization server, one issuer each: PUBLIC_URL when it is set, and nothing else. Without one, the
 * address a request came to, as long as it is a number or names this machine: a name could be anybody's who points it here.
 */
import { isIP } from 'node:net'
import type { Provider } from 'oidc-provider'
import { withoutBrackets } from '../../net/addresses.ts'
import { createRecent } from '../../net/recent.ts'
import { resourceOf } from '../resource-metadata.ts'
import type { Keys } from './provider.ts'
import type { SigningKeys } from './signing-keys.ts'

/** Without a slash at its end. */
export type Origins = {
  /** Null: not by this address. */
  of(requestUrl: string): string | null
  /** Is this the address of the endpoint `/mcp` by one of them? */
  isResource(resource: string): boolean
}

export function createOrigins(publicUrl: string | null): Origins {
  const fixed = publicUrl?.replace(/\/+$/, '') ?? null
  const of = (requestUrl: string): string | null => {
    if (fixed !== null) return fixed
    const { origin, hostname } = new URL(requestUrl)
    return isOurs(hostname) ? origin : null
  }
  return {
    of,
    isResource(resource) {
      if (fixed !== null) return resource === resourceOf(fixed)
      const origin = URL.canParse(resource) ? of(resource) : null
      return origin !== null && resource === resourceOf(origin)
    },
  }
}

const isOurs = (hostname: string): boolean => hostname === 'localhost' || isIP(withoutBrackets(hostname)) !== 0

export type Issuer = { readonly provider: Provider; readonly handle: ReturnType<Provider['callback']> }

/** Each is made once, and anew when there is another key. */
const maxProviders = 16

export function createIssuers(keys: SigningKeys, create: (origin: string, keys: Keys) => Issuer) {
  let of: Keys | null = null
  let providers = createRecent<Issuer>(maxProviders)
  return async (origin: string): Promise<Issuer> => {
    const current = await keys.get()
    if (current !== of) {
      of = current
      providers = createRecent(maxProviders)
    }
    const known = providers.get(origin)
    if (known) return known
    const made = create(origin, current)
    providers.set(origin, made)
    return made
  }
}

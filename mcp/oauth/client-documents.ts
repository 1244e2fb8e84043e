/**
 * Owns clients that are known by the address of a document about them (OAuth Client ID Metadata Document), and the library's only way out: every
 * address is somebody else's choice, so it goes through the guarded sender of webhooks, which refuses private addresses where it connects, follows
 * no redirect, and bounds time and size. docs/security.md.
 */
import { errors, type Client, type KoaContextWithOIDC } from 'oidc-provider'
import type { FetchDocument } from '../../model/fetch-document.ts'
import type { Log } from '../../model/log.ts'
import { createTokenBuckets, perMinute, takeToken } from '../../net/token-bucket.ts'
import { metadataOf, WrongMetadata, type Metadata } from './client-metadata.ts'

export type ClientDocuments = {
  mayFetch(ctx: KoaContextWithOIDC, clientId: string): boolean
  mayBeClient(ctx: KoaContextWithOIDC, client: Client): boolean
  fetch(input: string | URL | Request): Promise<Response>
}

/** Ms for all of a document. */
const within = 5_000
const maxBytes = 64 * 1024
/** Of one host, however many clients name it. */
const perHost = perMinute(30)
const inAll = perMinute(300)
const maxHosts = 5_000
/** Under way at the same time. */
const maxAtOnce = 20

export function createClientDocuments(deps: {
  readonly fetchDocument: FetchDocument
  readonly log: Log
  readonly now: () => number
}): ClientDocuments {
  const { fetchDocument, log, now } = deps
  const hosts = createTokenBuckets(perHost, maxHosts)
  const everybody = createTokenBuckets(inAll, 2)
  let underWay = 0

  async function fetch(input: string | URL | Request): Promise<Response> {
    const url = new URL(input instanceof Request ? input.url : input)
    if (underWay >= maxAtOnce) throw new Error('too many documents are being fetched')
    underWay += 1
    try {
      const got = await fetchDocument({ url: url.href, within, maxBytes })
      if (got.kind === 'failed') throw new Error(got.details)
      if (got.status !== 200) return new Response(null, { status: got.status >= 400 ? got.status : 502 })
      return new Response(rewritten(got.body), { status: 200, headers: { ...got.headers } })
    } catch (error) {
      log.info('a document of an OAuth client could not be had', { host: url.host, error })
      throw error
    } finally {
      underWay -= 1
    }
  }
  return {
    fetch,
    mayFetch(_ctx, clientId) {
      const url = URL.parse(clientId)
      // draft-ietf-oauth-client-id-metadata-document section 3: a path of its own.
      if (url === null || url.protocol !== 'https:' || url.pathname === '/' || clientId.length > 500) return false
      return takeToken(hosts(url.hostname, now()), now()) && takeToken(everybody('all', now()), now())
    },
    mayBeClient(_ctx, { clientName, redirectUris, clientAuthMethod }) {
      return (
        Boolean(clientName) &&
        (redirectUris?.length ?? 0) > 0 &&
        ['none', 'private_key_jwt'].includes(clientAuthMethod ?? '')
      )
    },
  }
}

/** As what is registered: what is not ours to do is left out, and what nobody may ask for is refused. */
function rewritten(body: string): string {
  const document = JSON.parse(body) as Metadata
  const isClient = typeof document === 'object' && document !== null && 'client_id' in document
  if (!isClient) return body
  // The library refuses documents that hold a secret.
  const secrets = ['client_secret', 'client_secret_expires_at'].filter((name) => name in document)
  if (secrets.length > 0) throw new errors.InvalidClientMetadata('a metadata document must hold no secret')
  if (document['client_name'] === undefined) throw new errors.InvalidClientMetadata('client_name is missing')
  try {
    return JSON.stringify(metadataOf(document))
  } catch (error) {
    if (!(error instanceof WrongMetadata)) throw error
    throw new errors.InvalidClientMetadata(error.message, { cause: error })
  }
}

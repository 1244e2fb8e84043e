/**
 * Owns an OAuth client of the tests, as both official SDKs want one: what it registered, its tokens and where it was sent live in memory; the
 * browser comes back to a listener of its own on loopback.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { OAuthClientProvider } from '@modelcontextprotocol/client'

type Teardown = { teardown(close: () => void): unknown }

export type Tokens = { access_token: string; token_type: string; refresh_token?: string; scope?: string }

export type OAuthClient = {
  /** Both SDKs take it: what the older one does not know it leaves alone. */
  readonly provider: OAuthClientProvider
  readonly redirectUrl: string
  /** Where the browser was sent last. Throws when it was not. */
  authorizationUrl(): string
  /** How often it was sent anywhere. */
  redirects(): number
  /** What the browser brings back: the query of the redirect. Waits for it. */
  returned(): Promise<URLSearchParams>
  registered(): { readonly client_id: string }
  tokens(): Tokens
  /** From here on it shows this access token. */
  pretend(accessToken: string): void
}

export async function openOAuthClient(
  t: Teardown,
  { name = 'Test client', scope }: { readonly name?: string; readonly scope?: string } = {},
): Promise<OAuthClient> {
  const { redirectUrl, returned } = await openRedirectTarget(t)
  const kept: { client?: { client_id: string }; tokens?: Tokens; verifier?: string; url?: URL } = {}
  let redirects = 0
  const state = randomBytes(16).toString('base64url')
  const provider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: {
      client_name: name,
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      ...(scope !== undefined && { scope }),
    },
    state: () => state,
    clientInformation: () => kept.client,
    saveClientInformation: (client) => void (kept.client = client),
    tokens: () => kept.tokens,
    saveTokens: (tokens) => void (kept.tokens = tokens as Tokens),
    redirectToAuthorization(url) {
      redirects += 1
      kept.url = url
    },
    saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
    codeVerifier: () => required(kept.verifier, 'a verifier'),
    invalidateCredentials(scope) {
      if (scope === 'all' || scope === 'tokens') delete kept.tokens
      if (scope === 'all' || scope === 'client') delete kept.client
    },
  }
  return {
    provider,
    redirectUrl,
    authorizationUrl: () => required(kept.url, 'an authorization URL').href,
    redirects: () => redirects,
    async returned() {
      const query = await returned()
      if (query.get('state') !== state) throw new Error(`a redirect with another state: ${query.toString()}`)
      return query
    },
    registered: () => required(kept.client, 'a registration'),
    tokens: () => required(kept.tokens, 'tokens'),
    pretend: (accessToken) => void (kept.tokens = { ...required(kept.tokens, 'tokens'), access_token: accessToken }),
  }
}

async function openRedirectTarget(t: Teardown) {
  const waiting: ((query: URLSearchParams) => void)[] = []
  const arrived: URLSearchParams[] = []
  const server = http.createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1')
    response.writeHead(pathname === '/callback' ? 200 : 404, { 'content-type': 'text/plain', connection: 'close' })
    response.end('You may close this page.')
    if (pathname !== '/callback') return
    const wanted = waiting.shift()
    if (wanted) wanted(searchParams)
    else arrived.push(searchParams)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    redirectUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`,
    async returned(): Promise<URLSearchParams> {
      return arrived.shift() ?? (await new Promise<URLSearchParams>((resolve) => waiting.push(resolve)))
    },
  }
}

function required<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new Error(`the client has not got ${what}`)
  return value
}

/** The authorization code flow with PKCE, from registration to revocation, by plain fetch over both HTTP drivers. docs/contract/mcp.md "Authorization". */
import t, { type Test } from 'tap'
import type { Fetch } from '../../../model/listener.ts'
import { openTestDatabase } from '../../scenes/database.ts'
import { eachDriver, serve, type Driver } from '../../scenes/listener.ts'
import {
  createBrowser,
  createClient,
  createVerifier,
  decide,
  openOauthOn,
  redirectUri,
  goToConsent,
} from '../../scenes/oauth.ts'

const database = await openTestDatabase(t)

async function stage(t: Test, driver: Driver) {
  const oauth = await openOauthOn(database)
  const accountId = await oauth.account('acme')
  const userId = await oauth.user('ada@example.com', [[accountId, 'owner']])
  const fetchIt: Fetch = oauth.fetch
  const { url } = await serve(t, driver, { fetch: fetchIt })
  const ask = (request: Request) => fetch(request)
  return { ...oauth, accountId, userId, url, client: createClient(ask, url), browser: createBrowser(ask, url) }
}

await eachDriver({
  async 'a client registers, a person signs in and approves, the code becomes tokens, and the tokens say what was granted'(
    t,
    driver,
  ) {
    const { client, browser, findMcpAccess, accountId, userId, url, audited } = await stage(t, driver)
    const registered = await client.register({ client_name: 'My <b>agent</b>' })
    t.equal(registered.status, 201)
    t.equal(registered.headers.get('access-control-allow-origin'), '*')
    t.match(registered.json, { token_endpoint_auth_method: 'none', redirect_uris: [redirectUri] })
    t.notOk('client_secret' in registered.json)
    const clientId = String(registered.json['client_id'])

    const verifier = createVerifier()
    const consent = await goToConsent(browser, client.authorizeUrl(clientId, verifier))
    t.equal(consent.page.status, 200)
    t.match(consent.page.text, 'My &lt;b&gt;agent&lt;/b&gt;')
    t.match(consent.page.text, 'client.example')
    const { back } = await decide(browser, consent)
    t.equal(back?.origin, 'https://client.example')
    t.equal(back?.searchParams.get('state'), 'state-1')
    t.equal(back?.searchParams.get('iss'), url, 'RFC 9207')

    const tokens = await client.exchange(clientId, back?.searchParams.get('code') ?? '', verifier)
    t.match(tokens.json, { token_type: 'Bearer', expires_in: 3600, scope: 'account_admin' })
    t.equal(tokens.status, 200)
    t.equal(tokens.headers.get('cache-control'), 'no-store')
    const access = await findMcpAccess(String(tokens.json['access_token']))
    t.match(access, {
      accountId,
      userId,
      clientId,
      clientName: 'My <b>agent</b>',
      scopes: ['account_admin'],
      workerId: null,
    })

    const fresh = await client.refresh(clientId, tokens.json['refresh_token'])
    t.equal(fresh.status, 200, 'a refresh token is good')
    t.not(fresh.json['refresh_token'], tokens.json['refresh_token'], 'and is replaced')
    t.ok(await findMcpAccess(String(fresh.json['access_token'])))

    const revoked = await client.post('/oauth/revoke', {
      client_id: clientId,
      token: String(fresh.json['refresh_token']),
    })
    t.equal(revoked.status, 200)
    t.equal(
      await findMcpAccess(String(fresh.json['access_token'])),
      null,
      'a revoked token takes all of its grant with it',
    )
    t.equal(await findMcpAccess(String(tokens.json['access_token'])), null)
    t.same(
      audited.map(({ action }) => action),
      ['oauth.register', 'user.sign_in', 'oauth.approve', 'oauth.revoke'],
    )
  },
  async 'the metadata says what there is, wherever clients look for it'(t, driver) {
    const { client, url } = await stage(t, driver)
    const paths = [
      'oauth-authorization-server',
      'oauth-authorization-server/mcp',
      'openid-configuration',
      'openid-configuration/mcp',
    ]
    for (const path of paths) {
      const { status, json, headers } = await client.send(`/.well-known/${path}`)
      t.equal(status, 200, path)
      t.equal(headers.get('access-control-allow-origin'), '*')
      t.match(json, {
        issuer: url,
        authorization_endpoint: `${url}/oauth/authorize`,
        token_endpoint: `${url}/oauth/token`,
        registration_endpoint: `${url}/oauth/register`,
        revocation_endpoint: `${url}/oauth/revoke`,
        jwks_uri: `${url}/oauth/jwks`,
        response_types_supported: ['code'],
        response_modes_supported: ['query'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none', 'private_key_jwt'],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
      })
    }
    const { json } = await client.send('/.well-known/oauth-authorization-server')
    t.same(json['scopes_supported'], ['account_admin', 'admin', 'user', 'offline_access'])
    const keys = await client.send('/oauth/jwks')
    t.notMatch(JSON.stringify(keys.json), /"d":/, 'public keys only')
    const preflight = await client.send('/oauth/token', {
      method: 'OPTIONS',
      headers: { origin: 'https://inspector.example' },
    })
    t.equal(preflight.status, 204)
    t.equal((await client.send('/oauth/nothing')).status, 404)
    t.equal((await client.send('/oauth/token')).status, 405)
  },
})

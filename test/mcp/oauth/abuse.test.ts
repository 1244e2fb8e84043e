/** What a dishonest client, a thief of codes and tokens, or a page elsewhere gets from the authorization server: nothing. docs/security.md. */
import t from 'tap'
import { createClient, createVerifier, decide, pathOf, redirectUri, openOauthOn, stageOf } from '../../scenes/oauth.ts'
import { databaseUnreachable } from '../../../store/database-unreachable.ts'
import { connect } from '../../../store/sql.ts'
import { openTestDatabase } from '../../scenes/database.ts'
import { hiddenOf } from '../../scenes/people.ts'

/** The library tells people things on the console; here nobody reads it. */
const told = (['info', 'warn', 'error'] as const).map((way) => t.capture(console, way))

const database = await openTestDatabase(t)
const opened = openOauthOn(database)
const invalidGrant = { status: 400, json: { error: 'invalid_grant' } }

await t.test('a code is good once; one that comes again ends all that the first one gave', async (t) => {
  const { codeOf, client, clientId, findMcpAccess, audited } = await stageOf(opened)
  const { code, verifier } = await codeOf()
  const first = await client.exchange(clientId, code, verifier)
  t.ok(await findMcpAccess(String(first.json['access_token'])))
  t.match(await client.exchange(clientId, code, verifier), invalidGrant)
  t.equal(await findMcpAccess(String(first.json['access_token'])), null)
  t.match(await client.refresh(clientId, first.json['refresh_token']), invalidGrant)
  t.match(audited.at(-1), { action: 'oauth.code_reused', actor: { kind: 'mcp_client', clientId } })
})

await t.test('of a code that is exchanged twice at once, nothing is left that works', async (t) => {
  const { codeOf, client, clientId, findMcpAccess } = await stageOf(opened)
  const { code, verifier } = await codeOf()
  const answers = await Promise.all([1, 2, 3].map(() => client.exchange(clientId, code, verifier)))
  t.ok(answers.filter(({ status }) => status === 200).length <= 1)
  t.ok(answers.every(({ status }) => status === 200 || status === 400))
  for (const { json } of answers) t.equal(await findMcpAccess(String(json['access_token'])), null)
})

await t.test(
  'a code is good for its client, its address, its verifier and its resource only, and for a minute',
  async (t) => {
    const { codeOf, client, clientId, clock, origin } = await stageOf(opened)
    const { code, verifier } = await codeOf()
    const other = await client.registered()
    t.match(await client.exchange(other, code, verifier), invalidGrant)
    t.match(await client.exchange(clientId, code, createVerifier()), invalidGrant)
    t.match(await client.exchange(clientId, code, ''), { status: 400 })
    t.match(await client.exchange(clientId, code, verifier, { redirect_uri: `${redirectUri}/` }), invalidGrant)
    t.match(
      await client.post('/oauth/token', {
        grant_type: 'authorization_code',
        client_id: clientId,
        code,
        redirect_uri: redirectUri,
      }),
      invalidGrant,
    )
    const elsewhere = await client.exchange(clientId, code, verifier, { resource: 'https://elsewhere.example/mcp' })
    t.match(elsewhere.json, { error: 'invalid_target' }, origin)
    const late = await codeOf()
    clock.advance(60_001)
    t.match(await client.exchange(clientId, late.code, late.verifier), invalidGrant)
  },
)

await t.test('PKCE with S256 is asked of every client, and nothing weaker is taken', async (t) => {
  const { client, clientId, browser } = await stageOf(opened)
  const verifier = createVerifier()
  const weak = [
    { code_challenge: null, code_challenge_method: null },
    { code_challenge: verifier, code_challenge_method: 'plain' },
    { code_challenge_method: null },
    { code_challenge: 'short' },
  ]
  for (const over of weak) {
    const { status, location } = await browser.get(client.authorizeUrl(clientId, verifier, over))
    t.equal(status, 303)
    t.match(location, /^https:\/\/client\.example\/back\?error=invalid_request/, JSON.stringify(over))
  }
})

await t.test('an answer goes to a registered address, letter by letter, and nowhere else', async (t) => {
  const { client, clientId, browser } = await stageOf(opened)
  const others = [
    'https://evil.example/back',
    'https://client.example/back/',
    'https://client.example/back?x=1',
    'https://client.example/Back',
    'https://client.example:8443/back',
    'https://client.example.evil.example/back',
    'https://client.example@evil.example/back',
    'http://client.example/back',
    'https://client.example/back#x',
    '//client.example/back',
    'javascript:alert(1)',
  ]
  for (const redirect of others) {
    const answer = await browser.get(client.authorizeUrl(clientId, createVerifier(), { redirect_uri: redirect }))
    t.equal(answer.location, null, redirect)
    t.equal(answer.status, 400)
    t.match(answer.headers.get('content-security-policy'), "frame-ancestors 'none'")
  }
  t.equal(
    (await browser.get(client.authorizeUrl('nobody', createVerifier()))).location,
    null,
    'an unknown client has no address',
  )
  const loopback = await client.registered({
    redirect_uris: ['http://127.0.0.1/callback', 'cursor://anysphere.cursor/oauth'],
  })
  const at = (uri: string) => browser.get(client.authorizeUrl(loopback, createVerifier(), { redirect_uri: uri }))
  t.match(
    (await at('http://127.0.0.1:43123/callback')).location,
    /oauth\/consent/,
    'any port of a loopback address: RFC 8252',
  )
  t.match((await at('cursor://anysphere.cursor/oauth')).location, /oauth\/consent/)
  t.equal((await at('http://127.0.0.1:43123/elsewhere')).location, null)
  t.equal((await at('http://localhost:43123/callback')).location, null)
})

await t.test('one resource is there, and the tokens are for it', async (t) => {
  const { client, clientId, browser, codeOf, findMcpAccess, sql, open } = await stageOf(opened)
  for (const resource of ['https://elsewhere.example/mcp', 'http://127.0.0.1:8080/', 'no url']) {
    const { location } = await browser.get(client.authorizeUrl(clientId, createVerifier(), { resource }))
    t.match(location, /error=invalid_target/, resource)
  }
  const { code, verifier } = await codeOf({ resource: null })
  const { json } = await client.exchange(clientId, code, verifier)
  const token = String(json['access_token'])
  t.ok(await findMcpAccess(token), 'a client that names none means this one')
  t.equal(
    await open({ publicUrl: 'https://other.example' }).findMcpAccess(token),
    null,
    'by another name it is another audience',
  )
  await sql`update oauth_payloads set payload = jsonb_set(payload, '{aud}', '"https://elsewhere.example/mcp"')`
  t.equal(await findMcpAccess(token), null)
})

await t.test('a refresh token is good once; one that comes again ends the grant, its newest tokens too', async (t) => {
  const { tokensOf, client, clientId, findMcpAccess, audited, clock } = await stageOf(opened)
  const first = await tokensOf()
  const second = await client.refresh(clientId, first.refresh)
  t.equal(second.status, 200)
  t.match(await client.refresh(clientId, first.refresh), invalidGrant)
  t.match(audited.at(-1), { action: 'oauth.refresh_token_reused' })
  t.equal(await findMcpAccess(String(second.json['access_token'])), null)
  t.match(await client.refresh(clientId, second.json['refresh_token']), invalidGrant)
  const old = await tokensOf()
  clock.advance(30 * 24 * 3_600_000 + 1)
  t.match(await client.refresh(clientId, old.refresh), invalidGrant, 'after thirty days')
})

await t.test('of two refreshes at once one is answered, and the grant lives on', async (t) => {
  const { tokensOf, client, clientId, findMcpAccess } = await stageOf(opened, { now: Date.now })
  const { refresh } = await tokensOf()
  const answers = await Promise.all([client.refresh(clientId, refresh), client.refresh(clientId, refresh)])
  const good = answers.filter(({ status }) => status === 200)
  t.equal(good.length, 1)
  t.match(
    answers.find(({ status }) => status !== 200),
    invalidGrant,
  )
  t.ok(await findMcpAccess(String(good[0]?.json['access_token'])))
  t.equal((await client.refresh(clientId, good[0]?.json['refresh_token'])).status, 200)
})

await t.test(
  'a refresh that came before the token was used by another one does not end the grant, a later one does',
  async (t) => {
    const { tokensOf, client, clientId, findMcpAccess, open, askOf, origin, clock } = await stageOf(opened)
    const { refresh } = await tokensOf()
    const came = clock.now()
    clock.advance(10)
    const fresh = await client.refresh(clientId, refresh)
    const access = String(fresh.json['access_token'])
    const waited = createClient(askOf(open({ now: () => came }).fetch), origin)
    t.match(await waited.refresh(clientId, refresh), invalidGrant)
    t.ok(await findMcpAccess(access))
    clock.advance(1)
    t.match(await client.refresh(clientId, refresh), invalidGrant)
    t.equal(await findMcpAccess(access), null)
  },
)

await t.test('a refresh gives no more than was granted, and to no other client', async (t) => {
  const { tokensOf, client, clientId, findMcpAccess } = await stageOf(opened)
  const { refresh } = await tokensOf({ scope: 'account_admin' })
  t.match((await client.refresh(clientId, refresh, { scope: 'account_admin user' })).json, { error: 'invalid_scope' })
  t.match((await client.refresh(clientId, refresh, { resource: 'https://elsewhere.example/mcp' })).json, {
    error: 'invalid_target',
  })
  t.match(await client.refresh(await client.registered(), refresh), invalidGrant)
  const { json } = await client.refresh(clientId, refresh)
  t.match(await findMcpAccess(String(json['access_token'])), { scopes: ['account_admin'] })
})

await t.test('a token of somebody else is revoked by nobody, and an unknown one is no error', async (t) => {
  const { tokensOf, client, clientId, findMcpAccess } = await stageOf(opened)
  const { access } = await tokensOf()
  const other = await client.registered()
  t.equal((await client.post('/oauth/revoke', { client_id: other, token: access })).status, 200)
  t.ok(await findMcpAccess(access))
  t.equal((await client.post('/oauth/revoke', { client_id: clientId, token: 'x'.repeat(43) })).status, 200)
  t.equal((await client.post('/oauth/revoke', { client_id: clientId, token: access })).status, 200)
  t.equal(await findMcpAccess(access), null)
})

await t.test('who leaves the account, or becomes a viewer, has no power by any token', async (t) => {
  const { tokensOf, client, clientId, findMcpAccess, sql } = await stageOf(opened)
  const { access, refresh } = await tokensOf()
  await sql`update memberships set role = 'viewer'`
  t.equal(await findMcpAccess(access), null)
  t.match(await client.refresh(clientId, refresh), invalidGrant)
  await sql`update memberships set role = 'operator'`
  t.ok(await findMcpAccess(access))
  await sql`delete from memberships`
  t.equal(await findMcpAccess(access), null)
  t.match(await client.refresh(clientId, refresh), invalidGrant)
})

await t.test('a form from elsewhere, without its token, or in another browser decides nothing', async (t) => {
  const { accountId, client, clientId, browser, newBrowser, sql, toConsent } = await stageOf(opened)
  const consent = await toConsent(browser, client.authorizeUrl(clientId, createVerifier()))
  const fields = { ...hiddenOf(consent.page.text, consent.path), decision: 'approve', scope: 'account_admin' }
  t.equal((await browser.post(consent.path, { ...fields, csrf: '' })).status, 403)
  t.equal((await browser.post(consent.path, { ...fields, csrf: 'x'.repeat(43) })).status, 403)
  t.equal((await browser.post(consent.path, fields, { origin: 'https://evil.example' })).status, 403)
  t.equal((await browser.post(consent.path, fields, { 'sec-fetch-site': 'cross-site' })).status, 403)
  const victim = newBrowser()
  await victim.signIn('ada@example.com')
  t.equal((await victim.get(consent.path)).status, 404, 'the request belongs to the browser that began it')
  t.equal((await victim.post(consent.path, fields)).status, 404)
  t.equal((await browser.get(`${consent.path}x`)).status, 404)
  t.equal((await sql`select from oauth_grants where account_id = ${accountId}`).count, 0)
})

await t.test(
  'the page of consent can be framed by nobody, runs no script, and its form leads to the client alone',
  async (t) => {
    const { client, clientId, browser, toConsent } = await stageOf(opened)
    const { page } = await toConsent(browser, client.authorizeUrl(clientId, createVerifier()))
    const policy = page.headers.get('content-security-policy') ?? ''
    t.match(policy, "frame-ancestors 'none'")
    t.match(policy, "default-src 'none'")
    t.match(policy, "form-action 'self' https://client.example;")
    t.notMatch(page.text, /<script/i)
    t.equal(page.headers.get('cache-control'), 'no-store')
  },
)

await t.test('a grant is for what was asked, chosen and the person may give', async (t) => {
  const { client, clientId, browser, sql, tokensOf, findMcpAccess, account, accountId, toConsent } =
    await stageOf(opened)
  const foreign = await account('foreign')
  const begin = () => toConsent(browser, client.authorizeUrl(clientId, createVerifier(), { scope: 'account_admin' }))
  t.equal((await decide(browser, await begin(), { target: foreign })).back, null, 'an account of others')
  t.equal((await decide(browser, await begin(), { scopes: 'user' })).back, null, 'a scope that was not asked for')
  t.equal((await decide(browser, await begin(), { scopes: '' })).back, null, 'nothing at all')
  t.equal((await sql`select from oauth_grants where account_id = ${accountId}`).count, 0)
  const { access } = await tokensOf({ scope: 'account_admin' }, { scopes: 'account_admin admin user' })
  t.match(await findMcpAccess(access), { scopes: ['account_admin'], accountId })
  await sql`update memberships set role = 'viewer'`
  const viewing = await begin()
  t.match(viewing.page.text, 'only a viewer')
  const refused = await decide(browser, viewing, { target: accountId, scopes: 'account_admin' })
  t.equal(refused.decided.status, 403)
})

await t.test('a denial is told to the client, and nothing is granted', async (t) => {
  const { accountId, codeOf, sql, origin } = await stageOf(opened)
  const { back, code } = await codeOf({}, { decision: 'deny' })
  t.equal(code, '')
  t.match(Object.fromEntries(back?.searchParams ?? []), { error: 'access_denied', state: 'state-1', iss: origin })
  t.equal((await sql`select from oauth_grants where account_id = ${accountId}`).count, 0)
})

await t.test('every authorization is asked about anew, also of a client that was approved before', async (t) => {
  const { tokensOf, client, clientId, browser } = await stageOf(opened)
  await tokensOf()
  const again = await browser.get(client.authorizeUrl(clientId, createVerifier()))
  t.match(again.location, /\/oauth\/consent\//)
  const silent = await browser.get(client.authorizeUrl(clientId, createVerifier(), { prompt: 'none' }))
  t.match(silent.location, /error=login_required/)
})

await t.test('other responses than a code in the query are not to be had', async (t) => {
  const { client, clientId, browser } = await stageOf(opened)
  for (const [error, over] of [
    ['unsupported_response_type', { response_type: 'token' }],
    ['unsupported_response_type', { response_type: 'id_token' }],
    ['unsupported_response_type', { response_type: 'code token' }],
    ['unsupported_response_type', { response_type: 'none' }],
    ['invalid_request', { response_type: '' }],
    ['invalid_request', { response_mode: 'fragment' }],
    ['invalid_request', { response_type: 'code code', response_mode: 'fragment' }],
    ['invalid_request', { response_mode: 'form_post' }],
    ['request_not_supported', { request: 'x.y.z' }],
  ] as const) {
    const { location, text } = await browser.get(client.authorizeUrl(clientId, createVerifier(), over))
    t.match(location ?? text, new RegExp(`[?#&]error=${error}&|name="error" value="${error}"`), JSON.stringify(over))
    t.notMatch(location, /consent/)
  }
  t.match((await client.post('/oauth/token', { grant_type: 'client_credentials', client_id: clientId })).json, {
    error: 'unsupported_grant_type',
  })
  t.match((await client.post('/oauth/token', { grant_type: 'password', client_id: clientId })).json, {
    error: 'unsupported_grant_type',
  })
})

await t.test('what cannot be read is refused in the shape of OAuth, and never a fault of the service', async (t) => {
  const { client, clientId, askOf, fetch, origin } = await stageOf(opened)
  const json = { 'content-type': 'application/json' }
  t.match(await client.send('/oauth/token', { method: 'POST', body: '{}', headers: json }), {
    status: 400,
    json: { error: 'invalid_request' },
  })
  t.match(await client.send('/oauth/token', { method: 'POST', body: 'x'.repeat(40_000) }), {
    status: 413,
    json: { error: 'invalid_request' },
  })
  t.match(await client.post('/oauth/token', { grant_type: 'authorization_code', client_id: clientId, code: '\0' }), {
    status: 400,
  })
  t.equal((await client.send(`/oauth/authorize?client_id=${clientId}&state=%00`)).status, 400)
  t.equal((await client.send(`/oauth/authorize?state=${'x'.repeat(9_000)}`)).status, 414)
  t.match(await client.post('/oauth/token', { grant_type: 'authorization_code', client_id: 'nobody' }), {
    status: 401,
    json: { error: 'invalid_client' },
  })
  const elsewhere = createClient(askOf(fetch), origin.replace('127.0.0.1', 'rebound.example'))
  t.equal((await elsewhere.send('/.well-known/oauth-authorization-server')).status, 404, 'a name that is not ours')
})

await t.test('a request goes on in another process, at every step, and after a restart', async (t) => {
  const { open, askOf, origin, client, clientId, newBrowser, findMcpAccess, toConsent } = await stageOf(opened)
  const verifier = createVerifier()
  // Each request is answered by a process that has answered none before.
  const browser = newBrowser()
  const elsewhere = (path: string) =>
    askOf(open().fetch)(
      new Request(new URL(path, origin), {
        headers: { cookie: [...browser.cookies].map((pair) => pair.join('=')).join('; ') },
        redirect: 'manual',
      }),
    )
  const consent = await toConsent(browser, client.authorizeUrl(clientId, verifier))
  t.equal((await elsewhere(consent.path)).status, 200)
  const form = new URLSearchParams({
    ...hiddenOf(consent.page.text, consent.path),
    decision: 'approve',
    scope: 'account_admin',
  })
  const decided = await browser.post(consent.path, form.toString())
  const resumed = await elsewhere(pathOf(decided.location))
  const code = new URL(resumed.headers.get('location') ?? '').searchParams.get('code') ?? ''
  const other = createClient(askOf(open().fetch), origin)
  const { json } = await other.exchange(clientId, code, verifier)
  t.ok(await findMcpAccess(String(json['access_token'])))
  t.equal((await createClient(askOf(open().fetch), origin).refresh(clientId, json['refresh_token'])).status, 200)
})

await t.test('a copy of the database holds no code, token, cookie or key that works', async (t) => {
  const { codeOf, client, clientId, sql, browser } = await stageOf(opened)
  const { code, verifier } = await codeOf()
  const waiting = await codeOf()
  const { json } = await client.exchange(clientId, code, verifier)
  await browser.get(client.authorizeUrl(clientId, createVerifier()))
  const tables = ['oauth_payloads', 'oauth_grants', 'oauth_clients', 'oauth_keys']
  const rows = await Promise.all(tables.map((table) => sql`select ${sql(table)}::text as text from ${sql(table)}`))
  const dump = JSON.stringify(rows)
  t.match(dump, 'AuthorizationCode')
  const cookies = [...browser.cookies].filter(([name]) => name.startsWith('oauth_')).map(([, value]) => value)
  t.ok(cookies.length > 0)
  for (const secret of [waiting.code, code, json['access_token'], json['refresh_token'], ...cookies])
    if (typeof secret === 'string' && secret !== '') t.notOk(dump.includes(secret))
  t.notMatch(dump, /\\"d\\"/, 'no private key')
})

await t.test('a database that is away is told as such, and nothing of it', async (t) => {
  const { deps, open, askOf, origin } = await stageOf(opened)
  const sql = connect({ server: database.server, applicationName: 'parley test', maxConnections: 1 })
  await sql`select 1`
  const client = createClient(askOf(open({ ...deps, sql }).fetch, '203.0.113.9'), origin)
  t.equal((await client.register()).status, 201)
  await sql.end()
  const asks = [
    () => client.register(),
    () => client.exchange('nobody', 'code', createVerifier()),
    () => client.send('/oauth/authorize?client_id=nobody'),
  ]
  for (const ask of asks) t.ok(databaseUnreachable(await ask().catch((error: unknown) => error)))
})

await t.test('the library says nothing on the console', async (t) =>
  t.same(
    told.flatMap((results) => results()),
    [],
  ),
)

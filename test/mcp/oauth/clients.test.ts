/** Who may be a client, by registration and by a document of its own, and what people are told of it. docs/contract/mcp.md "Clients". */
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import tls from 'node:tls'
import t from 'tap'
import { createDocumentFetcher } from '../../../actors/webhooks/document-fetcher.ts'
import { systemClock } from '../../../app/clock.ts'
import type { FetchDocument } from '../../../model/fetch-document.ts'
import { findClient, forgetClients, registerClient } from '../../../store/oauth-clients.ts'
import { openTestDatabase } from '../../scenes/database.ts'
import { createClient, createVerifier, decide, openOauthOn, redirectUri, stageOf } from '../../scenes/oauth.ts'
import { fakeTls } from '../../scenes/tls.ts'

const database = await openTestDatabase(t)
/** By their address. */
const documents = new Map<string, Awaited<ReturnType<FetchDocument>>>()
let fetched = 0
const opened = openOauthOn(database, {
  async fetchDocument({ url }) {
    fetched += 1
    return documents.get(url) ?? { kind: 'failed', details: 'no such document' }
  },
})

await t.test('a registration takes over what is ours to do, and says what it has taken', async (t) => {
  const { client, audited } = await stageOf(opened)
  const { status, json } = await client.register({
    client_name: '  Evil\u202e \u0007name\n ',
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    response_types: ['code', 'token'],
    scope: 'user nothing',
    post_logout_redirect_uris: ['https://client.example/out'],
    id_token_signed_response_alg: 'HS256',
    application_type: 'web',
    client_id: 'mine',
  })
  t.equal(status, 201)
  t.match(json, {
    client_name: 'Evil name',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    redirect_uris: [redirectUri],
  })
  t.not(json['client_id'], 'mine')
  for (const left of ['client_secret', 'scope', 'post_logout_redirect_uris', 'registration_access_token'])
    t.notOk(left in json, left)
  t.match(audited.at(-1), {
    action: 'oauth.register',
    actor: { kind: 'mcp_client', clientId: json['client_id'], userId: null },
  })
  const form = { client_name: null, grant_types: null, scope: null, token_endpoint_auth_method: null, logo_uri: null }
  t.match(await client.register(form), { status: 201, json: { client_name: 'A client without a name' } })
  const long = await client.register({ client_name: 'é'.repeat(500) })
  t.equal(Array.from(String(long.json['client_name'])).length, 100)
})

await t.test('redirect addresses that are nobody’s, or run something, are refused', async (t) => {
  const { client } = await stageOf(opened)
  const wrong: unknown[] = [
    [],
    undefined,
    'https://client.example/',
    ['http://client.example/back'],
    ['http://192.0.2.1/back'],
    ['https://localhost/back'],
    ['https://client.example/back#x'],
    ['https://user:secret@client.example/back'],
    ['https://*.example/back'],
    ['javascript:alert(1)'],
    ['data:text/html,x'],
    ['file:///etc/passwd'],
    ['/back'],
    [`https://client.example/${'x'.repeat(3_000)}`],
    Array.from({ length: 11 }, (_, index) => `https://client.example/${index}`),
    [7],
  ]
  for (const uris of wrong) {
    const { status, json } = await client.register({ redirect_uris: uris })
    t.equal(status, 400, JSON.stringify(uris)?.slice(0, 80))
    t.equal(json['error'], 'invalid_redirect_uri')
  }
})

await t.test('a registration that cannot be read is refused in the shape of OAuth', async (t) => {
  const { client } = await stageOf(opened)
  const send = (body: string, type = 'application/json') =>
    client.send('/oauth/register', { method: 'POST', body, headers: { 'content-type': type } })
  for (const body of ['', '{', '[]', 'null', '7', '"x"'])
    t.match(await send(body), { status: 400, json: { error: 'invalid_client_metadata' } }, body)
  t.match(await send('{}', 'text/plain'), { status: 400, json: { error: 'invalid_client_metadata' } })
  t.match(await send(`{"client_name":"${'x'.repeat(40_000)}"}`), { status: 413 })
  t.match(await client.register({ client_name: '\u0000\u0001' }), {
    status: 400,
    json: { error: 'invalid_client_metadata' },
  })
  t.match(await client.register({ client_name: { a: 1 } }), { status: 400 })
  t.match(await client.register({ grant_types: ['client_credentials'] }), { status: 400 })
  t.match(await client.register({ token_endpoint_auth_method: 'private_key_jwt' }), { status: 400 })
  t.match(await client.register({ software_id: '\ud800', client_uri: 'javascript:alert(1)' }), { status: 201 })
})

await t.test('a flood of registrations is stopped by address, and others go on', async (t) => {
  const { client, askOf, fetch, origin, clock } = await stageOf(opened)
  const codes = new Set<number>()
  let last = await client.register()
  for (let count = 0; count < 70; count += 1) codes.add((last = await client.register()).status)
  t.same([...codes], [201, 429])
  t.match(last.headers.get('retry-after'), /^\d+$/)
  t.equal((await createClient(askOf(fetch, '198.51.100.9'), origin).register()).status, 201)
  clock.advance(60_000)
  t.equal((await client.register()).status, 201)
})

await t.test('so many clients are kept at most, and those that somebody approved are', async (t) => {
  const { sql, tokensOf, clientId, clock } = await stageOf(opened)
  await sql`delete from oauth_clients where id <> ${clientId}`
  await tokensOf()
  const add = (id: string) => registerClient(sql, { id, metadata: {}, now: clock.now(), most: 3 })
  for (const id of ['one', 'two', 'three', 'four']) {
    clock.advance(1)
    t.equal(await add(id), true)
  }
  const ids = await sql<{ id: string }[]>`select id from oauth_clients order by created_at`
  t.same(
    ids.map(({ id }) => id),
    [clientId, 'three', 'four'],
  )
  t.equal(
    await registerClient(sql, { id: 'five', metadata: {}, now: clock.now(), most: 1 }),
    false,
    'no room beside those in use',
  )
  await forgetClients(sql, clock.now() + 91 * 24 * 3_600_000, 10)
  t.equal(await findClient(sql, 'four'), null, 'nobody has used it for long')
})

const documentOf = (url: string, over: Record<string, unknown> = {}) => {
  const body = JSON.stringify({ client_id: url, client_name: 'Documented', redirect_uris: [redirectUri], ...over })
  documents.set(url, { kind: 'answered', status: 200, headers: { 'content-type': 'application/json' }, body })
  return url
}

await t.test('a client is known by its document, whose address the person is shown', async (t) => {
  const { client, browser, toConsent, findMcpAccess } = await stageOf(opened)
  const clientId = documentOf('https://known.example/client.json')
  const verifier = createVerifier()
  const consent = await toConsent(browser, client.authorizeUrl(clientId, verifier))
  t.match(consent.page.text, 'Documented')
  t.match(consent.page.text, 'https://known.example/client.json')
  const { back } = await decide(browser, consent)
  const { json } = await client.exchange(clientId, back?.searchParams.get('code') ?? '', verifier)
  t.match(await findMcpAccess(String(json['access_token'])), { clientId, clientName: 'Documented' })
})

await t.test(
  'a document that is wrong, hostile or not to be had makes no client, and the browser is sent nowhere',
  async (t) => {
    const { client, browser } = await stageOf(opened)
    const at = 'https://hostile.example/'
    documents.set(`${at}moved`, {
      kind: 'answered',
      status: 302,
      headers: { location: 'http://169.254.169.254/' },
      body: '',
    })
    documents.set(`${at}text`, { kind: 'answered', status: 200, headers: {}, body: 'no json' })
    documents.set(`${at}list`, { kind: 'answered', status: 200, headers: {}, body: '[]' })
    const wrong = [
      `${at}gone`,
      `${at}moved`,
      `${at}text`,
      `${at}list`,
      documentOf(`${at}other`, { client_id: 'https://bank.example/client.json' }),
      documentOf(`${at}secret`, { client_secret: 'x' }),
      documentOf(`${at}nameless`, { client_name: undefined }),
      documentOf(`${at}addressless`, { redirect_uris: [] }),
      documentOf(`${at}plain`, { redirect_uris: ['http://client.example/back'] }),
      documentOf(`${at}script`, { redirect_uris: ['javascript:alert(1)'] }),
      documentOf(`${at}huge`, {
        client_uri: `https://hostile.example/${'x'.repeat(1_900)}`,
        tos_uri: `https://hostile.example/${'x'.repeat(1_900)}`,
        policy_uri: `https://hostile.example/${'x'.repeat(1_900)}`,
      }),
      documentOf('https://hostile.example/'),
      'http://hostile.example/client.json',
      'https://hostile.example/a/../client.json',
      'https://user@hostile.example/client.json',
    ]
    for (const clientId of wrong) {
      const { status, location } = await browser.get(client.authorizeUrl(clientId, createVerifier()))
      t.equal(location, null, clientId)
      t.ok(status >= 400 && status < 500, `${clientId} ${status}`)
    }
  },
)

await t.test('a client with a key of its own proves itself by it, once with each assertion', async (t) => {
  const { client, browser, toConsent, origin, audited } = await stageOf(opened)
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig' }] }
  const clientId = await client.registered({ token_endpoint_auth_method: 'private_key_jwt', jwks })
  const verifier = createVerifier()
  const codeOf = async () => {
    const { back } = await decide(browser, await toConsent(browser, client.authorizeUrl(clientId, verifier)))
    return back?.searchParams.get('code') ?? ''
  }
  const assertionOf = (over: Record<string, unknown> = {}) => {
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: clientId, sub: clientId, aud: origin, jti: randomUUID(), iat: now, exp: now + 60, ...over }
    const parts = [{ alg: 'ES256' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    return `${parts}.${sign('sha256', Buffer.from(parts), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }
  const provedBy = (client_assertion: string) => ({
    client_assertion,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  })
  const code = await codeOf()
  t.equal((await client.exchange(clientId, code, verifier)).status, 401, 'nobody else has its key')
  t.equal(
    (await client.exchange(clientId, code, verifier, provedBy(assertionOf({ aud: 'https://elsewhere.example' }))))
      .status,
    401,
  )
  t.equal(
    (await client.exchange(clientId, code, verifier, provedBy(`${assertionOf().slice(0, -9)}AAAAAAAAA`))).status,
    401,
  )
  const assertion = assertionOf()
  t.equal((await client.exchange(clientId, code, verifier, provedBy(assertion))).status, 200)
  t.equal(
    (await client.exchange(clientId, await codeOf(), verifier, provedBy(assertion))).status,
    401,
    'an assertion is good once',
  )
  t.match(audited.at(-1), { action: 'oauth.approve' })
})

await t.test('strangers make the service ask one host only so often', async (t) => {
  const { client, browser } = await stageOf(opened)
  fetched = 0
  for (let count = 0; count < 40; count += 1)
    await browser.get(client.authorizeUrl(`https://asked.example/${count}`, createVerifier()))
  t.equal(fetched, 30)
})

await t.test('a client on the person’s own device is warned of, and one elsewhere is not', async (t) => {
  const { client, browser, toConsent } = await stageOf(opened)
  const near = await client.registered({ redirect_uris: ['http://localhost:3000/back'] })
  const url = client.authorizeUrl(near, createVerifier(), { redirect_uri: 'http://localhost:4123/back' })
  const { page } = await toConsent(browser, url)
  t.match(page.text, 'any program on it')
  t.match(page.text, 'localhost:4123')
  t.match(page.headers.get('content-security-policy'), "form-action 'self' http://localhost:4123")
  const far = await toConsent(browser, client.authorizeUrl(await client.registered(), createVerifier()))
  t.notMatch(far.page.text, 'any program on it')
  const both = await client.registered({ redirect_uris: [redirectUri, 'http://127.0.0.1:3000/back'] })
  const toDevice = { redirect_uri: 'http://127.0.0.1:3000/back' }
  const nearNow = await toConsent(browser, client.authorizeUrl(both, createVerifier(), toDevice))
  t.match(nearNow.page.text, 'any program on it', 'it is the place of this answer that counts')
  const farNow = await toConsent(browser, client.authorizeUrl(both, createVerifier()))
  t.notMatch(farNow.page.text, 'any program on it')
  const own = await client.registered({ redirect_uris: ['cursor://anysphere/back'] })
  const scheme = await toConsent(
    browser,
    client.authorizeUrl(own, createVerifier(), { redirect_uri: 'cursor://anysphere/back' }),
  )
  t.match(scheme.page.headers.get('content-security-policy'), "form-action 'self' cursor:")
})

await t.test('documents are fetched from public addresses, once, in bounded time and size', async (t) => {
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), fakeTls.cert])
  const asked: string[] = []
  const server: Server = createServer(fakeTls, (request, response) => {
    asked.push(request.url ?? '')
    if (request.url === '/slow') return
    if (request.url === '/moved') return void response.writeHead(302, { location: '/good' }).end()
    response.end(request.url === '/huge' ? 'x'.repeat(5_000) : '{}')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const resolve = async () => ['127.0.0.1']
  const open = createDocumentFetcher({ allowHosts: ['127.0.0.1'], clock: systemClock, resolve })
  const guarded = createDocumentFetcher({ allowHosts: [], clock: systemClock, resolve })
  t.teardown(async () => {
    await Promise.all([open.close(), guarded.close()])
    server.closeAllConnections()
    server.close()
  })
  const get = (from: typeof open, url: string, within = 2_000) => from.fetch({ url, within, maxBytes: 1_000 })
  t.match(await get(open, `https://localhost:${port}/good`), { kind: 'answered', status: 200, body: '{}' })
  t.match(await get(open, `https://localhost:${port}/moved`), { kind: 'answered', status: 302 })
  t.match(await get(open, `https://localhost:${port}/huge`), { kind: 'failed', details: /over 1000 bytes/ })
  t.match(await get(open, `https://localhost:${port}/slow`, 50), { kind: 'failed', details: /within 50 ms/ })
  t.match(await get(open, `http://localhost:${port}/good`), { kind: 'failed', details: /https/ })
  t.same(asked, ['/good', '/moved', '/huge', '/slow'])
  for (const host of [
    'rebound.example',
    '127.0.0.1',
    '[::1]',
    '0x7f000001',
    '169.254.169.254',
    '10.0.0.1',
    '[::ffff:127.0.0.1]',
  ])
    t.match(
      await get(guarded, `https://${host}:${port}/good`),
      { kind: 'failed', details: /not a public address/ },
      host,
    )
  t.equal(asked.length, 4, 'nothing of these was dialled')
})

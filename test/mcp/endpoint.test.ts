/** `/mcp` as a client without our code meets it: who may ask, and what the others are told. docs/contract/mcp.md "Endpoint". */
import { test } from 'tap'
import { current, modernOf, ofWorker, openMcp, publicUrl } from '../scenes/mcp.ts'
import { start } from '../scenes/seeded-api.ts'

const metadataUrl = `${publicUrl}/.well-known/oauth-protected-resource/mcp`

void test('the endpoint', async (t) => {
  const mcp = await openMcp(t)
  const { send, ask, grant, own, lines } = mcp

  await t.test('without a token it is a 401 that says where to get one, and for what', async (t) => {
    const { status, headers, json } = await send('tools/list', {}, { token: null })
    t.equal(status, 401)
    t.equal(headers.get('www-authenticate'), `Bearer scope="account_admin", resource_metadata="${metadataUrl}"`)
    t.equal(json.type, 'UNAUTHORIZED')
    t.equal(json.requestId, headers.get('x-request-id'))
  })

  await t.test('a token that is unknown or expired is a 401 that says so', async (t) => {
    for (const token of ['unknown', grant({ expiresAt: start }), '']) {
      const { status, headers } = await send('tools/list', {}, { token })
      t.equal(status, 401)
      t.match(headers.get('www-authenticate'), /^Bearer error="invalid_token", .*resource_metadata="/)
    }
  })

  await t.test('a token is taken from the header only', async (t) => {
    const { headers, json } = modernOf('tools/list', {})
    const answer = await ask(`${publicUrl}/mcp?access_token=${grant()}`, { method: 'POST', key: null, headers, json })
    t.equal(answer.status, 401)
  })

  await t.test('an API key opens nothing here, and a token nothing of the API', async (t) => {
    t.equal((await send('tools/list', {}, { token: own.key })).status, 401)
    t.equal((await ask('/v1/accounts/current', { key: grant() })).status, 401)
  })

  await t.test('the protected resource tells its authorization server, with and without the path', async (t) => {
    for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp']) {
      const { status, json, headers } = await ask(`${publicUrl}${path}`, { key: null })
      t.equal(status, 200)
      t.same(json, {
        resource: `${publicUrl}/mcp`,
        authorization_servers: [publicUrl],
        scopes_supported: ['account_admin', 'admin', 'user'],
        bearer_methods_supported: ['header'],
        resource_name: 'Parley',
      })
      t.equal(headers.get('access-control-allow-origin'), '*')
    }
    t.equal((await ask(`${publicUrl}/.well-known/oauth-protected-resource/other`, { key: null })).status, 404)
    const posted = await ask(metadataUrl, { key: null, method: 'POST', json: {} })
    t.same([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
  })

  await t.test('a page of any origin may read it, as it must before it can ask a person', async (t) => {
    for (const method of ['GET', 'OPTIONS']) {
      const { status, headers } = await ask(metadataUrl, {
        key: null,
        method,
        headers: { origin: 'https://app.example' },
      })
      t.ok(status < 300, `${method} ${status}`)
      t.equal(headers.get('access-control-allow-origin'), '*')
    }
  })

  await t.test('a foreign Host or Origin is a 403, whatever the token', async (t) => {
    const token = grant()
    for (const origin of [
      'https://evil.example',
      'null',
      'http://calls.example.evil.example',
      'file://',
      'not an origin',
    ])
      t.equal((await send('tools/list', {}, { token, headers: { origin } })).status, 403, origin)
    const { headers, json } = modernOf('tools/list', {})
    const authorized = { ...headers, authorization: `Bearer ${token}` }
    const foreign = await ask('http://evil.example:8080/mcp', { method: 'POST', key: null, headers: authorized, json })
    t.equal(foreign.status, 403)
    t.equal(foreign.json.type, 'ORIGIN_NOT_ALLOWED')
    t.equal(
      (await ask('http://192.0.2.5/.well-known/oauth-protected-resource', { key: null })).status,
      403,
      'an address is no PUBLIC_URL',
    )
    t.equal((await ask('http://evil.example/.well-known/oauth-protected-resource', { key: null })).status, 403)
  })

  await t.test('its own pages and those of this machine may ask, and read the answer', async (t) => {
    for (const origin of [publicUrl, 'http://localhost:6274', 'http://127.0.0.1:3000', 'http://[::1]:3000']) {
      const { status, headers } = await send('tools/list', {}, { headers: { origin } })
      t.equal(status, 200, origin)
      t.equal(headers.get('access-control-allow-origin'), origin)
    }
    const preflight = await ask(`${publicUrl}/mcp`, {
      method: 'OPTIONS',
      key: null,
      headers: { origin: 'http://localhost:6274', 'access-control-request-method': 'POST' },
    })
    t.equal(preflight.status, 204)
    t.match(preflight.headers.get('access-control-allow-headers'), /authorization/)
  })

  await t.test('both eras are served side by side', async (t) => {
    const discovered = await send('server/discover')
    t.same(discovered.json.result.supportedVersions, [current])
    for (const protocolVersion of ['2025-11-25', '2025-06-18', '2025-03-26']) {
      const initialize = { protocolVersion, capabilities: {}, clientInfo: { name: 'old', version: '1' } }
      const { json, headers } = await send('initialize', initialize, {
        era: 'legacy',
        headers: { 'mcp-protocol-version': protocolVersion },
      })
      t.equal(json.result.protocolVersion, protocolVersion)
      t.same(json.result.capabilities, { tools: { listChanged: true } })
      t.equal(headers.get('mcp-session-id'), null)
    }
    for (const era of ['modern', 'legacy'] as const) {
      const { json } = await send('tools/list', {}, { era })
      t.equal(json.result.tools[0].name, 'account_admin__list_workers', era)
    }
  })

  await t.test('who takes any answer is answered, who takes JSON alone is told what the protocol wants', async (t) => {
    for (const era of ['modern', 'legacy'] as const) {
      for (const accept of [
        '*/*',
        'text/html, */*;q=0.1',
        'Application/JSON, Text/Event-Stream',
        'application/*, text/*;q=0.5',
      ]) {
        const { status, json } = await send('tools/list', {}, { era, headers: { accept } })
        t.equal(status, 200, `${era} ${accept}`)
        t.ok(json.result.tools.length > 0)
      }
    }
    t.equal((await send('ping', {}, { era: 'legacy', headers: { accept: 'application/json' } })).status, 406)
  })

  await t.test('there is no stream to get and no session to end', async (t) => {
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const { status, headers } = await ask(`${publicUrl}/mcp`, {
        method,
        key: null,
        headers: { authorization: `Bearer ${grant()}` },
      })
      t.equal(status, 405)
      t.equal(headers.get('allow'), 'POST')
    }
  })

  await t.test('what is not JSON, no message or a batch without end is an error of the protocol', async (t) => {
    const post = (body: string, headers: Record<string, string> = {}) =>
      ask(`${publicUrl}/mcp`, {
        method: 'POST',
        key: null,
        body,
        headers: { authorization: `Bearer ${grant()}`, ...headers },
      })
    t.same([(await post('{')).status, (await post('{')).json.error.code], [400, -32700])
    for (const body of ['null', '17', '"text"', '{}', '[]']) t.equal((await post(body)).status, 400, body)
    const many = JSON.stringify(Array.from({ length: 21 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'tools/list' })))
    t.equal((await post(many)).json.error.code, -32600)
    t.equal((await post('{}', { 'content-type': 'text/plain' })).status, 415)
  })

  await t.test(
    'batches are taken in the revision that has them, and refused in a sentence in every other',
    async (t) => {
      const list = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/list' })
      const post = (json: unknown, revision?: string) =>
        ask(`${publicUrl}/mcp`, {
          method: 'POST',
          key: null,
          json,
          headers: {
            authorization: `Bearer ${grant()}`,
            accept: 'application/json, text/event-stream',
            ...(revision && { 'mcp-protocol-version': revision }),
          },
        })
      for (const revision of [undefined, '2025-03-26'])
        t.equal((await post([list(1), list(2)], revision)).status, 200, revision ?? 'none')
      for (const revision of ['2025-06-18', '2025-11-25', current])
        for (const batch of [[list(1)], [list(1), list(2)], []]) {
          const { status, json } = await post(batch, revision)
          t.equal(status, 400)
          t.match(json, {
            jsonrpc: '2.0',
            id: null,
            error: { code: -32600, message: /^Batches are of revision 2025-03-26/ },
          })
        }
      t.match((await post([])).json.error, { code: -32600, message: 'A batch has at least one message.' })
    },
  )

  await t.test('a tool that is out of scope is a 403 that names what is needed, in both eras', async (t) => {
    const token = grant(ofWorker(own.worker.id))
    for (const era of ['modern', 'legacy'] as const) {
      const { status, headers, json } = await send(
        'tools/call',
        { name: 'account_admin__get_account_info' },
        { token, era },
      )
      t.equal(status, 403)
      t.match(headers.get('www-authenticate'), /^Bearer error="insufficient_scope", /)
      t.match(headers.get('www-authenticate'), `scope="account_admin", resource_metadata="${metadataUrl}"`)
      t.equal(json.type, 'INSUFFICIENT_SCOPE')
    }
    const batch = [{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'account_admin__get_account_info' } }]
    const hidden = await ask(`${publicUrl}/mcp`, {
      method: 'POST',
      key: null,
      json: batch,
      headers: { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' },
    })
    t.equal(hidden.status, 403)
  })

  await t.test(
    'params that are none for a method are the mistake of the client, and null is what is not there',
    async (t) => {
      const client = { name: 'old', version: '1' }
      for (const params of [
        {},
        { protocolVersion: '2025-06-18', capabilities: {} },
        { protocolVersion: 5, capabilities: {}, clientInfo: client },
        { protocolVersion: '2025-06-18', capabilities: null, clientInfo: client },
      ]) {
        const { json } = await send('initialize', params, { era: 'legacy' })
        t.equal(json.error.code, -32602, JSON.stringify(params))
        t.match(json.error.message, /^Invalid params of initialize: \w+/)
      }
      for (const era of ['modern', 'legacy'] as const) {
        const { json } = await send('tools/list', { cursor: 5 }, { era })
        t.same(json.error, { code: -32602, message: 'Invalid params of tools/list: cursor must be a string.' }, era)
        t.ok((await send('tools/list', { cursor: null }, { era })).json.result.tools.length > 0, era)
        const called = await send('tools/call', { name: 'account_admin__list_workers', arguments: null }, { era })
        t.ok(called.json.result.structuredContent.workers.length > 0, era)
      }
      const bare = { jsonrpc: '2.0', id: 1, method: 'ping', params: null }
      const { status } = await ask(`${publicUrl}/mcp`, {
        method: 'POST',
        key: null,
        json: bare,
        headers: { authorization: `Bearer ${grant()}`, 'mcp-protocol-version': '2025-06-18' },
      })
      t.equal(status, 200)
    },
  )

  await t.test('an unknown tool is an error of the protocol, and of nothing else', async (t) => {
    const { json } = await send('tools/call', { name: 'account_admin__launch_rocket', arguments: {} })
    t.equal(json.error.code, -32602)
  })

  t.notOk(
    lines.some(({ level }) => level === 'error'),
    'none of it is an error of ours',
  )
})

void test('requests are charged to whom they belong', async (t) => {
  const { send, grant, own, other, hands } = await openMcp(t, { rateLimits: { perAccount: 3, perAddress: 2 } })
  await t.test('without a good token to the address', async (t) => {
    t.equal((await send('tools/list', {}, { token: null })).status, 401)
    t.equal((await send('tools/list', {}, { token: 'wrong' })).status, 401)
    const { status, headers, json } = await send('tools/list', {}, { token: 'wrong' })
    t.equal(status, 429)
    t.equal(json.type, 'RATE_LIMITED')
    t.ok(headers.get('retry-after'))
    const page = await send('tools/list', {}, { token: 'wrong', headers: { origin: publicUrl } })
    t.equal(page.status, 429)
    t.equal(page.json.type, 'RATE_LIMITED')
    t.ok(page.headers.get('retry-after'))
    t.equal(page.headers.get('access-control-allow-origin'), publicUrl, 'a page may read why')
  })
  await t.test('with one to the account, whichever of its tokens', async (t) => {
    hands.turn(60_000)
    const tokens = [grant(), grant(), grant(), grant()]
    const statuses = []
    for (const token of tokens) statuses.push((await send('tools/list', {}, { token })).status)
    t.same(statuses, [200, 200, 200, 429])
    const { status, headers } = await send('tools/list', {}, { token: grant({ accountId: other.id }) })
    t.equal(status, 200)
    t.match(headers.get('ratelimit'), /"default";r=2/)
    t.not(own.id, other.id)
  })
})

void test('without a PUBLIC_URL names of this machine are its own, and addresses, but no other names', async (t) => {
  const { ask } = await openMcp(t, { publicUrl: null })
  const at = (url: string, headers = {}) =>
    ask(`${url}/.well-known/oauth-protected-resource/mcp`, { key: null, headers })
  t.equal((await at('http://calls.example:8080')).status, 403)
  t.equal((await at('http://127.0.0.1:8080')).json.resource, 'http://127.0.0.1:8080/mcp')
  t.equal((await at('http://localhost:8080')).json.resource, 'http://localhost:8080/mcp')
  t.equal(
    (await at('http://192.0.2.5:8080', { origin: 'http://192.0.2.5:8080' })).json.resource,
    'http://192.0.2.5:8080/mcp',
  )
  t.equal((await at('http://[2001:db8::5]')).status, 200)
  const asked = await ask('http://192.0.2.5:8080/mcp', {
    method: 'POST',
    key: null,
    json: {},
    headers: { origin: 'http://192.0.2.6:8080' },
  })
  t.equal(asked.status, 403)
})

/** docs/contract/rest.md "Errors" and "Keys and accounts": what is refused, and how the refusal reads. */
import { gzipSync } from 'node:zlib'
import { test, type Test } from 'tap'
import { renderTooLarge } from '../../api/render.ts'
import { toId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import { createApiKey, revokeApiKey } from '../../store/api-keys.ts'
import { connect } from '../../store/sql.ts'
import { createAsk, newId, openSeededApi, start, type AskOptions } from '../scenes/seeded-api.ts'

type Ids = { account: string; worker: string; call: string }
type Endpoint = { method: string; path: (ids: Ids) => string; json?: (ids: Ids) => unknown }

const endpoints: readonly Endpoint[] = [
  { method: 'GET', path: ({ account }) => `/v1/accounts/${account}/workers` },
  { method: 'GET', path: ({ account, worker }) => `/v1/accounts/${account}/workers/${worker}` },
  { method: 'GET', path: ({ account, worker }) => `/v1/accounts/${account}/workers/${worker}/config` },
  {
    method: 'GET',
    path: ({ account, worker }) => `/v1/accounts/${account}/workers/${worker}/documents/outbound-call-scripts`,
  },
  { method: 'GET', path: ({ account, call }) => `/v1/accounts/${account}/phone-calls/${call}` },
  { method: 'GET', path: ({ account, call }) => `/v1/accounts/${account}/phone-calls/${call}/transcript` },
  { method: 'GET', path: ({ account, call }) => `/v1/accounts/${account}/phone-calls/${call}/audio/url` },
  {
    method: 'POST',
    path: ({ account }) => `/v1/accounts/${account}/web-calls`,
    json: ({ worker }) => ({ workerId: worker }),
  },
  { method: 'GET', path: ({ account }) => `/v1/accounts/${account}/webhook-subscriptions` },
  {
    method: 'POST',
    path: ({ account }) => `/v1/accounts/${account}/webhook-subscriptions`,
    json: () => ({ eventType: '*', url: 'https://hooks.example' }),
  },
]

const withoutId = ({ requestId: _, ...body }: { requestId: string }) => body
const pathsOf = (answer: { json: { issues: { path: string }[] } }) => answer.json.issues.map((issue) => issue.path)

test('who may ask for what', async (t) => {
  const { ask, own, other, sql, hands, asked } = await openSeededApi(t)
  const mine: Ids = { account: own.id, worker: own.worker.id, call: own.callId }
  const theirs: Ids = { account: other.id, worker: other.worker.id, call: other.callId }

  await t.test('a missing or invalid key is 401 on every endpoint, and on paths that do not exist', async (t) => {
    const targets = [
      { method: 'GET', path: '/v1/accounts/current' },
      { method: 'DELETE', path: '/v1/accounts/current' },
      { method: 'GET', path: '/v1' },
      { method: 'GET', path: '/v1/nothing' },
      { method: 'GET', path: '/v1//accounts/current' },
      { method: 'GET', path: '/%76%31/accounts/current' },
      { method: 'POST', path: `/v1/accounts/${own.id}/web-calls`, body: '{' },
      ...endpoints.map(({ method, path, json }) => ({ method, path: path(mine), json: json?.(mine) })),
    ]
    const keys = [
      null,
      '',
      'vk_',
      own.key.slice(0, -1),
      `${own.key}0`,
      own.key.replace('vk_', 'vk-'),
      `vk_${'0'.repeat(43)}`,
    ]
    for (const { path, ...options } of targets)
      for (const key of keys) {
        const answer = await ask(path, { ...options, key })
        if (answer.status !== 401) t.fail(`${options.method} ${path} with ${key} answered ${answer.status}`)
        t.same(withoutId(answer.json), {
          statusCode: 401,
          type: 'UNAUTHORIZED',
          localizedKey: 'errors.unauthorized',
          details: 'Send a valid API key in the header x-api-key.',
        })
      }
    t.equal(asked.length, 0)
  })

  await t.test('a key works until it expires, and not after it was revoked', async (t) => {
    const fresh = { accountId: own.id, newId, name: 'short' }
    const expiring = await createApiKey(sql, { ...fresh, now: start, expiresAt: start + 1_000 })
    const statusWith = async (key: string) => (await ask('/v1/accounts/current', { key })).status
    hands.turn(999)
    t.equal(await statusWith(expiring.key), 200)
    hands.turn(1)
    t.equal(await statusWith(expiring.key), 401)
    const revoked = await createApiKey(sql, { ...fresh, now: start })
    t.equal(await statusWith(revoked.key), 200)
    t.equal(await revokeApiKey(sql, other.id, revoked.id, start), false, 'not by another account')
    t.equal(await statusWith(revoked.key), 200)
    t.equal(await revokeApiKey(sql, own.id, revoked.id, start), true)
    t.equal(await statusWith(revoked.key), 401)
  })

  await t.test('another account and its resources answer 404 exactly like what does not exist', async (t) => {
    const none = { account: newId(), worker: newId(), call: newId() }
    const garbage = { account: 'x', worker: "1'; drop table workers", call: '00000000' }
    const notFound = {
      statusCode: 404,
      type: 'NOT_FOUND',
      localizedKey: 'errors.notFound',
      details: 'No such resource.',
    }
    for (const { method, path, json } of endpoints) {
      const foreign = [theirs, none, garbage, { ...mine, account: 'current' }].map((ids) => path({ ...mine, ...ids }))
      // The own account, and inside of it what is another's, unknown or no id at all.
      const nested = [theirs, none, garbage].map((ids) => path({ ...ids, account: own.id }))
      for (const target of [...foreign, ...nested.filter((target) => target !== path(mine))]) {
        const answer = await ask(encodeURI(target), { method, json: json?.(mine) })
        t.same(
          { status: answer.status, ...withoutId(answer.json) },
          { status: 404, ...notFound },
          `${method} ${target}`,
        )
      }
    }
    t.equal(asked.length, 0, 'nothing was asked of the call side')
    t.same(await sql`select id from webhook_subscriptions`, [], 'nothing was stored')
  })

  await t.test(
    'the matrix above can fail: with the own ids every endpoint but the recording answers 200',
    async (t) => {
      for (const { method, path, json } of endpoints) {
        const { status } = await ask(path(mine), { method, json: json?.(mine) })
        t.equal(status, path(mine).endsWith('/audio/url') ? 404 : 200, `${method} ${path(mine)}`)
      }
    },
  )

  await t.test('another account is 404 before the body is looked at', async (t) => {
    const answer = await ask(`/v1/accounts/${other.id}/web-calls`, { method: 'POST', body: '{' })
    t.equal(answer.status, 404)
  })

  await t.test('an account id in upper case is the same id', async (t) => {
    t.equal((await ask(`/v1/accounts/${own.id.toUpperCase()}/workers/${own.worker.id.toUpperCase()}`)).status, 200)
  })
})

test('bodies', async (t) => {
  const { ask, own, asked } = await openSeededApi(t)
  const webCalls = `/v1/accounts/${own.id}/web-calls`
  const subscriptions = `/v1/accounts/${own.id}/webhook-subscriptions`
  const post = (path: string, options: AskOptions) => ask(path, { method: 'POST', ...options })

  await t.test('malformed JSON is 400 INVALID_JSON, and the body is not quoted', async (t) => {
    const bodies = [
      '{',
      '',
      'null x',
      '{"workerId": secret}',
      "{'workerId': 1}",
      new Uint8Array([0x22, 0xff, 0xfe, 0x22]),
    ]
    for (const path of [webCalls, subscriptions])
      for (const body of bodies) {
        const answer = await post(path, { body, headers: { 'content-type': 'application/json' } })
        t.same(withoutId(answer.json), {
          statusCode: 400,
          type: 'INVALID_JSON',
          localizedKey: 'errors.invalidJson',
          details: 'The body is not JSON in UTF-8.',
        })
      }
  })

  await t.test('a body that is not application/json is 415', async (t) => {
    const json = JSON.stringify({ workerId: own.worker.id })
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonp',
      'multipart/form-data',
      'application/json; charset=iso-8859-1',
      'application/json;charset="utf-16"',
      '',
    ]) {
      const answer = await post(webCalls, { body: json, headers: { 'content-type': type } })
      t.match({ status: answer.status, ...answer.json }, { status: 415, type: 'UNSUPPORTED_MEDIA_TYPE' }, type)
    }
    t.equal((await post(webCalls, {})).status, 415, 'no body and no type')
    const packed = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    t.equal((await post(webCalls, { body: gzipSync(json), headers: packed })).status, 415, 'a compressed body')
    for (const type of ['application/json', 'Application/JSON; charset=utf-8', 'application/json; charset="UTF-8"'])
      t.equal((await post(webCalls, { body: json, headers: { 'content-type': type } })).status, 200, type)
  })

  await t.test('validation names the path of each wrong field of a web call', async (t) => {
    const before = asked.length
    const workerId = own.worker.id
    const tool = { name: 'x', description: '', deliveryUrl: 'https://t.example', signingSecret: '12345678' }
    const cases: [unknown, string[]][] = [
      [{}, ['workerId']],
      [null, ['']],
      [[], ['']],
      ['text', ['']],
      [{ workerId: null }, ['workerId']],
      [{ workerId: 7 }, ['workerId']],
      [{ workerId, customer: {} }, ['customer.type']],
      [{ workerId, customer: { type: 'friend' } }, ['customer.type']],
      [{ workerId, customer: { type: null, firstName: null } }, ['customer.type']],
      [{ workerId, customer: { type: 'lead', id: 'x', accountId: 'y' } }, ['customer.id', 'customer.accountId']],
      [{ workerId, customer: { type: 'lead', city: 'x'.repeat(501) } }, ['customer.city']],
      [{ workerId, workerID: 'x', nonsense: {} }, ['workerID', 'nonsense']],
      [{ workerId, instructions: 'x'.repeat(100_001) }, ['instructions']],
      [{ workerId, context: { json: 'object' } }, ['context']],
      [{ workerId, temperature: '0.5' }, ['temperature']],
      [{ workerId, temperature: 2.1 }, ['temperature']],
      [{ workerId, llmProvider: 'embedded' }, ['llmProvider']],
      [{ workerId, metadata: [] }, ['metadata']],
      [{ workerId, allowedOrigins: ['https://a.example', 'https://a.example/path'] }, ['allowedOrigins.1']],
      [{ workerId, allowedOrigins: ['https://*.a.example', 'https://a*.example'] }, ['allowedOrigins.1']],
      [{ workerId, externalTools: [{ ...tool, name: 'x'.repeat(129) }] }, ['externalTools.0.name']],
      [{ workerId, externalTools: [{ ...tool, name: '' }] }, ['externalTools.0.name']],
      [
        { workerId, externalTools: [tool, { ...tool, name: 'y', signingSecret: '' }] },
        ['externalTools.1.signingSecret'],
      ],
      [{ workerId, externalTools: [tool, tool] }, ['externalTools.1.name']],
      [{ workerId, locale: 'not a locale!' }, ['locale']],
      [{ workerId, externalTools: [{ ...tool, deliveryUrl: 'ftp://t.example' }] }, ['externalTools.0.deliveryUrl']],
      [{ workerId, externalTools: Array(65).fill(tool) }, ['externalTools']],
      [{ workerId, metadata: { a: 'x\0' } }, ['metadata.a']],
      [{ workerId, metadata: { 'b\0': 1 } }, ['metadata.b\0']],
    ]
    for (const [json, paths] of cases) {
      const answer = await post(webCalls, { json })
      const seen = { status: answer.status, type: answer.json.type, paths: pathsOf(answer) }
      t.same(seen, { status: 400, type: 'VALIDATION_FAILED', paths }, JSON.stringify(json).slice(0, 80))
      t.ok(answer.json.issues.every((issue: { message: string }) => issue.message.length > 0))
    }
    t.equal(asked.length, before, 'the call side was not asked')
  })

  await t.test('validation names the path of each wrong field of a subscription', async (t) => {
    const good = { eventType: 'call.ended', url: 'https://hooks.example' }
    const cases: [unknown, string[]][] = [
      [{}, ['eventType', 'url']],
      [{ ...good, eventType: 'call.begun' }, ['eventType']],
      [{ ...good, url: 'hooks.example' }, ['url']],
      [{ ...good, url: 'file:///etc/passwd' }, ['url']],
      [{ ...good, url: `https://hooks.example/${'x'.repeat(2_000)}` }, ['url']],
      [{ ...good, timeoutMs: 10_001 }, ['timeoutMs']],
      [{ ...good, timeoutMs: 0 }, ['timeoutMs']],
      [{ ...good, enabled: 'yes' }, ['enabled']],
      [{ ...good, required: true }, ['required']],
      [{ ...good, url: null, workerId: null }, ['url']],
      [{ ...good, signingSecret: 'mine' }, ['signingSecret']],
      [{ ...good, headers: { 'Webhook-Id': 'x' } }, ['headers.Webhook-Id']],
      [{ ...good, headers: { 'x-a': 'line\r\nbreak' } }, ['headers.x-a']],
      [{ ...good, headers: { 'bad name': 'x' } }, ['headers.bad name']],
    ]
    for (const [json, paths] of cases) {
      const answer = await post(subscriptions, { json })
      const seen = { status: answer.status, type: answer.json.type, paths: pathsOf(answer) }
      t.same(seen, { status: 400, type: 'VALIDATION_FAILED', paths }, JSON.stringify(json).slice(0, 80))
    }
  })

  await t.test('JSON that is nested without end is 400, not a crash', async (t) => {
    const nested = (levels: number) =>
      `{"workerId":"${own.worker.id}","metadata":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`
    const answer = await post(webCalls, { body: nested(200_000) })
    t.match({ status: answer.status, ...answer.json }, { status: 400, type: 'VALIDATION_FAILED' })
    t.equal((await post(webCalls, { body: nested(60) })).status, 200)
  })

  await t.test('text that cannot be stored is 400', async (t) => {
    const answer = await post(webCalls, { body: `{"workerId":"${own.worker.id}","context":"half \\ud83d of a pair"}` })
    t.same(pathsOf(answer), ['context'])
    t.equal((await post(webCalls, { json: { workerId: own.worker.id, context: 'whole 😀' } })).status, 200)
  })

  await t.test('however many mistakes a body has, the answer lists fifty', async (t) => {
    const json = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`unknown${index}`, 1]))
    t.equal((await post(webCalls, { json })).json.issues.length, 50)
  })

  await t.test('a query parameter that is given twice is 400', async (t) => {
    t.same(pathsOf(await ask(`${subscriptions}?workerId=a&workerId=b`)), ['workerId'])
  })

  await t.test('a body over 1 MiB is answered by the listener with the same shape', async (t) => {
    const response = renderTooLarge(
      new Request('http://calls.example/v1', { headers: { 'x-request-id': 'big-1' } }),
      newId,
    )
    t.equal(response.status, 413)
    t.equal(response.headers.get('x-request-id'), 'big-1')
    t.match(await response.json(), {
      statusCode: 413,
      type: 'PAYLOAD_TOO_LARGE',
      localizedKey: 'errors.payloadTooLarge',
      requestId: 'big-1',
    })
  })
})

test('every answer', async (t) => {
  const { ask, own, deps, lines } = await openSeededApi(t)
  const webCalls = `/v1/accounts/${own.id}/web-calls`
  const samples: [string, AskOptions][] = [
    ['/v1/accounts/current', {}],
    ['/v1/accounts/current', { key: null }],
    ['/v1/accounts/current', { method: 'PUT' }],
    [webCalls, { method: 'POST', body: '{' }],
    ['/nothing', {}],
    ['/health', {}],
    ['/openapi.json', {}],
  ]

  await t.test(
    'carries x-request-id: the client’s own when it is sane, else a new one, and errors repeat it',
    async (t) => {
      for (const [path, options] of samples) {
        const given = await ask(path, { ...options, headers: { 'x-request-id': 'trace:42/a' } })
        t.equal(given.headers.get('x-request-id'), 'trace:42/a', path)
        if (given.status >= 400) t.equal(given.json.requestId, 'trace:42/a')
        for (const insane of ['', 'two words', 'x'.repeat(129), '{"a":1}']) {
          const made = await ask(path, { ...options, headers: { 'x-request-id': insane } })
          const id = made.headers.get('x-request-id') ?? ''
          t.not(toId(id), null, `an id instead of ${insane.slice(0, 10)}`)
          if (made.status >= 400) t.equal(made.json.requestId, id)
        }
      }
    },
  )

  await t.test('carries security headers, is not stored, and promises TLS only where there is TLS', async (t) => {
    for (const [path, options] of samples) {
      const { headers } = await ask(path, options)
      t.equal(headers.get('x-content-type-options'), 'nosniff')
      t.equal(headers.get('x-frame-options'), 'DENY')
      t.equal(headers.get('referrer-policy'), 'no-referrer')
      t.equal(headers.get('content-security-policy'), "default-src 'none'; frame-ancestors 'none'")
      t.equal(headers.get('cache-control'), path === '/openapi.json' ? 'no-cache' : 'no-store')
      t.equal(headers.get('strict-transport-security'), null)
    }
    const behindTls = await ask('https://calls.example/health')
    t.match(behindTls.headers.get('strict-transport-security'), /^max-age=/)
  })

  await t.test('an unknown path is 404, a wrong method 405 with Allow', async (t) => {
    for (const path of [
      '/',
      '/nothing',
      '/v1/nothing',
      '/v1/accounts',
      '/v1/accounts/current/',
      '/openapi_json',
      '/demo/session',
    ])
      t.equal((await ask(path)).status, 404, path)
    const methods: [string, string, string][] = [
      ['/v1/accounts/current', 'POST', 'GET, HEAD'],
      [`/v1/accounts/${own.id}/web-calls`, 'GET', 'POST'],
      [`/v1/accounts/${own.id}/webhook-subscriptions`, 'DELETE', 'GET, HEAD, POST'],
      ['/health', 'OPTIONS', 'GET, HEAD'],
      [`/v1/recordings/${own.id}/${newId()}.wav`, 'POST', 'GET, HEAD'],
    ]
    for (const [path, method, allow] of methods) {
      const answer = await ask(path, { method })
      t.equal(answer.headers.get('allow'), allow)
      t.match({ status: answer.status, ...answer.json }, { status: 405, type: 'METHOD_NOT_ALLOWED' })
    }
  })

  await t.test('HEAD answers like GET without a body', async (t) => {
    const answer = await ask('/v1/accounts/current', { method: 'HEAD' })
    t.same([answer.status, answer.text], [200, ''])
    t.equal((await ask('/v1/accounts/current', { method: 'HEAD', key: null })).status, 401)
  })

  await t.test(
    'a bug is 500 INTERNAL: nothing of the inside leaks, and the log has it once with its cause',
    async (t) => {
      const causes = [
        new Error('select secret from safe'),
        'thrown secret',
        { code: 'secret' },
        new Error('secret', { cause: 1 }),
      ]
      for (const cause of causes) {
        lines.length = 0
        const createWebCall = () => Promise.reject(cause)
        const answer = await createAsk({ ...deps, createWebCall }, own.key)(webCalls, {
          method: 'POST',
          json: { workerId: own.worker.id, context: 'private words' },
        })
        t.equal(answer.status, 500)
        t.same(withoutId(answer.json), {
          statusCode: 500,
          type: 'INTERNAL',
          localizedKey: 'errors.internal',
          details: 'Something went wrong on our side.',
        })
        t.notMatch(answer.text, /secret/)
        const [line, ...more] = lines.filter(({ level }) => level !== 'info')
        t.same(more, [])
        t.same(line?.level, 'error')
        t.equal(line?.fields['error'], cause)
        t.equal(line?.fields['requestId'], answer.json.requestId)
        t.notMatch(JSON.stringify(line), /private words/)
      }
    },
  )

  await t.test(
    'one line of the log tells of an answer, without query, body or key, the address marked as personal',
    async (t) => {
      lines.length = 0
      const path = `/v1/accounts/${own.id}/workers/${own.worker.id}/mcp/tools`
      const answer = await ask(`${path}?customerPhone=%2B4930123456`)
      t.same(lines, [
        {
          level: 'info',
          message: 'request answered',
          fields: {
            requestId: answer.headers.get('x-request-id'),
            method: 'GET',
            path,
            status: 200,
            durationMs: 0,
            personal: { remoteAddress: '192.0.2.7' },
          },
        },
      ])
      t.notMatch(JSON.stringify(lines), own.key)
    },
  )

  await t.test('without a database it is 503 with Retry-After, and health says so', async (t) => {
    const server = { socket: '/nowhere/.s.PGSQL.5432', user: 'nobody', database: 'none' }
    const sql = connect({ server, applicationName: 'test', maxConnections: 1 })
    t.teardown(() => sql.end({ timeout: 1 }))
    lines.length = 0
    const askWithout = createAsk({ ...deps, sql }, own.key)
    for (const path of ['/v1/accounts/current', '/health']) {
      const answer = await askWithout(path)
      t.match({ status: answer.status, ...answer.json }, { status: 503, type: 'SERVICE_UNAVAILABLE' })
      t.equal(answer.headers.get('retry-after'), '5')
      t.notMatch(answer.text, /nowhere|ENOENT/)
    }
    t.same(
      lines.map((line) => line.level).filter((level) => level !== 'info'),
      ['warn', 'warn'],
    )
  })
})

test('a node without room refuses what creates calls before it asks whose key it is, and nothing else', async (t) => {
  const overloaded = new Problem('WEB_CALL_CAPACITY_EXCEEDED', 'Overloaded.', null, {
    status: 503,
    retryAfterSeconds: 5,
  })
  const rateLimits = { perAccount: 1_000, perAddress: 500 }
  const noRoomFor = (creates: unknown) => (creates === null ? null : overloaded)
  const { ask, own } = await openSeededApi(t, { noRoomFor, rateLimits })
  const account = `/v1/accounts/${own.id}`
  for (const key of [own.key, 'vk_of_nobody'])
    for (const calls of ['web-calls', 'phone-calls']) {
      const answer = await ask(`${account}/${calls}`, { method: 'POST', key, json: { workerId: own.worker.id } })
      t.match(answer.json, { statusCode: 503, type: 'WEB_CALL_CAPACITY_EXCEEDED' })
      t.same([answer.status, answer.headers.get('retry-after')], [503, '5'])
      t.match(answer.headers.get('ratelimit'), /^"default";r=\d+;t=\d$/, 'whoever it was charged to')
    }
  t.equal((await ask(`${account}/web-calls`, { method: 'POST', key: null, json: {} })).status, 401)
  t.equal((await ask(`${account}/phone-calls`)).status, 200)
  const proven = await ask(`${account}/web-calls`, { method: 'POST', json: {} })
  t.match(
    proven.headers.get('ratelimit'),
    /^"default";r=49\d;t=1$/,
    'of its address, where nobody looked whose key it is',
  )
  const hook = { eventType: 'call.ended', url: 'https://hooks.example' }
  t.equal((await ask(`${account}/webhook-subscriptions`, { method: 'POST', json: hook })).status, 200)
})

test('health', async (t) => {
  const { ask, sql, hands } = await openSeededApi(t)

  await t.test('is 200 without a key while the database answers, and leaves no timer behind', async (t) => {
    const before = hands.waiting()
    const answer = await ask('/health', { key: null })
    t.same([answer.status, answer.json], [200, { status: 'ok' }])
    t.equal(hands.waiting(), before)
  })

  await t.test('says so while the node takes not all new calls, or none, and is 200: running ones go on', async (t) => {
    for (const newCalls of ['limited', 'refused'] as const) {
      const { ask: askLoaded } = await openSeededApi(t as Test, { newCalls: () => newCalls })
      const answer = await askLoaded('/health', { key: null })
      t.same([answer.status, answer.json], [200, { status: 'ok', newCalls }])
    }
  })

  await t.test('is 503 when the database takes longer than two seconds', async (t) => {
    // All ten connections are taken, so the question waits.
    const blocked = Promise.withResolvers<void>()
    const busy = Array.from({ length: 10 }, () => sql.begin(() => blocked.promise))
    const before = hands.waiting()
    const answering = ask('/health', { key: null })
    while (hands.waiting() === before) await new Promise(setImmediate)
    hands.turn(2_000)
    t.match(await answering, { status: 503, json: { type: 'SERVICE_UNAVAILABLE' } })
    blocked.resolve()
    await Promise.all(busy)
  })
})

test('the OpenAPI document', async (t) => {
  const { ask } = await openSeededApi(t, { publicUrl: 'https://voice.example' })
  const { status, headers, json } = await ask('/openapi.json', { key: null })

  await t.test('is 3.1 and describes every endpoint with its answer and the common error', async (t) => {
    t.equal(status, 200)
    t.equal(headers.get('content-type'), 'application/json')
    t.equal(json.openapi, '3.1.0')
    t.same(json.servers, [{ url: 'https://voice.example' }])
    const named: Ids = { account: '{accountId}', worker: '{workerId}', call: '{phoneCallId}' }
    for (const { method, path } of endpoints) {
      const operation = json.paths[path(named)]?.[method.toLowerCase()]
      t.ok(operation?.responses['200']?.content['application/json'].schema, `${method} ${path(named)}`)
      const { schema } = operation.responses.default.content['application/json']
      t.same(schema, { $ref: '#/components/schemas/Error' })
      t.same(operation.security, [{ apiKey: [] }])
    }
    t.ok(json.paths['/v1/accounts/current'])
    t.ok(json.paths['/v1/recordings/{accountId}/{callId}.wav'])
  })

  await t.test('every reference in it leads somewhere', async (t) => {
    const references = [...JSON.stringify(json).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(
      ([, reference = '']) => reference,
    )
    t.ok(references.length > 10)
    for (const reference of new Set(references)) {
      const target = reference.split('/').reduce((found, part) => found?.[part], json)
      t.ok(target, reference)
    }
  })
})

test('the demo session', async (t) => {
  const without = await openSeededApi(t)
  const { own, asked, deps } = without
  const demo = { accountId: own.id, workerId: own.worker.id }
  const ask = createAsk({ ...deps, demo, publicUrl: 'https://voice.example' }, own.key)
  const page = { host: 'localhost:8080', origin: 'http://localhost:8080' }
  const from = (headers: Record<string, string>, remoteAddress = '127.0.0.1') =>
    ask(`http://${headers['host']}/demo/session`, { method: 'POST', key: null, headers, remoteAddress })

  await t.test('exists only where a demo is configured', async (t) => {
    t.equal(
      (await without.ask('http://localhost/demo/session', { method: 'POST', remoteAddress: '127.0.0.1' })).status,
      404,
    )
    t.equal((await ask('/demo/session')).headers.get('allow'), 'POST')
  })

  await t.test('gives the own page a session of the demo worker, for its origin only, and no key', async (t) => {
    const answer = await from(page)
    t.equal(answer.status, 200)
    t.same(Object.keys(answer.json), ['callId', 'sessionId', 'signalingUrl', 'token', 'iceServers', 'expiresAt'])
    t.equal(answer.json.signalingUrl, 'ws://localhost:8080/v1/signaling', 'the host the page came from')
    t.same(asked.at(-1), {
      accountId: own.id,
      request: { workerId: own.worker.id, allowedOrigins: ['http://localhost:8080'] },
    })
    t.notMatch(answer.text, own.key)
  })

  await t.test('with a token it answers who knows it, and no forwarder that only knows the port', async (t) => {
    const before = asked.length
    const guarded = createAsk({ ...deps, demo: { ...demo, token: 'printed' } }, own.key)
    const fromPage = (search: string) =>
      guarded(`http://localhost:8080/demo/session${search}`, {
        method: 'POST',
        key: null,
        headers: page,
        remoteAddress: '127.0.0.1',
      })
    for (const search of ['', '?token=', '?token=Printed', '?token=printed2', '?other=printed']) {
      const { status, json } = await fromPage(search)
      t.match({ status, ...json }, { status: 401, type: 'UNAUTHORIZED', details: /npm start printed/ }, search)
    }
    t.equal(asked.length, before)
    t.equal((await fromPage('?token=printed')).status, 200)
  })

  await t.test('tells what came of a call to its page alone, and of no call but its own', async (t) => {
    const guarded = createAsk({ ...deps, demo: { ...demo, token: 'printed' } }, own.key)
    const statusOf = async (search: string, headers: Record<string, string> = page) => {
      const at = `http://localhost:8080/demo/calls/01980a5e-9b02-7c3f-8a21-3c4d5e6f7081${search}`
      return (await guarded(at, { key: null, headers, remoteAddress: '127.0.0.1' })).status
    }
    t.equal(await statusOf('?token=printed'), 404)
    t.equal(await statusOf('?token=wrong'), 401)
    t.equal(await statusOf('?token=printed', { ...page, 'x-forwarded-for': '192.0.2.1' }), 403)
  })

  await t.test('answers every way a machine names itself', async (t) => {
    const hosts = ['localhost', '127.0.0.1:8080', '127.8.9.10', '[::1]:8080', 'demo.localhost']
    for (const host of hosts) t.equal((await from({ host })).status, 200, host)
    for (const address of ['127.0.0.2', '::1', '::ffff:127.0.0.1'])
      t.equal((await from(page, address)).status, 200, address)
  })

  await t.test('refuses other machines, rebound names and pages of other sites', async (t) => {
    const before = asked.length
    const refused: [Record<string, string>, string][] = [
      [page, '192.0.2.7'],
      [{ ...page, 'x-forwarded-for': '192.0.2.7' }, '127.0.0.1'],
      [{ ...page, via: '1.1 proxy' }, '127.0.0.1'],
      [page, '10.0.0.1'],
      [page, '::ffff:192.0.2.7'],
      [page, ''],
      [{ host: 'rebound.example:8080' }, '127.0.0.1'],
      [{ host: 'localhost.example' }, '127.0.0.1'],
      [{ host: '127.0.0.1.example' }, '127.0.0.1'],
      [{ host: '192.0.2.7' }, '127.0.0.1'],
      [{ ...page, origin: 'https://site.example' }, '127.0.0.1'],
      [{ ...page, origin: 'http://localhost:3000' }, '127.0.0.1'],
      [{ ...page, origin: 'null' }, '127.0.0.1'],
    ]
    for (const [headers, address] of refused) {
      const answer = await from(headers, address)
      t.match(
        { status: answer.status, ...answer.json },
        { status: 403, type: 'ORIGIN_NOT_ALLOWED' },
        JSON.stringify([headers, address]),
      )
    }
    t.equal(asked.length, before)
  })
})

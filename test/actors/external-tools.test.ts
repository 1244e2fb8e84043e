/** Tools that live at somebody else's address: the signed request, its copy in the outbox, hostile schemas and arguments. */
import t, { test, type Test } from 'tap'
import { argumentIssues } from '../../actors/tools/argument-schema.ts'
import { ToolCallData } from '../../model/events.ts'
import type { ExternalTool } from '../../model/external-tool.ts'
import type { CallId, SubscriptionId } from '../../model/ids.ts'
import type { Json, JsonObject } from '../../model/json.ts'
import { SubscriptionRequest } from '../../model/webhook.ts'
import { enqueueDeliveries } from '../../store/deliveries.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createRandom } from '../fake/random.ts'
import { newId } from '../scenes/tenant.ts'
import { openFakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { until } from '../scenes/in-time.ts'
import { box, openAccount, openToolbox, problemOf } from '../scenes/toolbox.ts'

const database = openTestDatabase(t)

async function open(t: Test, inputSchema?: object) {
  const { sql } = await database
  const account = await openAccount(sql)
  const receiver = await openFakeWebhookReceiver(t)
  const secret = newId()
  receiver.trust('/book', secret)
  const book = {
    name: 'book',
    description: 'Books a table.',
    deliveryUrl: receiver.url('/book'),
    signingSecret: secret,
  }
  const tool = { ...book, ...(inputSchema && { inputSchema }) } as ExternalTool
  const parts = openToolbox(t, sql)
  const { accountId, workerId } = account
  return {
    sql,
    ...account,
    ...parts,
    receiver,
    tool,
    ask: (phoneCallId: CallId, given: JsonObject = {}) =>
      parts.toolbox.call(accountId, workerId, {
        provider: 'external',
        toolName: 'book',
        arguments: given,
        phoneCallId,
      }),
    subscribe: async (over: Partial<SubscriptionRequest>) => {
      const request = SubscriptionRequest.parse({ eventType: 'call.tool_call', url: 'https://example.com/', ...over })
      return (await createSubscription(sql, box, { accountId, request, newId, now: 1 })).id as SubscriptionId
    },
    outbox: (callId: CallId) =>
      sql<{ body: string; eventType: string; subscriptionId: SubscriptionId }[]>`
        select body, event_type, subscription_id from deliveries where call_id = ${callId} order by seq`,
  }
}

const failed = (code: string) => ({ status: 'error', error: { code } })
const tableSchema = {
  type: 'object',
  properties: { date: { type: 'string', format: 'date' }, guests: { type: 'integer', minimum: 1 } },
  required: ['date'],
  additionalProperties: false,
}

test('a tool is asked once, at its own address, signed with its own secret, and its answer is the result', async (t) => {
  const { call, ask, receiver, tool, accountId, workerId, clock, toolbox } = await open(t, tableSchema)
  const callId = await call({ tools: [tool], metadata: { ticket: 7 } })
  const [descriptor] = (await toolbox.list(accountId, workerId, { phoneCallId: callId })).slice(-1)
  t.strictSame(descriptor, {
    name: 'book',
    provider: 'external',
    description: 'Books a table.',
    capabilityKey: 'external.book',
    inputSchema: tableSchema,
  })
  receiver.script('/book', [
    { status: 200, body: '{"result":{"table":4}}' },
    { status: 200, body: '{"result":null}' },
  ])
  t.strictSame(await ask(callId, { date: '2026-12-24' }), { status: 'success', data: { result: { table: 4 } } })
  const { type, data, headers, attempt } = await receiver.next()
  t.strictSame({ type, attempt }, { type: 'call.tool_call', attempt: 1 })
  t.match(headers, { 'x-service-delivery': 'sync', 'x-service-account-id': accountId })
  const told = ToolCallData.strict().parse(data)
  const { toolCallId, ...rest } = told
  t.strictSame(rest, {
    callId,
    accountId,
    workerId,
    name: 'book',
    arguments: { date: '2026-12-24' },
    metadata: { ticket: 7 },
  })
  t.strictSame(await ask(callId, { date: '2026-12-24' }), { status: 'success', data: { result: null } })
  t.not((await receiver.next()).data, toolCallId)
  t.same(receiver.counts(), { verified: 2, refused: 0 })
  t.equal(clock.pending(), 0)
  const bare = await call({ tools: [tool] })
  await ask(bare, { date: '2026-12-24' })
  t.notOk('metadata' in ((await receiver.next()).data as object), 'no metadata, no field')
})

test('every bad answer is a failed tool, a late one a timeout, without anything of the inside', async (t) => {
  const { call, ask, receiver, tool, log, sql } = await open(t)
  const callId = await call({ tools: [tool] })
  const deep = `{"result":${'['.repeat(100)}${']'.repeat(100)}}`
  const bodies = ['', '{}', '[]', 'null', '"ok"', '{"resul":1}', 'no json', '{"result":"\\u0000"}', deep]
  const answers = [
    ...bodies.map((body) => ({ status: 200, body })),
    ...[204, 302, 400, 500].map((status) => ({ status, headers: { location: receiver.url('/other') } })),
    ...(['reset', 'garbage', 'huge'] as const).map((wire) => ({ wire })),
  ]
  for (const answer of answers) {
    receiver.script('/book', [answer])
    const result = await ask(callId)
    t.strictSame(
      result,
      { status: 'error', error: { code: 'TOOL_FAILED', message: 'The tool failed.' } },
      JSON.stringify(answer),
    )
  }
  t.equal(receiver.deliveries.length, answers.length, 'one attempt each')
  t.equal(log.lines.filter(({ message }) => message === 'call.tool_call failed').length, answers.length)
  const broken = await call({ tools: [tool] })
  await sql`update calls set external_tools = jsonb_set(external_tools, '{0,signingSecret}', '"v1.broken"') where id = ${broken}`
  t.match(await ask(broken), failed('TOOL_FAILED'), 'a secret that cannot be opened')
  t.equal(receiver.deliveries.length, answers.length)
})

test('a tool that never answers is given up', async (t) => {
  const { call, ask, receiver, tool, clock } = await open(t)
  const callId = await call({ tools: [tool] })
  receiver.script('/book', [{ status: 200, held: true }], { forever: true })
  const asking = ask(callId)
  await receiver.next()
  clock.advance(10_000)
  t.match(await asking, failed('TOOL_TIMEOUT'))
  receiver.release()
})

test('a tool needs a call that goes on; what is bound to another call is no tool', async (t) => {
  const { call, ask, receiver, tool } = await open(t)
  for (const over of [{ startedAt: null }, { outcome: 'completed' }])
    t.match(await ask(await call({ tools: [tool], ...over })), failed('CALL_NOT_ACTIVE'))
  const other = await call({ tools: [{ ...tool, name: 'cancel' }] })
  t.match(await problemOf(ask(other)), { type: 'INVALID_TOOL', issues: [{ path: 'toolName' }] })
  t.equal(receiver.deliveries.length, 0)
})

test('of one call eight tools are under way at most, and a place is free again when a tool has ended', async (t) => {
  const { call, ask, receiver, tool } = await open(t)
  const [callId, other] = [await call({ tools: [tool] }), await call({ tools: [tool] })]
  const answer = { status: 200, body: '{"result":1}' }
  receiver.script('/book', [{ ...answer, held: true }], { forever: true })
  const under = Array.from({ length: 8 }, () => ask(callId))
  for (let arrived = 0; arrived < 8; arrived++) await receiver.next()
  t.match(await ask(callId), failed('TOOL_FAILED'))
  const beside = ask(other)
  await receiver.next()
  receiver.script('/book', [answer], { forever: true })
  receiver.release()
  for (const result of await Promise.all([...under, beside])) t.match(result, { status: 'success' })
  t.match(await ask(callId), { status: 'success' })
})

test('who subscribed gets a copy of the same payload, in the lane of the call', async (t) => {
  const { call, ask, receiver, tool, subscribe, outbox, woken, sql } = await open(t)
  const callId = await call({ tools: [tool] })
  receiver.script('/book', [{ status: 500 }])
  const mine = await subscribe({})
  const all = await subscribe({ eventType: '*' })
  await subscribe({ eventType: 'call.ended' })
  await subscribe({ enabled: false })
  const stranger = await openAccount(sql)
  const request = SubscriptionRequest.parse({ eventType: '*', url: 'https://example.com/' })
  await createSubscription(sql, box, { accountId: stranger.accountId, request, newId, now: 1 })
  t.match(await ask(callId), failed('TOOL_FAILED'))
  const { body } = await receiver.next()
  t.strictSame(
    [...(await outbox(callId))],
    [mine, all].map((subscriptionId) => ({ body, eventType: 'call.tool_call', subscriptionId })),
  )
  t.equal(woken.length, 1)
})

test('a tool of which nobody takes a copy is asked at once, whatever else is being written of its call', async (t) => {
  const { sql, call, ask, receiver, tool } = await open(t)
  const callId = await call({ tools: [tool] })
  receiver.script('/book', [{ status: 200, body: '{"result":1}' }])
  await sql.begin(async (tx) => {
    await tx`select from calls where id = ${callId} for update`
    t.match(await ask(callId), { status: 'success' })
  })
})

/** `over`: what becomes of the look-ups of the toolbox, in their order. */
async function openWanted(t: Test, over: (lookUp: number) => Promise<never> | null) {
  const { sql, call, receiver, tool, accountId, workerId } = await open(t)
  const callId = await call({ tools: [tool] })
  let lookUps = 0
  // Its other templates are parts of this statement.
  const isLookUp = ([texts]: unknown[]): boolean => String(texts).trimStart().startsWith('select asked.place')
  const counted: typeof sql = new Proxy(sql, {
    apply: (target, self, given) =>
      (isLookUp(given) && over(++lookUps)) || (Reflect.apply(target, self, given) as unknown),
  })
  const { toolbox } = openToolbox(t, sql, { sql: counted })
  const committed = Promise.withResolvers<void>()
  const request = { provider: 'external', toolName: 'book', arguments: {}, phoneCallId: callId }
  receiver.script('/book', [{ status: 200, body: '{"result":1}' }])
  return {
    receiver,
    committed,
    lookUps: () => lookUps,
    answer: toolbox.call(accountId, workerId, request, { committed: committed.promise }),
  }
}

test('what a tool takes is looked up while its call is being written down, and it is asked after that', async (t) => {
  const { receiver, committed, lookUps, answer } = await openWanted(t, () => null)
  await until(() => lookUps() === 1)
  await new Promise(setImmediate)
  t.equal(receiver.deliveries.length, 0)
  committed.resolve()
  t.match(await answer, { status: 'success' })
  t.equal(lookUps(), 1, 'nothing is looked up again')
})

test('what could not be looked up meanwhile is looked up again', async (t) => {
  const { committed, lookUps, answer } = await openWanted(t, (lookUp) =>
    lookUp === 1 ? Promise.reject(new Error('the database is away')) : null,
  )
  committed.resolve()
  t.match(await answer, { status: 'success' })
  t.equal(lookUps(), 2)
})

test('a call that is never written down asks no tool', async (t) => {
  const { receiver, committed, answer } = await openWanted(t, () => null)
  committed.reject(new Error('the actor was fenced'))
  await t.rejects(answer, { message: 'the actor was fenced' })
  t.equal(receiver.deliveries.length, 0)
})

test('after call.ended no copy follows, whoever is faster (40 races, seed 3)', async (t) => {
  const { call, ask, receiver, tool, subscribe, outbox, sql, accountId, workerId } = await open(t)
  await subscribe({ eventType: '*' })
  receiver.script('/book', [{ status: 200, body: '{"result":1}' }], { forever: true })
  const random = createRandom(3)
  const end = (callId: CallId) =>
    sql.begin(async (tx) => {
      await tx`update calls set outcome = 'completed', ended_at = now() where id = ${callId}`
      const events = [{ type: 'call.ended', data: { callId } as never }] as const
      await enqueueDeliveries(tx, { accountId, workerId, callId, events, now: 1, newId })
    })
  const seen = new Set<string>()
  for (let race = 0; race < 40; race++) {
    const callId = await call({ tools: [tool] })
    const before = receiver.deliveries.length
    const later = async <Value>(work: () => Promise<Value>): Promise<Value> => {
      for (let turns = random.below(6); turns > 0; turns--) await sql`select 1`
      return work()
    }
    const [one, two] = await Promise.all([later(() => ask(callId)), later(() => ask(callId)), later(() => end(callId))])
    const types = (await outbox(callId)).map(({ eventType }) => eventType)
    const answered = [one, two].filter(({ status }) => status === 'success').length
    t.equal(types.at(-1), 'call.ended')
    t.equal(types.length, answered + 1, 'what was not told was not asked')
    t.equal(receiver.deliveries.length - before, answered)
    t.match(await ask(callId), failed('CALL_NOT_ACTIVE'))
    seen.add(types.join())
  }
  t.ok(seen.size > 1, 'sometimes the one was faster, sometimes the other')
})

test('arguments are checked against the schema of the tool before anybody is asked', async (t) => {
  const { call, ask, receiver, tool } = await open(t, tableSchema)
  const callId = await call({ tools: [tool] })
  const wrong: readonly [JsonObject, string][] = [
    [{}, 'arguments.date'],
    [{ date: 5 }, 'arguments.date'],
    [{ date: 'tomorrow' }, 'arguments.date'],
    [{ date: '2026-12-24', guests: 0.5 }, 'arguments.guests'],
    [{ date: '2026-12-24', 'a/b~c %25': 1 }, 'arguments.a/b~c %25'],
  ]
  for (const [given, path] of wrong)
    t.match(await problemOf(ask(callId, given)), { type: 'INVALID_TOOL', issues: [{ path }] })
  t.equal(receiver.deliveries.length, 0)
})

test('the keywords of JSON Schema that are kept mean what they say', (t) => {
  const address = { type: 'object', properties: { city: { type: 'string', minLength: 1 } }, required: ['city'] }
  const cases: readonly [object, Json, string[]][] = [
    [{ properties: { a: { enum: ['x', 1] } } }, { a: 'y' }, ['arguments.a']],
    [{ properties: { a: { type: ['string', 'null'] } } }, { a: null }, []],
    [{ properties: { a: { items: { type: 'number' } } } }, { a: [1, 'x', 2, 'y'] }, ['arguments.a.1', 'arguments.a.3']],
    [{ $defs: { address }, properties: { to: { $ref: '#/$defs/address' } } }, { to: {} }, ['arguments.to.city']],
    [{ $defs: { address }, properties: { to: { $ref: '#/$defs/address' } } }, { to: { city: 'Ulm' } }, []],
    [{ properties: { a: { not: { type: 'string' } } } }, { a: 'x' }, ['arguments.a']],
    [{ anyOf: [{ required: ['a'] }, { required: ['b'] }] }, { b: 1 }, []],
    [JSON.parse('{"if":{"required":["a"]},"then":{"required":["b"]}}') as object, { a: 1 }, ['arguments.b']],
    [
      { properties: { id: { type: 'integer' }, pattern: { type: 'integer' } } },
      { id: 'x', pattern: 'x' },
      ['arguments.id', 'arguments.pattern'],
    ],
    // What cannot be checked lets through, also where it stands under a negation.
    [{ properties: { a: { pattern: '^x$' } } }, { a: 'y' }, []],
    [{ properties: { a: { not: { pattern: '^x$' } } } }, { a: 'y' }, []],
    [{ properties: { a: { oneOf: [{ pattern: '^x' }, { pattern: '^y' }] } } }, { a: 'y' }, []],
    [{ patternProperties: { '^x': {} }, additionalProperties: false }, { xa: 1 }, []],
    [{ properties: { a: { $ref: 'https://example.com/schema' } } }, { a: 1 }, []],
    [{ properties: 5, required: 'date', type: 7, allOf: {}, enum: 'x', items: null, minimum: '1' }, { a: 1 }, []],
  ]
  for (const [schema, given, paths] of cases) {
    const issues = argumentIssues({ type: 'object', ...schema }, given as JsonObject)
    t.strictSame(
      issues.map(({ path }) => path),
      paths,
      JSON.stringify(schema),
    )
  }
  for (const schema of [null, 5, 'x', [], true]) t.strictSame(argumentIssues(schema, { a: 1 }), [])
  t.end()
})

test('a hostile schema costs a bounded time', (t) => {
  const bomb = 'a'.repeat(50_000) + '!'
  const doubling = Object.fromEntries(
    Array.from({ length: 60 }, (_, i) => [
      `s${i}`,
      { allOf: [{ $ref: `#/$defs/s${i + 1}` }, { $ref: `#/$defs/s${i + 1}` }] },
    ]),
  )
  let nested: object = {}
  for (let depth = 0; depth < 50_000; depth++) nested = { not: nested }
  const many = (length: number): Json => Array.from({ length }, (_, index) => index)
  const schemas: readonly [object, JsonObject][] = [
    [{ properties: { a: { pattern: '^(a+)+$' } } }, { a: bomb }],
    [{ patternProperties: { '^(a+)+$': { type: 'number' } } }, { [bomb]: 1 }],
    [{ propertyNames: { pattern: '^(a|a)*$' } }, { [bomb]: 1 }],
    [{ properties: { a: { format: 'url' } } }, { a: `http://${bomb}` }],
    [{ $ref: '#' }, { a: 1 }],
    [{ allOf: [{ $ref: '#' }, { $ref: '#' }] }, { a: 1 }],
    [{ $defs: doubling, $ref: '#/$defs/s0' }, { a: 1 }],
    [{ properties: { a: { items: { $ref: '#/properties/a' } } } }, { a: [[[[]]]] }],
    [nested, { a: 1 }],
    [{ properties: { a: { uniqueItems: true } } }, { a: many(100_000) }],
    [{ properties: { a: { contains: { enum: many(1_000) } } } }, { a: Array.from({ length: 20_000 }, () => 'x') }],
    [
      { properties: { a: { allOf: Array.from({ length: 5_000 }, () => ({ minLength: 9 })) } } },
      { a: 'x'.repeat(500_000) },
    ],
    [{ additionalProperties: false }, Object.fromEntries((many(60_000) as number[]).map((key) => [`k${key}`, 1]))],
    [{ __proto__: { type: 'number' }, properties: { constructor: { type: 'number' } } }, { constructor: 1 }],
  ]
  /** Small to send, and as large as the copies of what it refers to. */
  const copied = (target: object): [object, JsonObject] => {
    const properties = Object.fromEntries(
      (many(1_900) as number[]).map((key) => [`p${key}`, { $ref: '#/$defs/copied' }]),
    )
    return [{ $defs: { copied: target }, properties }, { p1: 1 }]
  }
  const names = Array.from({ length: 100_000 }, (_, index) => `n${index}`)
  const named = Object.fromEntries(names.map((name) => [name, true]))
  const multiplied = [
    copied({ enum: names }),
    copied({ required: names }),
    copied({ properties: named }),
    copied({ allOf: Array.from({ length: 200_000 }, () => true) }),
    copied(named),
    copied({ $ref: `#${'/a'.repeat(400_000)}` }),
  ]
  const start = process.cpuUsage()
  for (const [schema, given] of [...schemas, ...multiplied])
    t.ok(argumentIssues({ type: 'object', ...schema }, given).length <= 20)
  const { user } = process.cpuUsage(start)
  t.ok(user < 20_000_000, `${Math.round(user / 1000)} ms of CPU over all of them`)
  t.end()
})

test('no schema makes the check throw, and true lets everything through (2,000 random schemas, seed 11)', (t) => {
  const random = createRandom(11)
  const assertions =
    'type enum const required pattern format minimum multipleOf minLength dependentRequired propertyNames contains'
  const applicators =
    'properties items allOf anyOf oneOf not if then else dependentSchemas prefixItems additionalProperties'
  const rests = 'unevaluatedProperties unevaluatedItems additionalItems $ref $id id $anchor $defs'
  const keywords = [assertions, applicators, rests].flatMap((words) => words.split(' '))
  const leaves: readonly Json[] = [
    null,
    true,
    false,
    0,
    -1,
    1e308,
    0.1,
    '',
    'object',
    '#',
    '#/properties/a',
    'a',
    ['a'],
    [1],
    {},
  ]
  const schemaOf = (depth: number): Json => {
    if (depth === 0) return random.pick(leaves)
    const inner = (): Json =>
      random.below(3) === 0
        ? [schemaOf(depth - 1)]
        : random.below(2) === 0
          ? { a: schemaOf(depth - 1) }
          : schemaOf(depth - 1)
    return Object.fromEntries(Array.from({ length: 1 + random.below(4) }, () => [random.pick(keywords), inner()]))
  }
  let refused = 0
  for (let round = 0; round < 2_000; round++) {
    const issues = argumentIssues(schemaOf(4), { a: random.pick(leaves), b: [random.pick(leaves)] })
    if (issues.length > 0) refused += 1
    if (!issues.every(({ path, message }) => path.startsWith('arguments') && message.length <= 200))
      t.fail(JSON.stringify(issues))
  }
  t.ok(refused > 200 && refused < 1_900, `${refused} were refused`)
  t.end()
})

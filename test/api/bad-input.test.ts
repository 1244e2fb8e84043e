/** docs/contract/rest.md "Errors": whatever is wrong with a request is a 400 that names the place. Generated from the OpenAPI document. */
import { test } from 'tap'
import type { Issue } from '../../model/problem.ts'
import { sampleOf, type Operation } from '../scenes/api-operations.ts'
import { unlistedError } from '../scenes/listed-errors.ts'
import { newId, openSeededApi } from '../scenes/seeded-api.ts'
import { goodRequestOf, openWholeApi, pathOf } from '../scenes/whole-api.ts'
import { nullBodiesOf, referencesOf, withValue, wrongBodiesOf } from './wrong-bodies.ts'

/** Said of the field in front of it, and of no validator. */
const ownWords =
  /^(?:must|is|are|needs|belongs)\b(?!.*(?:Invalid|expected|received|Too (?:big|small)|Unrecognized|pattern))/

test('what is wrong in one place', async (t) => {
  const { ask, document, operations, own, other } = await openWholeApi(t)
  const withBodies = operations.flatMap((operation) => (operation.body ? [{ ...operation, body: operation.body }] : []))
  t.ok(withBodies.length > 12)
  let asked = 0
  const foreign = new Set<string>()

  async function refuses(operation: Operation, body: unknown, path: string, what: string): Promise<string | null> {
    asked += 1
    const options = { ...goodRequestOf(document, operation, own), json: body }
    const answer = await ask(pathOf(operation, own.ids), options)
    const issues = (answer.json?.issues ?? []) as Issue[]
    const paths = issues.map((issue) => issue.path)
    for (const { message } of issues) if (!ownWords.test(message)) foreign.add(message)
    const unlisted = unlistedError(operation, answer)
    if (unlisted !== null) foreign.add(unlisted)
    const isRefused = answer.status === 400 && paths.includes(path)
    const shown = `${operation.id} with ${what} at ${path || 'the top'}`
    return isRefused ? null : `${shown}: ${answer.status} ${answer.text.slice(0, 300)}`
  }

  for (const operation of withBodies)
    await t.test(`${operation.id} names the place`, async (t) => {
      const wrong = wrongBodiesOf(document, operation.body, own.ids)
      const complaints: string[] = []
      for (const { path, what, body } of wrong) {
        const complaint = await refuses(operation, body, path, what)
        if (complaint) complaints.push(complaint)
      }
      t.same(complaints, [])
    })

  for (const operation of withBodies)
    await t.test(`${operation.id} refuses ids of nobody, of others and of no form`, async (t) => {
      const good = sampleOf(document, operation.body, own.ids)
      for (const { path, name } of referencesOf(document, operation.body, own.ids)) {
        const foreign = other.ids[name.replace(/Ids$/, 'Id')] ?? newId()
        for (const id of [newId(), foreign, 'no-id', '', '\u00fc'.repeat(50)]) {
          const complaint = await refuses(operation, withValue(good, path, id), path.join('.'), `the id ${id}`)
          t.equal(complaint, null)
        }
      }
    })

  await t.test('every issue is said in the words of this service', (t) => {
    t.same([...foreign], [])
    t.end()
  })

  for (const operation of withBodies)
    await t.test(`${operation.id} reads null as absent where a field may be absent`, async (t) => {
      for (const { path, withNull, without } of nullBodiesOf(document, operation.body, own.ids)) {
        const post = async (json: unknown) => {
          const answer = await ask(pathOf(operation, own.ids), { ...goodRequestOf(document, operation, own), json })
          return { status: answer.status, issues: answer.json.issues }
        }
        t.same(await post(withNull), await post(without), path)
      }
    })

  await t.test('the bodies above are wrong by what was changed only: unchanged each is taken', async (t) => {
    for (const operation of withBodies) {
      const answer = await ask(pathOf(operation, own.ids), goodRequestOf(document, operation, own))
      // The call of the path is not answered yet.
      const taken = operation.id === 'capturePhoneCall' ? 409 : 200
      t.equal(answer.status, taken, `${operation.id}: ${answer.text.slice(0, 300)}`)
    }
    t.ok(asked > 1_000, `${asked} wrong bodies were sent`)
  })
})

test('what is wrong in a query or a header', async (t) => {
  const { ask, document, operations, own } = await openWholeApi(t)
  /** The last one is next year already in UTC, in a year of five digits. */
  const timesOfNoCalendar = ['0000-01-01T00:00:00Z', '0001-01-01T00:00:00+23:59', '9999-12-31T23:59:59-23:59']
  const wrongTexts = ['no_such_value', '-1', '\u0000', 'x'.repeat(300)]

  await t.test('a parameter that is not valid is 400 with its name, one that nobody knows is ignored', async (t) => {
    for (const operation of operations.filter(({ open, method }) => !open && method === 'get')) {
      const path = pathOf(operation, own.ids)
      t.equal((await ask(`${path}?noSuchParameter=1&noSuchParameter=2`)).status, 200, operation.id)
      for (const { name, in: place, schema } of operation.parameters) {
        if (place !== 'query') continue
        const twice = await ask(`${path}?${name}=a&${name}=b`)
        t.equal(twice.status, 400, `${operation.id} with ${name} twice`)
        t.ok(twice.json.issues.some((issue: { path: string }) => issue.path === name))
        const checked = Boolean(schema.enum ?? schema.pattern ?? schema.format) || schema.type !== 'string'
        if (!checked) continue
        for (const text of [...wrongTexts, ...(schema.format === 'date-time' ? timesOfNoCalendar : [])]) {
          const answer = await ask(`${path}?${name}=${encodeURIComponent(text)}`)
          t.equal(answer.status, 400, `${operation.id} with ${name}=${text}`)
          t.ok(answer.json.issues.some((issue: { path: string }) => issue.path === name))
        }
      }
    }
  })

  await t.test('limit is 1 to 100 and cursor the one of the page before', async (t) => {
    for (const operation of operations.filter(({ parameters }) => parameters.some(({ name }) => name === 'cursor'))) {
      const statusOf = async (query: string) => {
        const answer = await ask(`${pathOf(operation, own.ids)}?${query}`)
        return [answer.status, ...(answer.json.issues ?? []).map((issue: { path: string }) => issue.path)]
      }
      for (const limit of ['0', '101', '1.5', '5.0', 'ten', '', '1e1', '0x5', '%2B5', '%205', '+5', '５'])
        t.same(await statusOf(`limit=${limit}`), [400, 'limit'], `${operation.id} limit=${limit}`)
      for (const limit of ['1', '100']) t.same(await statusOf(`limit=${limit}`), [200])
      for (const cursor of ['', 'x', `${newId()}0`]) t.same(await statusOf(`cursor=${cursor}`), [400, 'cursor'])
      t.same(await statusOf(`cursor=${newId()}`), [200])
    }
  })

  await t.test('an Idempotency-Key that is none is 400 with its name, and the call is not made', async (t) => {
    for (const operation of operations.filter(({ parameters }) => parameters.some((given) => given.in === 'header'))) {
      const calls = async () =>
        (await ask(`/v1/accounts/${own.ids['accountId']}/phone-calls?limit=100`)).json.data.length
      const before = await calls()
      for (const key of ['', 'two words', 'x'.repeat(256), 'caf\u00e9']) {
        const headers = { 'idempotency-key': key }
        const answer = await ask(pathOf(operation, own.ids), { ...goodRequestOf(document, operation, own), headers })
        t.equal(answer.status, 400, `${operation.id} ${key.slice(0, 10)}`)
        t.same(
          answer.json.issues?.map((issue: { path: string }) => issue.path),
          ['Idempotency-Key'],
        )
      }
      t.equal(await calls(), before)
    }
  })
})

test('JSON that is made to cost much', async (t) => {
  const { ask, own } = await openSeededApi(t)
  const account = `/v1/accounts/${own.id}`
  const room = 1024 * 1024 - 200
  const listOf = (item: string): string =>
    `[${Array<string>(Math.floor(room / (item.length + 1)))
      .fill(item)
      .join(',')}]`
  const create = (metadata: string) =>
    ask(`${account}/web-calls`, {
      method: 'POST',
      body: `{"workerId":"${own.worker.id}","metadata":{"a":${metadata}}}`,
    })
  /** Nothing bounds a tool's schema but the body it comes in. */
  const createWithTool = (properties: string) => {
    const tool = `{"name":"x","deliveryUrl":"https://tools.example","signingSecret":"s","inputSchema":{"type":"object","properties":{"a":${properties}}}}`
    return ask(`${account}/web-calls`, {
      method: 'POST',
      body: `{"workerId":"${own.worker.id}","externalTools":[${tool}]}`,
    })
  }

  await t.test('is refused with its place when it is more than a call can keep', async (t) => {
    const nested = (item: string): string => `${'['.repeat(40)}${item}${']'.repeat(40)}`
    for (const [metadata, path] of [
      [listOf('1e400'), /^metadata\.a\.0$/],
      [listOf(nested('1e400')), /^metadata\.a(\.0)+$/],
      // Postgres would write each with all of its digits, at every step of the call.
      [listOf('1e308'), /^metadata\.a\.\d+$/],
      [listOf('5e-324'), /^metadata\.a\.\d+$/],
    ] as const) {
      const answer = await create(metadata)
      t.match([answer.status, answer.json.type, answer.json.issues.length], [400, 'VALIDATION_FAILED', 1])
      t.match(answer.json.issues[0].path, path)
    }
  })

  await t.test('a key that no copy of an object keeps is refused by its name, at any depth', async (t) => {
    for (const [metadata, path] of [
      ['{"__proto__":{"x":1}}', 'metadata.a.__proto__'],
      ['[{"b":{"__proto__":null}}]', 'metadata.a.0.b.__proto__'],
    ] as const) {
      const answer = await create(metadata)
      t.match([answer.status, answer.json.issues], [400, [{ path }]], metadata)
    }
    const { status } = await create('{"constructor":1,"toString":2,"proto":3}')
    t.equal(status, 200, 'other names are as good as any')
  })

  await t.test('metadata of over 64 KiB is refused by its name', async (t) => {
    const answer = await create(listOf('1'))
    t.match([answer.status, answer.json.issues], [400, [{ path: 'metadata' }]])
    t.equal((await create(`"${'x'.repeat(65_000)}"`)).status, 200)
  })

  await t.test('and taken in little time when it is not', async (t) => {
    const start = process.cpuUsage()
    for (const metadata of [listOf('1'), listOf('[]'), listOf('{}'), listOf(`${'['.repeat(55)}${']'.repeat(55)}`)])
      t.equal((await createWithTool(metadata)).status, 200)
    t.equal((await create('[1e308,-1e-308,0,-0,1e21,0.1,9007199254740993]')).status, 200)
    const { user } = process.cpuUsage(start)
    t.ok(user < 8_000_000, `${Math.round(user / 1000)} ms of CPU`)
  })
})

test('text that would end a line of SIP', async (t) => {
  const { ask, own } = await openSeededApi(t)
  const account = `/v1/accounts/${own.id}`
  const pathsOf = async (path: string, json: unknown) =>
    ((await ask(`${account}/${path}`, { method: 'POST', json })).json.issues ?? []).map((issue: Issue) => issue.path)
  const evil = 'a\r\nContact: <sip:evil.example>'
  const trunk = { name: 'Carrier', gateways: [{ host: 'sip.example.com' }] }
  t.same(await pathsOf('trunks', { ...trunk, username: evil, realm: evil }), ['username', 'realm'])
  for (const host of [
    evil,
    'a b',
    'a;transport=tcp',
    'user@host',
    'a:b]c[',
    'host:5060',
    '',
    '.',
    'a..b',
    '[::1',
    '::1]',
  ])
    t.same(await pathsOf('trunks', { ...trunk, gateways: [{ host }] }), ['gateways.0.host'], host)
  for (const host of [
    'localhost',
    '_sip._udp.example.com',
    'example.com.',
    '192.0.2.1',
    '2001:db8::1',
    '[2001:db8::1]',
  ])
    t.same(await pathsOf('trunks', { ...trunk, gateways: [{ host }] }), [], host)
  const config = { serviceDownRedirectNumber: '+49\r\nContact: x' }
  t.same(await pathsOf('workers', { name: 'x', language: 'en', config }), ['config.serviceDownRedirectNumber'])
  const call = { workerId: own.worker.id, customer: { type: 'lead', phoneNumber: evil } }
  t.same(await pathsOf('phone-calls', call), ['customer.phoneNumber'])
  t.same(await pathsOf('web-calls', call), ['customer.phoneNumber'])
})

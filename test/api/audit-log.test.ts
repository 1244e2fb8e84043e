/** docs/contract/rest.md "Audit log": every change by REST leaves an entry, done or refused; nothing of a secret or a person is in it. */
import { randomBytes } from 'node:crypto'
import { test, type Test } from 'tap'
import type { PersonId } from '../../model/ids.ts'
import { createRetention } from '../../actors/rounds/retention.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { createAudit } from '../../store/audit.ts'
import { maskedArguments } from '../../store/audit-arguments.ts'
import { namedFields, openFields } from '../../store/audit-fields.ts'
import { follow, sampleOf, type Document, type Operation, type Schema } from '../scenes/api-operations.ts'
import { textsOfDatabase } from '../scenes/database-texts.ts'
import { newId, openSeededApi, start } from '../scenes/seeded-api.ts'
import { goodRequestOf, openWholeApi, pathOf } from '../scenes/whole-api.ts'
import { createRandom } from '../fake/random.ts'

type Entry = {
  readonly id: string
  readonly at: string
  readonly actor: { readonly kind: string; readonly keyId?: string; readonly userId?: string }
  readonly action: string
  readonly arguments: Record<string, unknown>
  readonly result: string
  readonly errorCode?: string
  readonly callIds: readonly string[]
  readonly requestId?: string
}

async function open(t: Test) {
  const api = await openSeededApi(t)
  const path = `/v1/accounts/${api.own.id}`
  const post = (target: string, json?: unknown) => api.ask(`${path}/${target}`, { method: 'POST', json })
  const patch = (target: string, json: unknown) => api.ask(`${path}/${target}`, { method: 'PATCH', json })
  const remove = (target: string) => api.ask(`${path}/${target}`, { method: 'DELETE' })
  const page = (query = '', key = api.own.key) => api.ask(`${path}/audit-log${query}`, { key })
  const entries = async (query = ''): Promise<Entry[]> => (await page(query)).json.data
  return { ...api, path, post, patch, remove, page, entries }
}

test('what an entry tells of a change', async (t) => {
  const { ask, path, own, entries, post } = await open(t)
  const headers = { 'x-request-id': 'request-7' }
  const json = { name: 'Reception of Ada', language: 'en', config: { ringTimeout: 20, llmProvider: 'embedded' } }
  const { json: worker } = await ask(`${path}/workers`, { method: 'POST', json, headers })
  const [entry] = await entries()
  t.match(entry, {
    at: new Date(start).toISOString(),
    actor: { kind: 'api_key', keyId: own.keyId },
    action: 'createWorker',
    result: 'success',
    requestId: 'request-7',
    callIds: [],
  })
  t.same(entry?.arguments, {
    body: { name: '[masked]', language: '[masked]', config: { ringTimeout: 20, llmProvider: 'embedded' } },
    created: { id: worker.id },
  })
  t.notOk('errorCode' in (entry ?? {}))
  const { json: key } = await post('api-keys', { name: 'x', scopes: ['read'] })
  t.match((await entries())[0]?.arguments, { body: { scopes: ['read'] }, created: { id: key.id } })
})

test('what is refused is an entry as well, but for 401', async (t) => {
  const { ask, sql, own, other, path, entries, post, patch, remove } = await open(t)
  const { key, id: keyId } = await createApiKey(sql, {
    accountId: own.id,
    name: 'r',
    scopes: ['read'],
    newId,
    now: start,
  })
  const workerId = own.worker.id
  await ask(`${path}/workers/${workerId}`, { method: 'DELETE', key })
  t.match(await entries(), [
    {
      actor: { keyId },
      action: 'deleteWorker',
      result: 'error',
      errorCode: 'INSUFFICIENT_SCOPE',
      arguments: { workerId },
    },
  ])
  await patch(`workers/${workerId}`, { config: { ringTimeout: -1 } })
  await remove(`phone-calls/${own.callId}`)
  await remove(`workers/${newId()}`)
  await ask(`/v1/accounts/${other.id}/workers`, { method: 'POST', json: { name: 'x', language: 'en' } })
  await ask(`${path}/workers`, { method: 'POST', body: '{' })
  t.match(
    (await entries()).map(({ action, result, errorCode }) => [action, result, errorCode]),
    [
      ['createWorker', 'error', 'INVALID_JSON'],
      ['createWorker', 'error', 'NOT_FOUND'],
      ['deleteWorker', 'error', 'NOT_FOUND'],
      ['deletePhoneCall', 'error', 'CONFLICT'],
      ['changeWorker', 'error', 'VALIDATION_FAILED'],
      ['deleteWorker', 'error', 'INSUFFICIENT_SCOPE'],
    ],
  )
  await ask(`${path}/workers`, { method: 'POST', json: {}, key: null })
  await ask(`${path}/workers`, { method: 'POST', json: {}, key: `vk_${'0'.repeat(43)}` })
  t.equal((await entries()).length, 6)
  t.same((await ask(`/v1/accounts/${other.id}/audit-log`, { key: other.key })).json.data, [], 'it is of who asked')
  await post('workers', { name: 'y', language: 'en' })
  t.equal((await entries()).length, 7)
})

test('a change whose body breaks off is an entry as well, with its end', async (t) => {
  const { deps, own, path, entries } = await open(t)
  const { createApi } = await import('../../api/api.ts')
  const fetch = createApi(deps)
  const body = new ReadableStream({ pull: (controller) => controller.error(new Error('the client is gone')) })
  const headers = { 'x-api-key': own.key, 'content-type': 'application/json' }
  const request = new Request(`http://calls.example:8080${path}/workers`, {
    method: 'POST',
    headers,
    body,
    duplex: 'half',
  })
  t.equal((await fetch(request, { remoteAddress: '192.0.2.7' })).status, 500)
  t.match(await entries(), [{ action: 'createWorker', result: 'error' }])
})

test('every operation that changes something leaves one entry, and none that reads does but the taking of a capture', async (t) => {
  const { ask, document, operations, own, sql } = await openWholeApi(t)
  const count = async (): Promise<number> => (await sql`select from audit_entries where result is not null`).length
  for (const operation of operations.filter(({ open }) => !open)) {
    const before = await count()
    const answer = await ask(pathOf(operation, own.ids), goodRequestOf(document, operation, own))
    const isReading =
      operation.id === 'searchKnowledge' || (operation.method === 'get' && operation.id !== 'getPhoneCallCapture')
    t.equal((await count()) - before, isReading ? 0 : 1, `${operation.id} ${answer.status}`)
    if (!isReading) {
      const [row] = await sql`select action, result from audit_entries order by id desc limit 1`
      t.same({ ...row }, { action: operation.id, result: answer.status < 400 ? 'success' : 'error' })
    }
  }
  t.same(await sql`select from audit_entries where result is null`, [])
})

test('a call is found by its id: who placed it, and what was done to it', async (t) => {
  const { own, post, entries } = await open(t)
  const { json: web } = await post('web-calls', {
    workerId: own.worker.id,
    customer: { type: 'lead', firstName: 'Ada' },
  })
  await post(`phone-calls/${web.callId}/cancel`)
  await post('web-calls', { workerId: own.worker.id })
  const found = await entries(`?callId=${web.callId}`)
  t.same(
    found.map(({ action }) => action),
    ['cancelPhoneCall', 'createWebCall'],
  )
  t.same(found[1]?.arguments['body'], { workerId: own.worker.id, customer: '[masked]' })
  t.same(await entries(`?callId=${newId()}`), [])
})

test('filters and pages', async (t) => {
  const { own, sql, post, page, entries, hands, path, ask } = await open(t)
  const second = await createApiKey(sql, { accountId: own.id, name: '2', newId, now: start })
  for (let count = 0; count < 3; count += 1) {
    await post('workers', { name: 'x', language: 'en' })
    hands.turn(60_000)
  }
  await ask(`${path}/retention`, { method: 'PATCH', json: { callDays: 3 }, key: second.key })
  const actions = async (query: string) => (await entries(query)).map(({ action }) => action)
  t.same(await actions('?action=changeRetention'), ['changeRetention'])
  t.same(await actions(`?actor=${second.id}`), ['changeRetention'])
  t.equal((await actions('?actor=api_key')).length, 4)
  t.same(await actions('?actor=operator'), [])
  const at = (ms: number) => encodeURIComponent(new Date(start + ms).toISOString())
  t.equal((await actions(`?from=${at(60_000)}&to=${at(180_000)}`)).length, 2)
  const seen: Entry[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const { json }: { json: { data: Entry[]; nextCursor: string | null } } = await page(
      `?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`,
    )
    seen.push(...json.data)
    cursor = json.nextCursor
  }
  t.same(
    seen.map(({ action }) => action),
    ['changeRetention', 'createWorker', 'createWorker', 'createWorker'],
  )
  for (const query of ['?limit=0', '?limit=101', '?from=yesterday', '?cursor=x', '?actor=%00'])
    t.equal((await page(query)).status, 400, query)
  const { key } = await createApiKey(sql, {
    accountId: own.id,
    name: 'r',
    scopes: ['read', 'calls'],
    newId,
    now: start,
  })
  t.match((await page('', key)).json, { type: 'INSUFFICIENT_SCOPE', details: /manage/ })
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
    t.equal((await ask(`${path}/audit-log`, { method, json: {} })).status, 405, 'nothing changes it')
})

test('a change whose process dies half-way is told: its entry was begun before it', async (t) => {
  const gate = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const api = await openSeededApi(t)
  const audit = createAudit(api.deps)
  const begun: string[] = []
  const dying = {
    ...audit,
    begin: async (beginning: Parameters<typeof audit.begin>[0]) => {
      const end = await audit.begin(beginning)
      begun.push(beginning.action)
      return async (ending: Parameters<typeof end>[0]) => {
        reached.resolve()
        await gate.promise
        await end(ending)
      }
    },
  }
  const { createAsk } = await import('../scenes/seeded-api.ts')
  const ask = createAsk({ ...api.deps, audit: dying }, api.own.key)
  const path = `/v1/accounts/${api.own.id}`
  const answered = ask(`${path}/workers/${api.own.worker.id}`, { method: 'PATCH', json: { isActive: false } })
  await reached.promise
  t.match((await api.ask(`${path}/audit-log`)).json.data, [
    { action: 'changeWorker', result: 'unknown', arguments: { workerId: api.own.worker.id } },
  ])
  gate.resolve()
  t.equal((await answered).status, 200)
  t.match((await api.ask(`${path}/audit-log`)).json.data, [
    { action: 'changeWorker', result: 'success', arguments: { body: { isActive: false } } },
  ])
  t.same(begun, ['changeWorker'])
})

test('no change is made where its entry cannot be begun', async (t) => {
  const api = await openSeededApi(t)
  const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const audit = { ...createAudit(api.deps), begin: () => Promise.reject(away) }
  const { createAsk } = await import('../scenes/seeded-api.ts')
  const ask = createAsk({ ...api.deps, audit }, api.own.key)
  const workers = `/v1/accounts/${api.own.id}/workers`
  t.equal((await ask(workers, { method: 'POST', json: { name: 'x', language: 'en' } })).status, 503)
  t.equal((await api.ask(workers)).json.length, 1)
})

/** Bodies of the schema in which every text is the secret, also where that is not valid; and names of fields that nobody knows. */
function poisonedOf(document: Document, given: Schema, secret: () => string): unknown {
  const schema = follow(document, given)
  const types = [schema.type ?? []].flat()
  if (types.includes('object')) {
    const fields = Object.entries(schema.properties ?? {}).map(([name, inner]) => [
      name,
      poisonedOf(document, inner, secret),
    ])
    return { ...Object.fromEntries(fields), [secret()]: secret(), nested: { [secret()]: [secret()] } }
  }
  if (types.includes('array')) return [schema.items ? poisonedOf(document, schema.items, secret) : secret()]
  return secret()
}

test('no argument of any operation brings a text of its own into the log, valid or not', async (t) => {
  const { ask, document, operations, own, sql } = await openWholeApi(t)
  const random = createRandom(14)
  const secrets: string[] = []
  const kinds: (() => string)[] = [
    () => `Zde${randomBytes(6).toString('hex')}ka`,
    () => `+49309${random.below(1e8)}`,
    () => `ada.${randomBytes(6).toString('hex')}@mail.example`,
    () => `vk_${randomBytes(24).toString('hex')}`,
    () => `-----BEGIN PRIVATE KEY----- ${randomBytes(24).toString('base64')}`,
    () => `https://user:${randomBytes(8).toString('hex')}@hooks.example/`,
  ]
  const secret = (): string => {
    const made = random.pick(kinds)()
    secrets.push(made)
    return made
  }
  const changing = operations.filter(({ open, method }) => !open && method !== 'get')
  for (const operation of changing) {
    const request = goodRequestOf(document, operation, own)
    const { body } = operation
    if (!body) continue
    const valid = withSecrets(sampleOf(document, body, own.ids) as object, secret)
    for (const json of [valid, poisonedOf(document, body, secret)])
      await ask(pathOf(operation, own.ids), { ...request, json })
    await ask(pathOf(operation, named(operation, own.ids, secret())), { ...request, json: {} })
  }
  t.ok(secrets.length > 500, `${secrets.length} secrets`)
  const rows = await sql<{ text: string }[]>`select audit_entries::text as text from audit_entries`
  t.ok(rows.length > 50, `${rows.length} entries`)
  const whole = rows.map(({ text }) => text).join('\n')
  t.same(
    secrets.filter((text) => whole.includes(text) || whole.includes(encodeURIComponent(text))),
    [],
  )
  t.ok(
    rows.every(({ text }) => text.length < 6_000),
    'an entry is bounded',
  )
})

/** Texts that may be any are secrets. */
function withSecrets(sample: object, secret: () => string): object {
  const free = new Set([
    'name',
    'title',
    'text',
    'firstName',
    'lastName',
    'notes',
    'context',
    'instructions',
    'description',
  ])
  return Object.fromEntries(
    Object.entries(sample).map(([name, value]: [string, unknown]) => {
      if (free.has(name)) return [name, secret()]
      if (name === 'metadata' || name === 'arguments') return [name, { [secret()]: secret() }]
      return [name, value]
    }),
  )
}

/** One id of the path is a text. */
function named({ path }: Operation, ids: Readonly<Record<string, string>>, text: string): Record<string, string> {
  const last = [...path.matchAll(/\{(\w+)\}/g)].at(-1)?.[1] ?? ''
  return last === 'accountId' ? { ...ids } : { ...ids, [last]: text }
}

test('a person who is erased is found in no entry, not by its id either', async (t) => {
  const { post, patch, remove, sql, entries, path, ask } = await open(t)
  const person = { type: 'lead', firstName: 'Zdeňka', lastName: 'Quirke', phoneNumber: '+4930901820777' }
  const { json } = await post('persons', person)
  const personId = json.id as PersonId
  await patch(`persons/${personId}`, { notes: 'Zdeňka Quirke', email: 'zd@mail.example' })
  await post('persons', { ...person, Quirke: 'Zdeňka' })
  await ask(`${path}/persons/Quirke`, { method: 'DELETE' })
  const before = await entries()
  const hashes = new Set(before.flatMap(({ arguments: given }) => (given['personId'] ? [given['personId']] : [])))
  t.match([...hashes], [/^sha256:[0-9a-f]{32}$/, '[masked]'].toReversed(), 'the same person reads alike')
  t.equal((await post(`persons/${personId}/erase`)).json.status, 'completed')
  const texts = await textsOfDatabase(sql)
  for (const needle of [personId, 'Zdeňka', 'Quirke', '901820777', 'zd@mail']) t.same(texts.naming(needle), [], needle)
  t.same((await entries())[0]?.action, 'erasePerson')
  await remove(`persons/${personId}`)
  t.same((await textsOfDatabase(sql)).naming(personId), [], 'nor by who asks for it afterwards')
})

test('entries are kept as long as the account says, thirty days at least, and no longer', async (t) => {
  const { sql, own, other, deps, post, ask, path, entries, hands } = await open(t)
  await post('workers', { name: 'x', language: 'en' })
  await ask(`/v1/accounts/${other.id}/workers`, { method: 'POST', key: other.key, json: { name: 'x', language: 'en' } })
  const keep = (json: object) => ask(`${path}/retention`, { method: 'PATCH', json })
  for (const auditLogDays of [29, 0, 1.5, 36_501])
    t.match((await keep({ auditLogDays })).json, { statusCode: 400, issues: [{ path: 'auditLogDays' }] })
  hands.turn(30 * 24 * 3_600_000)
  t.match((await keep({ auditLogDays: 30 })).json, { auditLogDays: 30 })
  hands.turn(1)
  const retention = createRetention({ ...deps, keep: { deliveries: 1 } })
  t.teardown(() => retention.close())
  await retention.idle()
  t.match(await entries(), [{ action: 'changeRetention', arguments: { body: { auditLogDays: 30 } } }])
  t.equal((await sql`select from audit_entries where account_id = ${other.id}`).length, 1, 'the other one keeps all')
  t.notOk('auditLogDays' in (await keep({ auditLogDays: null })).json)
  t.equal((await sql`select from audit_entries where account_id = ${own.id}`).length, 2)
})

/** Names and words of a body, but for what may hold anything. */
function namesIn(document: Document, given: Schema, names = new Set<string>()): Set<string> {
  const schema = follow(document, given) as Schema & { readonly anyOf?: readonly Schema[] }
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    names.add(name)
    if (!openFields.has(name)) namesIn(document, inner, names)
  }
  for (const part of [...(schema.items ? [schema.items] : []), ...(schema.anyOf ?? [])]) namesIn(document, part, names)
  return names
}

test('every field of every body, path and MCP tool is named by the log, or counted', async (t) => {
  const { document, operations } = await openWholeApi(t)
  const bodies = operations.flatMap(({ body }) => (body ? [...namesIn(document, body)] : []))
  const places = operations.flatMap(({ path }) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name))
  // docs/contract/mcp.md "Tools"
  const tools =
    'workerId name language inboundPhoneNumber outboundPhoneNumber isActive config phoneNumber personId context callScriptDocumentIds ' +
    'customInstructions customer scheduledAt confirmationToken calls batchConfirmationToken token callId status direction limit ' +
    'externalCallId fromDate toDate tagKey documentId includeContent title text tagKeys type offset query email externalId persons'
  t.same(
    [...new Set([...bodies, ...places, ...tools.split(' ')])].filter((name) => !namedFields.has(name)),
    [],
  )
  const words = JSON.stringify(
    maskedArguments({ scopes: ['read'], role: 'owner', worker_id: newId(), Ada: 1, name: 'Ada' }, null),
  )
  t.match(
    words,
    /"scopes":\["read"\],"role":"owner","worker_id":"[\da-f-]{36}","name":"\[masked\]","\[unknown fields\]":1/,
  )
})

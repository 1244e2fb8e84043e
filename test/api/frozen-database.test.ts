/** Requests while the database stands still: answered in time, and never carried out after the answer. docs/contract/rest.md "Errors". */
import { test } from 'tap'
import { createTimelySql } from '../../store/timely-sql.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { answersAgain, freezePostgres } from '../scenes/frozen-postgres.ts'
import { openSeededApi } from '../scenes/seeded-api.ts'

const limit = 2_000
/** What an answer may take beside its queries: a request asks for its key first, and then for itself. */
const longest = 2 * limit + 2_000

const tables = [
  'calls',
  'workers',
  'persons',
  'api_keys',
  'webhook_subscriptions',
  'documents',
  'idempotency_keys',
  'trunks',
  'jobs',
]

test('requests that find a frozen database are answered 503 in time, and nothing of them happens later', async (t) => {
  const { ask, own, database } = await openSeededApi(t, {}, ({ server }) => {
    const sql = createTimelySql({ server, applicationName: 'api', maxConnections: 10, limit, log: createQuietLog() })
    t.teardown(() => sql.end({ timeout: 0 }))
    return sql
  })
  const { sql: other, server, dataDir } = database
  const counts = async () => {
    const found = await Promise.all(tables.map((table) => other`select count(*)::int as number from ${other(table)}`))
    return Object.fromEntries(found.map(([row], at) => [tables[at] ?? '', Number(row?.['number'])]))
  }
  const under = `/v1/accounts/${own.id}`
  const workerId = own.worker.id
  const posts: readonly (readonly [path: string, json: unknown])[] = [
    ['web-calls', { workerId }],
    ['workers', { name: 'New', language: 'en-US' }],
    ['persons', { phoneNumbers: ['+4930123456'] }],
    ['api-keys', { name: 'new' }],
    ['webhook-subscriptions', { eventType: 'call.ended', url: 'https://example.com/hook' }],
    ['phone-calls', { workerId, phoneNumber: '+4930123456' }],
  ]
  const send = ([path, json]: readonly [string, unknown], key: string | null = null) =>
    ask(`${under}/${path}`, { method: 'POST', json, headers: key === null ? {} : { 'idempotency-key': key } })
  // Connections, statements and the key are known.
  await Promise.all(Array.from({ length: 20 }, () => ask('/v1/accounts/current')))
  const made = await Promise.all(posts.map((post) => send(post)))
  const before = await counts()

  const goOn = freezePostgres(dataDir)
  t.teardown(goOn)
  const began = performance.now()
  const answers = await Promise.all([
    ...posts.map((post) => send(post)),
    send(posts[0]!, 'once'),
    ask(`${under}/workers/${workerId}`, { method: 'PATCH', json: { name: 'Changed' } }),
    ask(`${under}/phone-calls`),
  ])
  const ms = performance.now() - began
  t.ok(ms < longest, `answered after ${Math.round(ms)} ms`)
  for (const { status, json, headers } of answers) {
    t.match(
      { status, json },
      { status: 503, json: { statusCode: 503, type: 'SERVICE_UNAVAILABLE', requestId: String } },
    )
    t.match(headers.get('retry-after'), /^\d+$/)
  }
  goOn()
  await answersAgain(server)
  t.same((await ask('/v1/accounts/current')).status, 200)
  t.same(await counts(), before, 'nothing that was abandoned was done')
  t.equal((await ask(`${under}/workers/${workerId}`)).json?.name ?? 'own worker', 'own worker')

  const first = await send(posts[0]!, 'once')
  t.equal(first.status, made[0]?.status, 'the key that was not used up creates the call')
  t.same((await send(posts[0]!, 'once')).json.callId, first.json.callId, 'and once')
  t.equal((await counts())['calls'], (before['calls'] ?? 0) + 1)
})

/** What the rows behind the API promise: keys, accounts, scripts. */
import { createHash } from 'node:crypto'
import { test } from 'tap'
import { Problem } from '../../model/problem.ts'
import { createAccount, findAccount } from '../../store/accounts.ts'
import { createApiKey, listApiKeys } from '../../store/api-keys.ts'
import { findCall } from '../../store/calls.ts'
import {
  createDocument,
  findCallScript,
  findCallScripts,
  keyOfScriptQuestion,
  listOutboundCallScripts,
} from '../../store/documents.ts'
import { listTurns } from '../../store/transcripts.ts'
import { createWorker, findWorker, listWorkers } from '../../store/workers.ts'
import { insertTurns, newId, openSeededApi, start } from '../scenes/seeded-api.ts'
import { findAccountByKey } from '../scenes/find-key.ts'

test('API keys', async (t) => {
  const { sql, own, other } = await openSeededApi(t)
  const keyRow = async () => (await listApiKeys(sql, own.id)).find((row) => row.id === own.keyId)
  /** Nobody waits for the touch but this test. */
  const touched = async (at: number) => {
    while ((await keyRow())?.lastUsedAt !== at) await new Promise(setImmediate)
  }

  await t.test('a key is vk_ and 43 base62 digits, never twice the same', async (t) => {
    const made = await Promise.all(
      Array.from({ length: 20 }, () => createApiKey(sql, { accountId: other.id, name: 'n', newId, now: start })),
    )
    for (const { key } of made) t.match(key, /^vk_[0-9A-Za-z]{43}$/)
    t.equal(new Set(made.map(({ key }) => key)).size, made.length)
    t.ok(new Set(made.map(({ key }) => key[3])).size > 1, 'the first digit varies too')
  })

  await t.test('only its SHA-256 and its first characters are stored', async (t) => {
    const [row] = await sql<{ hash: Buffer; text: string }[]>`
      select hash, api_keys::text as text from api_keys where id = ${own.keyId}`
    t.same(row?.hash, createHash('sha256').update(own.key).digest())
    t.notMatch(row?.text, own.key)
    t.match(await keyRow(), {
      name: 'test',
      prefix: own.key.slice(0, 11),
      lastUsedAt: null,
      expiresAt: null,
      revokedAt: null,
    })
  })

  await t.test('the account is found by the key, and the last use is known to a minute', async (t) => {
    t.same(await findAccountByKey(sql, own.key, start), {
      accountId: own.id,
      keyId: own.keyId,
      scopes: ['read', 'calls', 'manage'],
    })
    await touched(start)
    t.ok(await findAccountByKey(sql, own.key, start + 59_999))
    t.ok(await findAccountByKey(sql, own.key, start + 60_000))
    await touched(start + 60_000)
    t.equal((await keyRow())?.lastUsedAt, start + 60_000, 'and not the use in between, which would have come later')
  })

  await t.test('a request never waits for that', async (t) => {
    const held = Promise.withResolvers<void>()
    const locked = Promise.withResolvers<void>()
    const holding = sql.begin(async (tx) => {
      await tx`select from api_keys where id = ${own.keyId} for update`
      locked.resolve()
      await held.promise
    })
    await locked.promise
    t.ok(await findAccountByKey(sql, own.key, start + 600_000), 'while another transaction holds the row')
    held.resolve()
    await holding
  })

  await t.test('an account sees its own keys only', async (t) => {
    t.same(
      (await listApiKeys(sql, own.id)).map((row) => row.id),
      [own.keyId],
    )
  })
})

test('accounts, workers, calls and turns are found within their account only', async (t) => {
  const { sql, own, other } = await openSeededApi(t)
  await insertTurns(sql, own.id, own.callId, [
    { role: 'user', text: 'a', from: 0, to: 20, confidence: 0.9, source: 'x' },
  ])
  t.match(await findWorker(sql, own.id, own.worker.id), { id: own.worker.id, isActive: true, config: {} })
  t.equal(await findWorker(sql, other.id, own.worker.id), null)
  t.same(
    (await listWorkers(sql, other.id)).map((worker) => worker.id),
    [other.worker.id],
  )
  t.match(await findCall(sql, own.id, own.callId), { id: own.callId, progress: 'scheduled', recordingKey: null })
  t.equal(await findCall(sql, other.id, own.callId), null)
  t.same(await listTurns(sql, own.id, own.callId), [
    { turnIndex: 0, role: 'user', text: 'a', from: 0, to: 20, confidence: 0.9, source: 'x', latency: null },
  ])
  t.same(await listTurns(sql, other.id, own.callId), [])
  t.equal(await findAccount(sql, newId()), null)
  t.same(await findAccount(sql, own.id), {
    id: own.id,
    name: 'own account',
    slug: 'own',
    config: {},
    createdAt: start,
    updatedAt: start,
  })
})

test('a slug is taken once', async (t) => {
  const { sql } = await openSeededApi(t)
  const twice = createAccount(sql, { name: 'Again', slug: 'own', newId, now: start })
  await t.rejects(twice, new Problem('CONFLICT', 'Another account has the slug own.'))
})

test('call scripts', async (t) => {
  const { sql, own, other } = await openSeededApi(t)
  const scriptOf = (direction: 'inbound' | 'outbound') => findCallScript(sql, own.id, own.worker.id, direction)
  const shared = { accountId: own.id, title: 'Script', status: 'completed', workerIds: [own.worker.id], newId } as const
  const inbound = { ...shared, tagKeys: ['inbound_call_script'] }

  await t.test('a worker without a script has none', async (t) => {
    t.equal(await scriptOf('inbound'), null)
  })

  await t.test(
    'all in use are joined by a blank line in the order of their file names, of one name the newest',
    async (t) => {
      await createDocument(sql, { ...inbound, fileName: '2.txt', content: 'second\n', now: start })
      await createDocument(sql, { ...inbound, fileName: '1.txt', content: 'old first', now: start })
      await createDocument(sql, { ...inbound, fileName: '1.txt', content: '\nfirst\n', now: start + 1 })
      await createDocument(sql, { ...inbound, fileName: '3.txt', content: 'inactive', isActive: false, now: start })
      await createDocument(sql, { ...inbound, fileName: '4.txt', content: 'queued', status: 'queued', now: start })
      await createDocument(sql, { ...inbound, fileName: '5.txt', content: 'unlinked', workerIds: [], now: start })
      t.equal(await scriptOf('inbound'), 'first\n\nsecond')
    },
  )

  await t.test(
    'scripts that are asked for together are those of each worker and direction, and nobody else’s',
    async (t) => {
      const ids = { accountId: own.id, workerId: own.worker.id }
      const foreign = { accountId: other.id, workerId: own.worker.id }
      const questions = (['inbound', 'outbound'] as const).flatMap((direction) => [
        { ...ids, direction },
        { ...foreign, direction },
        { accountId: other.id, workerId: other.worker.id, direction },
      ])
      const found = await findCallScripts(sql, [...questions, ...questions])
      for (const question of questions) {
        const { accountId, workerId, direction } = question
        const one = await findCallScript(sql, accountId, workerId, direction)
        t.equal(found.get(keyOfScriptQuestion(question)) ?? null, one)
        t.equal(one !== null, accountId === own.id && direction === 'inbound')
      }
    },
  )

  await t.test('one document may serve both directions and several workers', async (t) => {
    const second = await createWorker(sql, { accountId: own.id, name: 'Second', language: 'en-US', newId, now: start })
    const id = await createDocument(sql, {
      ...shared,
      tagKeys: ['inbound_call_script', 'outbound_call_script'],
      workerIds: [own.worker.id, second.id],
      fileName: 'both.txt',
      content: 'both',
      now: start,
    })
    t.equal(await scriptOf('outbound'), 'both')
    t.same(await listOutboundCallScripts(sql, own.id, second.id), [{ id, fileName: 'both.txt' }])
  })

  await t.test('a worker of another account cannot be linked, and then nothing is stored', async (t) => {
    const foreign = { ...inbound, workerIds: [other.worker.id], fileName: 'foreign.txt', content: 'x', now: start }
    await t.rejects(createDocument(sql, foreign), { code: '23503' })
    t.same(await sql`select id from documents where file_name = 'foreign.txt'`, [])
  })
})

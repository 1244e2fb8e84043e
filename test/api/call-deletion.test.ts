/** docs/contract/rest.md "Deletion": what goes with a call, what stands in its way, and what a storage that is away holds up. */
import { createSecretKey, randomBytes } from 'node:crypto'
import { test, type Test } from 'tap'
import { createDeleteCall } from '../../actors/privacy/delete-call.ts'
import { createRecordingRemoval } from '../../actors/privacy/recording-removal.ts'
import type { AccountId, CallId } from '../../model/ids.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import { textsOfDatabase } from '../scenes/database-texts.ts'
import { insertCall, insertTurns, newId, openSeededApi, start } from '../scenes/seeded-api.ts'

const over = { progress: 'completed', outcome: 'completed', finished: true, postProcessingStatus: 'completed' }

async function open(t: Test) {
  const api = await openSeededApi(t)
  const { ask, own, sql, recordings } = api
  const account = `/v1/accounts/${own.id}`
  return {
    ...api,
    account,
    remove: (callId: string) => ask(`${account}/phone-calls/${callId}`, { method: 'DELETE' }),
    record: async (accountId: AccountId, callId: CallId) => {
      const key = `${accountId}/${callId}.wav`
      const writer = recordings.create(key)
      writer.append(new Uint8Array([1, 2, 3]))
      await writer.close()
      await sql`update calls set recording_key = ${key}, recorded_ms = 9, started_at = ${start} where id = ${callId}`
      return key
    },
  }
}

type Open = Awaited<ReturnType<typeof open>>

/** Everything that may be kept of a call, each with its id. */
async function fill({ sql, ask }: Open, { id: accountId, key }: Open['own'], callId: CallId): Promise<void> {
  await insertTurns(sql, accountId, callId, [
    { role: 'user', text: `I am ${callId}`, from: 0, to: 1, confidence: null, source: null },
  ])
  const log = { callId, accountId, epoch: 0, ignored: false, at: start }
  await sql`insert into call_events ${sql({ ...log, seq: 0, event: sql.json({ type: 'created' }), effects: sql.json([]) })}`
  const subscription = { eventType: '*', url: 'https://hooks.example' }
  const path = `/v1/accounts/${accountId}/webhook-subscriptions`
  const subscriptionId = (await ask(path, { method: 'POST', key, json: subscription })).json.id as string
  const delivery = { subscriptionId, accountId, callId, eventType: 'call.transcript', body: callId, eventAt: start }
  for (const status of ['pending', 'delivered', 'exhausted']) {
    const id = newId<'delivery'>()
    await sql`insert into deliveries ${sql({ ...delivery, id, status })}`
    await sql`insert into delivery_attempts ${sql({ deliveryId: id, attempt: 1, at: start, durationMs: 1 })}`
  }
  const token = randomBytes(8)
  const session = { id: newId(), accountId, callId, tokenHash: token, tokenExpiresAt: start }
  await sql`insert into web_sessions ${sql(session)}`
  await sql`insert into jobs ${sql({ id: newId(), accountId, callId, kind: 'expire_token', runAt: start })}`
  const refusal = { id: newId(), accountId, callId, direction: 'outbound', reason: 'destination', details: callId }
  await sql`insert into call_refusals ${sql({ ...refusal, firstAt: start, lastAt: start })}`
}

test('a deleted call is gone with all that was kept of it, and with nothing else', async (t) => {
  const api = await open(t)
  const { own, other, sql, remove, record, recordings, ask, account } = api
  const callId = await insertCall(sql, own.id, own.worker.id, over)
  const staying = await insertCall(sql, own.id, own.worker.id, over)
  await fill(api, own, callId)
  await fill(api, own, staying)
  await fill(api, other, other.callId)
  const keys = [await record(own.id, callId), await record(own.id, staying), await record(other.id, other.callId)]
  const before = await textsOfDatabase(sql)
  t.ok(before.naming(callId).length >= 6, `it is found in ${before.naming(callId).join(', ')}`)

  t.same([(await remove(callId)).status, (await remove(callId)).status], [204, 404])
  t.equal((await ask(`${account}/phone-calls/${callId}`)).status, 404)
  t.equal((await ask(`${account}/phone-calls/${callId}/transcript`)).status, 404)
  const after = await textsOfDatabase(sql)
  // What was done, and to which call, is not forgotten with it: only its id stays.
  const audited = ['audit_entries.arguments', 'audit_entries.call_ids']
  t.same(after.naming(callId), audited, 'no column of any other table has its id')
  for (const id of [staying, other.callId]) t.same(after.naming(id), before.naming(id), 'another call stays as it was')
  const [gone, ...left] = await Promise.all(keys.map((key) => recordings.read(key)))
  t.equal(gone, null)
  t.ok(left.every((recording) => recording !== null))
  t.equal((await sql`select from jobs`).length, 2)
  t.equal((await sql`select from delivery_attempts`).length, 6)
})

test('nothing is deleted before the call is over and processed', async (t) => {
  const { own, sql, remove, account, ask } = await open(t)
  const phone = { transport: 'sip_trunk', direction: 'outbound' }
  const unfinished = {
    'a browser that has not come': { progress: 'scheduled' },
    'a call that waits for its time': { ...phone, progress: 'scheduled', scheduledAt: start + 3_600_000 },
    'a call that waits for its turn': { ...phone, progress: 'queued' },
    'a caller for whom it rings': { ...phone, direction: 'inbound', progress: 'ringing' },
    'a call that is answered': { ...phone, progress: 'in_progress', startedAt: start },
    'a call that is processed': { ...over, finished: false, postProcessingStatus: 'in_progress' },
    'a call that is processed again': { ...over, postProcessingStatus: 'in_progress' },
  }
  for (const [what, columns] of Object.entries(unfinished)) {
    const callId = await insertCall(sql, own.id, own.worker.id, columns)
    const refused = await remove(callId)
    t.match({ status: refused.status, ...refused.json }, { status: 409, type: 'CONFLICT', details: /not over/ }, what)
    t.equal((await ask(`${account}/phone-calls/${callId}`)).status, 200, what)
    await sql`update calls set finished = true, post_processing_status = 'failed' where id = ${callId}`
    t.equal((await remove(callId)).status, 204, `${what}, once it is over`)
  }
})

test('a request that created a deleted call is told nothing personal of it, and creates no other', async (t) => {
  const { own, sql, remove, account, ask } = await open(t)
  const workerIds = [own.worker.id]
  await ask(`${account}/trunks`, {
    method: 'POST',
    json: { name: 'Out', gateways: [{ host: '203.0.113.5' }], workerIds },
  })
  const script = { title: 'S', fileName: 's.txt', text: 'say hi', workerIds, tagKeys: ['outbound_call_script'] }
  await ask(`${account}/documents`, { method: 'POST', json: script })
  const request = {
    workerId: own.worker.id,
    phoneNumber: '+4930123456',
    customer: { type: 'lead', firstName: 'Zdenka', email: 'zdenka@example.com' },
    metadata: { 'zdenka@example.com': 1 },
  }
  const headers = { 'idempotency-key': 'once' }
  const place = () => ask(`${account}/phone-calls`, { method: 'POST', json: request, headers })
  const { id } = (await place()).json
  await sql`update idempotency_keys set call_id = null`
  await sql`update calls set finished = true, outcome = 'canceled', progress = 'canceled' where id = ${id}`
  t.match((await place()).text, /Zdenka/, 'the answer of a row from before calls were told apart')
  t.equal((await remove(id)).status, 204)
  const again = await place()
  t.equal(again.status, 200)
  t.match(again.json, { id, workerId: own.worker.id, direction: 'outbound' })
  t.notMatch(again.text, /Zdenka|zdenka|4930123456/)
  t.equal((await sql`select from calls where account_id = ${own.id} and transport = 'sip_trunk'`).length, 0)
})

test('a recording whose storage is away is removed when it is back, and the call is gone at once', async (t) => {
  const { own, sql, deps, recordings, record } = await open(t)
  const [callId, second] = [
    await insertCall(sql, own.id, own.worker.id, over),
    await insertCall(sql, own.id, own.worker.id, over),
  ]
  const key = await record(own.id, callId)
  await record(own.id, second)
  const away = { ...recordings, remove: () => Promise.reject(new Error('the storage is away')) }
  const box = createSecretBox(createSecretKey(randomBytes(32)))
  const deleteCall = createDeleteCall({ ...deps, box, recordings: away })
  t.equal(await deleteCall(own.id, callId), true)
  t.equal(await deleteCall(own.id, second), true)
  t.same(await sql`select from calls where id = any(${[callId, second]}::text[])`, [])
  t.ok(await recordings.read(key))
  const removal = createRecordingRemoval(deps)
  t.equal(await removal(), 2)
  t.equal(await recordings.read(key), null)
  t.equal(await removal(), 0)
})

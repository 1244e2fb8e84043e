/** docs/contract/rest.md "Workers": what a deleted worker leaves, what stands in its way, and who wins against a call at the same moment. */
import { test, type Test } from 'tap'
import { createRetention } from '../../actors/rounds/retention.ts'
import type { TrunkId, WorkerId } from '../../model/ids.ts'
import { holdMatching } from '../../store/subscriptions.ts'
import { createWorker } from '../../store/workers.ts'
import { blockedQueries } from '../scenes/blocked-queries.ts'
import { insertCall, newId, openSeededApi, start } from '../scenes/seeded-api.ts'
import { openTelephony } from '../scenes/telephony.ts'

async function open(t: Test) {
  const api = await openSeededApi(t)
  const { ask, own, sql } = api
  const account = `/v1/accounts/${own.id}`
  return {
    ...api,
    account,
    post: (path: string, json: unknown) => ask(`${account}/${path}`, { method: 'POST', json }),
    get: (path: string) => ask(`${account}/${path}`),
    remove: (workerId: string) => ask(`${account}/workers/${workerId}`, { method: 'DELETE' }),
    make: (name: string, numbers: { inboundPhoneNumber?: string; outboundPhoneNumber?: string } = {}) =>
      createWorker(sql, { accountId: own.id, name, language: 'en', ...numbers, newId, now: start }),
  }
}

test('a deleted worker is nobody, its numbers are free, and its calls stay', async (t) => {
  const { ask, account, own, other, sql, post, get, remove, make } = await open(t)
  const number = '+4930555'
  const leaving = { name: 'Leaving', language: 'en', inboundPhoneNumber: number, outboundPhoneNumber: '+4930556' }
  const id = (await post('workers', leaving)).json.id as WorkerId
  const staying = await make('Staying')
  const trunk = {
    name: 'Exchange',
    gateways: [{ host: '203.0.113.5' }],
    username: 'line',
    workerIds: [id, staying.id],
    extensions: [{ user: 'leaving', workerId: id }, { user: 'staying', workerId: staying.id }, { user: 'any' }],
  }
  const trunkId = (await post('trunks', trunk)).json.id
  const document = { title: 'Script', text: 'say hi', workerIds: [id, staying.id], tagKeys: ['inbound_call_script'] }
  const documentId = (await post('documents', document)).json.id
  const person = { type: 'phone_contact', firstName: 'Ada', lastName: 'L', workerId: id }
  const personId = (await post('persons', person)).json.id
  const callId = await insertCall(sql, own.id, id, { progress: 'completed', outcome: 'completed', finished: true })

  const removed = await remove(id)
  t.same([removed.status, removed.text], [204, ''])
  for (const method of ['GET', 'PATCH', 'DELETE'])
    t.equal(
      (await ask(`${account}/workers/${id}`, { method, ...(method === 'PATCH' && { json: {} }) })).status,
      404,
      method,
    )
  for (const path of ['config', 'documents/outbound-call-scripts', 'mcp/tools'])
    t.equal((await get(`workers/${id}/${path}`)).status, 404, path)
  t.notOk((await get('workers')).json.some((worker: { id: string }) => worker.id === id))
  for (const [path, body] of [
    ['web-calls', { workerId: id }],
    ['phone-calls', { workerId: id, phoneNumber: '+4930123456' }],
    ['webhook-subscriptions', { eventType: '*', url: 'https://hooks.example', workerId: id }],
    ['persons', { ...person, externalId: 'x' }],
  ] as const) {
    const answer = await post(path, body)
    t.match([answer.status, answer.json.issues], [400, [{ path: 'workerId' }]], path)
  }

  t.match((await get(`trunks/${trunkId}`)).json, {
    workerIds: [staying.id],
    extensions: [{ user: 'staying', workerId: staying.id }, { user: 'any' }],
  })
  t.equal((await ask(`${account}/trunks/${trunkId}`, { method: 'PATCH', json: { name: 'Still good' } })).status, 200)
  t.same((await get(`documents/${documentId}`)).json.workerIds, [staying.id])
  t.notOk('workerId' in (await get(`persons/${personId}`)).json)
  t.match((await get(`phone-calls/${callId}`)).json, { id: callId, workerId: id })
  t.same(
    (await get(`phone-calls?workerId=${id}`)).json.data.map((call: { id: string }) => call.id),
    [callId],
  )
  const taking = { name: 'Taking', language: 'en', inboundPhoneNumber: number }
  const taken = await ask(`/v1/accounts/${other.id}/workers`, { method: 'POST', key: other.key, json: taking })
  t.match({ status: taken.status, ...taken.json }, { status: 200, inboundPhoneNumber: number })
})

test('nothing is deleted while a call of it runs, rings or waits; once it is over, it may be', async (t) => {
  const { own, sql, get, remove, make } = await open(t)
  const phone = { transport: 'sip_trunk', direction: 'outbound' }
  const unfinished = {
    'a browser that has not come': { progress: 'scheduled' },
    'a browser that talks': { progress: 'in_progress', startedAt: start },
    'a caller for whom it rings': { transport: 'sip_trunk', direction: 'inbound', progress: 'ringing' },
    'a call that waits for its time': { ...phone, progress: 'scheduled', scheduledAt: start + 3_600_000 },
    'a call that waits for its turn': { ...phone, progress: 'queued' },
    'a call that rings': { ...phone, progress: 'ringing', slotGrantedAt: start },
    'a call that is answered': { ...phone, progress: 'in_progress', slotGrantedAt: start, startedAt: start },
  }
  for (const [what, columns] of Object.entries(unfinished)) {
    const { id } = await make(what, { inboundPhoneNumber: '+4930557' })
    const callId = await insertCall(sql, own.id, id, columns)
    const refused = await remove(id)
    t.match({ status: refused.status, ...refused.json }, { status: 409, type: 'CONFLICT', details: /not over/ }, what)
    t.match((await get(`workers/${id}`)).json, { id, inboundPhoneNumber: '+4930557', isActive: true })
    await sql`update calls set outcome = 'completed', progress = 'completed' where id = ${callId}`
    t.equal((await remove(id)).status, 204, `${what}, when it is over and still worked on`)
  }
})

test('what is still due to a subscription of the worker is told, and then the subscription goes', async (t) => {
  const { own, sql, post, get, remove, make, ask, account, hands, deps } = await open(t)
  const { id } = await make('Leaving')
  const subscription = { eventType: 'call.ended', url: 'https://hooks.example', workerId: id }
  const subscriptionId = (await post('webhook-subscriptions', subscription)).json.id
  t.equal((await remove(id)).status, 204)
  t.same((await get('webhook-subscriptions')).json, [])
  t.same((await get(`webhook-subscriptions?workerId=${id}`)).json, [])
  const unseen = [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['POST', '/test'],
    ['GET', '/deliveries'],
  ] as const
  for (const [method, part] of unseen) {
    const options = { method, ...(method === 'PATCH' && { json: {} }) }
    const answer = await ask(`${account}/webhook-subscriptions/${subscriptionId}${part}`, options)
    t.equal(answer.status, 404, `${method} ${part}`)
  }
  const matching = () =>
    sql.begin((tx) => holdMatching(tx, { accountId: own.id, workerId: id, eventTypes: ['call.ended'] }))
  t.match(await matching(), [{ id: subscriptionId }], 'a call that was over when it was deleted is still told of')
  const { clock, log } = deps
  const retention = createRetention({ sql, clock, log, keep: { deliveries: 1 } })
  t.teardown(() => retention.close())
  await retention.idle()
  t.equal((await matching()).length, 1)
  hands.turn(3 * 24 * 3_600_000 + 1)
  retention.wake()
  await retention.idle()
  t.same(await matching(), [])
  t.same(await sql`select id from webhook_subscriptions where id = ${subscriptionId}`, [])
})

test('of a deletion and a call at the same moment the later one sees the other', async (t) => {
  const { own, sql, post, remove, make, deps, ask, account } = await open(t)
  const held = await make('Held')
  let born: () => void = () => undefined
  const birth = sql.begin(async (tx) => {
    await tx`select from workers where id = ${held.id} for key share`
    await new Promise<void>((resolve) => (born = resolve))
    const row = { id: newId<'call'>(), accountId: own.id, workerId: held.id, sessionId: newId(), direction: 'inbound' }
    await tx`insert into calls ${tx({ ...row, transport: 'webrtc', progress: 'scheduled', snapshot: tx.json({}) })}`
  })
  const late = remove(held.id)
  await blockedQueries(sql, 1)
  born()
  await birth
  t.equal((await late).status, 409, 'the call was first')

  for (const create of [
    (workerId: WorkerId) => post('web-calls', { workerId }),
    (workerId: WorkerId) => post('phone-calls', { workerId, phoneNumber: '+4930123456' }),
  ]) {
    const gone = await make('Gone')
    let answer: ReturnType<typeof create> | undefined
    await sql.begin(async (tx) => {
      await tx`select from workers where id = ${gone.id} for update`
      answer = create(gone.id)
      await blockedQueries(sql, 1)
      await tx`update workers set deleted_at = now() where id = ${gone.id}`
    })
    const refused = await answer
    t.match([refused?.status, refused?.json.issues], [400, [{ path: 'workerId' }]], 'the deletion was first')
    t.same(await sql`select id from calls where worker_id = ${gone.id}`, [])
  }

  const trunkOf = async (workerIds: string[]) =>
    post('trunks', { name: newId(), gateways: [{ host: '203.0.113.7' }], workerIds })
  const [linked, text] = [(await trunkOf([])).json.id, { title: 'Text', text: 'words' }]
  const documentId = (await post('documents', text)).json.id
  const person = { type: 'lead', firstName: 'Ada', lastName: 'L' }
  const personId = (await post('persons', person)).json.id
  const patch = (path: string, json: unknown) => ask(`${account}/${path}`, { method: 'PATCH', json })
  for (const [path, link] of [
    ['workerIds.0', (id: WorkerId) => trunkOf([id])],
    ['workerIds.0', (id: WorkerId) => patch(`trunks/${linked}`, { workerIds: [id] })],
    ['workerIds.0', (id: WorkerId) => post('documents', { ...text, workerIds: [id] })],
    ['workerIds.0', (id: WorkerId) => patch(`documents/${documentId}`, { workerIds: [id] })],
    ['workerId', (id: WorkerId) => post('persons', { ...person, workerId: id })],
    ['workerId', (id: WorkerId) => patch(`persons/${personId}`, { workerId: id })],
  ] as const) {
    const gone = await make('Gone')
    let answer: ReturnType<typeof link> | undefined
    await sql.begin(async (tx) => {
      await tx`select from workers where id = ${gone.id} for update`
      answer = link(gone.id)
      await blockedQueries(sql, 1)
      await tx`update workers set deleted_at = now() where id = ${gone.id}`
    })
    const refused = await answer
    t.match([refused?.status, refused?.json.issues], [400, [{ path }]], 'nothing is linked to who is gone')
  }

  const callee = await make('Callee', { inboundPhoneNumber: '+4930558' })
  const trunk = { name: 'Carrier', gateways: [{ host: '203.0.113.6' }], workerIds: [callee.id] }
  const trunkId = (await post('trunks', trunk)).json.id as TrunkId
  const telephony = openTelephony({ sql, clock: deps.clock })
  const route = await telephony.route({ address: '203.0.113.6', called: ['+4930558'], calling: null })
  if (!('trunk' in route)) throw new Error('no route')
  t.equal(route.trunk.id, trunkId)
  t.equal((await remove(callee.id)).status, 204)
  const received = await telephony.receive({ route, address: '203.0.113.6', fromNumber: null })
  t.match(received, { reason: 'worker_inactive', sipStatus: 480 }, 'a caller whose worker went while it was looked up')
  t.match(await telephony.route({ address: '203.0.113.6', called: ['+4930558'], calling: null }), {
    reason: 'unknown_number',
  })
})

/** Outbound calls on a real database: what is refused, when they are dialed, what is announced, how they are canceled, hung up and listed. */
import t, { test } from 'tap'
import { replay } from '../../actors/call/machine/replay.ts'
import type { CallId, DocumentId } from '../../model/ids.ts'
import { PhoneCallQuery, type PhoneCall, type PhoneCallRequest } from '../../model/phone-call.ts'
import { createDocument, findPinnedScript } from '../../store/documents.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { findCall, listCalls } from '../../store/calls.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { box, listen, openCallNode, openShared, status, type CallNode } from '../scenes/call-node.ts'
import { createRandom } from '../fake/random.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { addTrunk, createCallingTenant } from '../scenes/telephony.ts'
import { createTenant, newId, type Tenant } from '../scenes/tenant.ts'

const hour = 3_600_000
const opened = openShared(t)

type Hook = NonNullable<Parameters<typeof openCallNode>[1]>

/** One node on the database of this file; calls that a test leaves behind are nobody's afterwards. */
async function open(t: { teardown(close: () => Promise<void>): unknown }, hook?: Hook) {
  const shared = await opened
  const node = await openCallNode(shared, hook)
  t.teardown(async () => {
    await node.close()
    await shared.sql`delete from calls where not finished`
  })
  const iso = (ahead: number) => new Date(shared.clock.now() + ahead).toISOString()
  return { ...shared, ...node, node, iso }
}

const place = async (
  { createPhoneCall }: CallNode,
  { accountId, workerId }: Tenant,
  request: Partial<PhoneCallRequest> = {},
): Promise<PhoneCall & { callId: CallId }> => {
  const call = await createPhoneCall(accountId, { workerId, phoneNumber: '+4930200', ...request }, null)
  return { ...call, callId: call.id as CallId }
}

/** What a node does that lost a race against another one waits for its next poll, which our clock times: it moves on after many looks. */
function lookingAt(clock: { advance(ms: number): void }): () => void {
  let looks = 0
  return () => {
    if (++looks % 500 === 0) clock.advance(1_000)
  }
}

/** A question to an actor that has just ended is given up by the clock: so the node's own work is not waited for, and the clock goes on. */
async function finished({ sql, clock }: Awaited<ReturnType<typeof open>>, callId: CallId): Promise<void> {
  for (const looked = lookingAt(clock); ; looked()) {
    const [row] = await sql<{ finished: boolean }[]>`select finished from calls where id = ${callId}`
    if (row?.finished) return
  }
}

/** What subscribers of everything are told of a call: its status, or how it ended. */
async function toldOf({ sql }: Awaited<ReturnType<typeof open>>, callId: CallId) {
  const rows = await sql<{ body: string }[]>`select body from deliveries where call_id = ${callId} order by seq`
  const events = rows.map(({ body }) => JSON.parse(body) as { type: string; data: Record<string, unknown> })
  return events.map(({ type, data }) => `${type.slice('call.'.length)} ${String(data['status'])}`)
}

async function subscribe({ sql, clock }: Awaited<ReturnType<typeof open>>, { accountId }: Tenant): Promise<void> {
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  await createSubscription(sql, box, { accountId, request, newId, now: clock.now() })
}

const refusal = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error as { type: string; message: string; issues: unknown },
  )

test('creation is refused for the first reason in the order of the contract, whatever else is wrong', async (t) => {
  const stage = await open(t)
  const { sql, iso, node } = stage
  const stranger = await createTenant(sql, { slug: newId() })
  const tenant = await createTenant(sql, { slug: newId(), isActive: false, config: { llmProvider: 'cascade' } })
  const { accountId, workerId } = tenant
  const create = (over: Partial<PhoneCallRequest> = {}) =>
    refusal(place(node, tenant, { callScriptFileNames: ['script.txt', 'nowhere.txt', 'gone.txt'], ...over }))
  const script = (over: object) =>
    createDocument(sql, {
      accountId,
      title: 'Script',
      fileName: 'script.txt',
      content: 'Hello.',
      status: 'completed' as const,
      tagKeys: ['outbound_call_script'],
      workerIds: [workerId],
      newId,
      now: Date.now(),
      ...over,
    })

  t.match(await create({ scheduledAt: iso(366 * 24 * hour + 1), workerId: 'x' }), { issues: [{ path: 'scheduledAt' }] })
  const unknown = { type: 'VALIDATION_FAILED', issues: [{ path: 'workerId' }] }
  t.match(await create({ workerId: 'x' }), unknown)
  t.match(await create({ workerId: stranger.workerId }), unknown, "another account's worker")
  t.match(await create(), { type: 'WORKER_INACTIVE' })
  await sql`update workers set is_active = true where id = ${workerId}`
  t.match(await create(), { type: 'TELEPHONY_INTEGRATION_NOT_SETUP' })
  await addTrunk(sql, tenant, { isActive: false })
  t.match(await create(), { type: 'TELEPHONY_INTEGRATION_NOT_SETUP' }, 'an inactive trunk is none')
  await addTrunk(sql, tenant, { workerIds: [] })
  t.match(await create(), { type: 'TELEPHONY_INTEGRATION_NOT_ADDED_TO_WORKER' })
  await addTrunk(sql, tenant, { direction: 'inbound' })
  t.match(await create(), { type: 'TELEPHONY_TRANSPORT_NOT_SUPPORTED' })
  await addTrunk(sql, tenant, { direction: 'outbound', gateways: [] })
  t.match(await create(), { type: 'TELEPHONY_TRANSPORT_NOT_SUPPORTED' }, 'no gateway to dial to')
  await addTrunk(sql, tenant, { direction: 'outbound' })
  t.match(await create(), { type: 'CALL_SCRIPT_NOT_CONFIGURED' })
  for (const unfit of [
    { isActive: false },
    { status: 'queued' },
    { tagKeys: ['inbound_call_script'] },
    { workerIds: [] },
  ])
    await script(unfit)
  t.match(
    await create(),
    { type: 'CALL_SCRIPT_NOT_CONFIGURED' },
    'none that is active, completed, outbound and its own',
  )
  await script({})
  const names = await create()
  t.match(names, { type: 'VALIDATION_FAILED', issues: [{ message: /nowhere\.txt/ }, { message: /gone\.txt/ }] })
  t.match(names, { issues: [{ path: 'callScriptFileNames.1' }, { path: 'callScriptFileNames.2' }] })
  t.match(await create({ callScriptFileNames: ['script.txt'] }), { type: 'TELEPHONY_SERVICE_PROVIDER_UNAVAILABLE' })
  t.same(await listCalls(sql, accountId, PhoneCallQuery.parse({})), [], 'nothing of it has left a call')
  await sql`update workers set config = '{}' where id = ${workerId}`
  t.equal(await create({ callScriptFileNames: ['script.txt'], scheduledAt: iso(366 * 24 * hour) }), null)
})

test('a call without scheduledAt is queued, asks for its worker right before it is dialed, and ends as it is dialed', async (t) => {
  const stage = await open(t)
  const tenant = await createCallingTenant(stage.sql)
  await subscribe(stage, tenant)
  const customer = { type: 'lead', firstName: 'Eva', phoneNumber: '+4930300' } as const
  const call = await place(stage.node, tenant, { customer, context: 'Asked to be called.' })
  t.match(call, { status: 'queued', direction: 'outbound', fromNumber: '+4930100', toNumber: '+4930200', customer })
  t.notOk('scheduledAt' in call)
  await finished(stage, call.callId)
  t.match(stage.asked, [
    { callId: call.id, direction: 'outbound', transport: 'sip_trunk', customer: { number: '+4930200', name: 'Eva' } },
  ])
  t.same(await toldOf(stage, call.callId), ['status_update queued', 'status_update failed', 'ended failed'])
  t.match(await findCall(stage.sql, tenant.accountId, call.callId), {
    outcome: 'failed',
    failedReason: 'sip_call_failed',
    postProcessingStatus: 'none',
  })
})

test('without numbers a call is accepted, and fails with missing_phone_numbers when it is dialed', async (t) => {
  const stage = await open(t)
  const tenant = await createCallingTenant(stage.sql)
  const reasonOf = async (over: Partial<PhoneCallRequest>) => {
    const { callId } = await place(stage.node, tenant, over)
    await finished(stage, callId)
    return (await findCall(stage.sql, tenant.accountId, callId))?.failedReason
  }
  t.equal(await reasonOf({ phoneNumber: undefined }), 'missing_phone_numbers')
  const customer = { type: 'lead', phoneNumber: '+4930300' } as const
  t.equal(await reasonOf({ phoneNumber: undefined, customer }), 'sip_call_failed', "the customer's number will do")
  t.equal(
    await reasonOf({ phoneNumber: undefined, customer: { ...customer, phoneNumber: '' } }),
    'missing_phone_numbers',
  )
  await stage.sql`update workers set outbound_phone_number = null where id = ${tenant.workerId}`
  t.equal(await reasonOf({}), 'missing_phone_numbers')
})

test('a person who is stored with the number is put on the call', async (t) => {
  const stage = await open(t)
  const [own, other] = [await createCallingTenant(stage.sql), await createCallingTenant(stage.sql)]
  const personId = newId<'person'>()
  for (const { id, accountId } of [
    { id: personId, ...own },
    { id: newId(), accountId: other.accountId },
  ])
    await stage.sql`
      insert into persons (id, account_id, type, first_name, last_name, phone_number)
      values (${id}, ${accountId}, 'lead', 'Eva', 'Muster', '+4930200')`
  const call = await place(stage.node, own, { scheduledAt: stage.iso(hour) })
  t.equal((await findCall(stage.sql, own.accountId, call.callId))?.personId, personId)
  const unknown = await place(stage.node, own, { phoneNumber: '+4930999', scheduledAt: stage.iso(hour) })
  t.equal((await findCall(stage.sql, own.accountId, unknown.callId))?.personId, null)
})

test('a scheduled call waits for its dial time and asks for its worker only then; a past time means now', async (t) => {
  const stage = await open(t)
  const tenant = await createCallingTenant(stage.sql)
  await subscribe(stage, tenant)
  const scheduledAt = stage.iso(hour)
  const call = await place(stage.node, tenant, { scheduledAt })
  t.match(call, { status: 'scheduled', scheduledAt })
  stage.clock.advance(hour - 1)
  await stage.dispatcher.idle()
  await stage.scheduler.idle()
  t.same(stage.asked, [])
  t.same(await toldOf(stage, call.callId), ['status_update scheduled'])
  stage.clock.advance(1)
  await finished(stage, call.callId)
  t.match(stage.asked, [{ callId: call.id }])
  t.same(await toldOf(stage, call.callId), [
    'status_update scheduled',
    'status_update queued',
    'status_update failed',
    'ended failed',
  ])
  const past = await place(stage.node, tenant, { scheduledAt: stage.iso(-hour) })
  t.equal(past.status, 'queued')
  t.notOk('scheduledAt' in past, 'and is no earlier place in the queue')
  await finished(stage, past.callId)
})

test('a required call.worker_request that fails aborts the call before it is dialed', async (t) => {
  const stage = await open(t, async () => ({ kind: 'failed', required: true, details: 'timeout' }))
  const tenant = await createCallingTenant(stage.sql)
  await subscribe(stage, tenant)
  const { callId } = await place(stage.node, tenant)
  await finished(stage, callId)
  t.match(await findCall(stage.sql, tenant.accountId, callId), { failedReason: 'worker_request_required_failed' })
  t.same((await toldOf(stage, callId)).at(-1), 'ended failed')
  t.notMatch(JSON.stringify(await listCallEvents(stage.sql, callId)), /"dial"/)
})

test('instructions and metadata that come with a call reach hook, engine and events; what the hook answers goes before them', async (t) => {
  const metadata = { ticket: 7, deep: { list: [1, null] } }
  const answers = [{}, { instructions: 'Be brief.', metadata: { ticket: 8 } }]
  const stage = await open(t, async () => ({ kind: 'answered', answer: answers.shift() ?? {} }))
  const tenant = await createCallingTenant(stage.sql)
  await subscribe(stage, tenant)
  const toldAll = async ({ callId }: { callId: CallId }) => {
    const rows = await stage.sql<{ body: string }[]>`select body from deliveries where call_id = ${callId} order by seq`
    return rows.map(({ body }) => (JSON.parse(body) as { data: { metadata?: unknown } }).data.metadata)
  }
  for (const [instructions, told] of [
    ['Be kind.', metadata],
    ['Be brief.', { ticket: 8 }],
  ] as const) {
    const call = await place(stage.node, tenant, { instructions: 'Be kind.', metadata })
    t.match(call, { transport: 'sip_trunk', metadata })
    await finished(stage, call.callId)
    t.same(stage.asked.at(-1)?.metadata, metadata)
    t.equal(stage.engine.configs.at(-1)?.instructions, instructions)
    const all = await toldAll(call)
    t.same([all[0], all.at(-1)], [metadata, told])
    t.ok(all.length > 2 && all.every((one) => one !== undefined), 'each event has it')
    t.match((await findCall(stage.sql, tenant.accountId, call.callId))?.metadata, told)
  }
  const plain = await place(stage.node, tenant)
  t.notOk('metadata' in plain)
  await finished(stage, plain.callId)
  t.equal(stage.engine.configs.at(-1)?.instructions, null)
})

test('calls that became due while no node ran are dialed at once when one starts, in the order of their times', async (t) => {
  const shared = await opened
  const before = await openCallNode(shared)
  const tenant = await createCallingTenant(shared.sql, { maxConcurrentCalls: 1 })
  const calls: CallId[] = []
  for (const ahead of [3, 1, 2]) {
    const scheduledAt = new Date(shared.clock.now() + ahead * hour).toISOString()
    calls.push((await place(before, tenant, { scheduledAt })).callId)
  }
  await before.close()
  shared.clock.advance(4 * hour)
  const stage = await open(t)
  for (const callId of calls) await finished(stage, callId)
  const [three, one, two] = calls
  t.same(
    stage.asked.map(({ callId }) => callId),
    [one, two, three],
  )
})

test('an overdue call that gets its place before it is told its time is dialed all the same', async (t) => {
  const stage = await open(t)
  const tenant = await createCallingTenant(stage.sql)
  await subscribe(stage, tenant)
  const { callId } = await place(stage.node, tenant, { scheduledAt: stage.iso(hour) })
  await stage.sql`update jobs set run_at = 'infinity' where call_id = ${callId} and kind = 'dial_time'`
  stage.clock.advance(hour)
  await stage.dispatcher.idle()
  await finished(stage, callId)
  t.same((await toldOf(stage, callId)).slice(0, 2), ['status_update scheduled', 'status_update queued'])
  await stage.scheduler.idle()
  t.same(await stage.sql`select from jobs where call_id = ${callId} and kind = 'dial'`, [])
})

test('pinned scripts are used instead of all of the worker, as long as one of them is left', async (t) => {
  const stage = await open(t)
  const { sql } = stage
  const tenant = await createCallingTenant(sql)
  const { accountId, workerId } = tenant
  const script = (fileName: string, content: string, now = Date.now()) =>
    createDocument(sql, {
      accountId,
      title: fileName,
      fileName,
      content,
      status: 'completed',
      tagKeys: ['outbound_call_script', 'inbound_call_script'],
      workerIds: [workerId],
      newId,
      now,
    })
  await script('b.txt', 'old B', 0)
  const [b, a] = [await script('b.txt', 'B'), await script('a.txt', 'A')]
  const call = await place(stage.node, tenant, {
    callScriptFileNames: ['b.txt', 'a.txt', 'b.txt'],
    scheduledAt: stage.iso(hour),
  })
  const [row] = await sql<{ scriptIds: DocumentId[] }[]>`select script_ids from calls where id = ${call.callId}`
  const pinned = row?.scriptIds ?? []
  t.same(pinned, [b, a], 'of one name the newest, once')
  t.equal(await findPinnedScript(sql, accountId, pinned), 'A\n\nB', 'in the order of file names')
  await sql`update documents set is_active = false where id = ${b}`
  t.equal(await findPinnedScript(sql, accountId, pinned), 'A')
  t.equal(await findPinnedScript(sql, newId<'account'>(), pinned), null)

  const scriptToldTo = async (): Promise<string | null | undefined> => {
    const web = await stage.createWebCall(accountId, { workerId })
    await sql`update calls set script_ids = ${pinned} where id = ${web.callId}`
    const [leg, browser] = [createScriptedLeg(stage.bus, web.callId), listen(stage.bus, web.callId)]
    await stage.admission.admit(web.token, null)
    leg.event({ type: 'connected', providerStatus: 'connected' })
    await browser.until(status('in_progress'))
    while (!stage.engine.configs.some(({ callId }) => callId === web.callId)) await stage.bus.flush()
    await stage.endCall.hangUp(accountId, web.callId)
    await finished(stage, web.callId)
    return stage.engine.configs.at(-1)?.script
  }
  t.equal(await scriptToldTo(), 'A')
  await sql`delete from documents where id = ${a}`
  t.equal(await scriptToldTo(), 'old B\n\nSay hello.', 'none is left: the worker speaks by all of its own')
})

test('a call that waits is canceled without call.ended; one that runs, or is over, is not', async (t) => {
  const gate = Promise.withResolvers<void>()
  const stage = await open(t, () => gate.promise.then(() => ({ kind: 'none' })))
  const tenant = await createCallingTenant(stage.sql, { workerLimit: 2 })
  const { accountId, workerId } = tenant
  await subscribe(stage, tenant)
  const { cancel, hangUp } = stage.endCall
  const web = await stage.createWebCall(accountId, { workerId })
  const running = await place(stage.node, tenant)
  while (stage.asked.length === 0) await stage.scheduler.idle()
  const queued = await place(stage.node, tenant)
  const scheduled = await place(stage.node, tenant, { scheduledAt: stage.iso(hour) })

  // The queued one first: a place that gets free would be its own.
  for (const callId of [queued.callId, scheduled.callId, web.callId]) {
    t.match(await refusal(hangUp(accountId, callId)), { type: 'CONFLICT', message: /cancel it/ })
    const canceled = { status: 'completed', outcome: 'canceled', failedReason: 'cancelled_by_account_admin' }
    t.match(await cancel(accountId, callId), canceled)
    const told = await toldOf(stage, callId)
    t.equal(told.at(-1), 'status_update canceled')
    t.notOk(told.some((event) => event.startsWith('ended')))
    t.match(await refusal(cancel(accountId, callId)), { type: 'CONFLICT', message: /is over/ })
    t.match(await refusal(hangUp(accountId, callId)), { type: 'CONFLICT', message: /is over/ })
  }
  t.match(await refusal(cancel(accountId, running.callId)), {
    type: 'CONFLICT',
    message: /already running; hang it up/,
  })
  t.match(await hangUp(accountId, running.callId), { id: running.id, status: 'completed' })
  gate.resolve()
  await finished(stage, running.callId)
  t.same((await toldOf(stage, running.callId)).slice(-2), ['status_update canceled', 'ended canceled'])
  const unknown = { type: 'NOT_FOUND' }
  t.match(await refusal(cancel(accountId, newId<'call'>())), unknown)
  t.match(await refusal(hangUp(newId<'account'>(), running.callId)), unknown, "another account's call")
})

test('a web call that its browser has joined is hung up, not canceled', async (t) => {
  const stage = await open(t)
  const { accountId, workerId } = await createTenant(stage.sql, { slug: newId() })
  const web = await stage.createWebCall(accountId, { workerId })
  createScriptedLeg(stage.bus, web.callId)
  await stage.admission.admit(web.token, null)
  t.match(await refusal(stage.endCall.cancel(accountId, web.callId)), { type: 'CONFLICT', message: /hang it up/ })
  await stage.endCall.hangUp(accountId, web.callId)
  await finished(stage, web.callId)
  t.match(await findCall(stage.sql, accountId, web.callId), { outcome: 'canceled', failedReason: null })
})

test('a call that nobody answers for is out of reach for the moment', async (t) => {
  const stage = await open(t)
  const tenant = await createCallingTenant(stage.sql)
  const { callId } = await place(stage.node, tenant, { scheduledAt: stage.iso(hour) })
  await stage.sql`insert into nodes (id, lease_until) values ('silent', 'infinity')`
  await stage.sql`update calls set owner = 'silent' where id = ${callId}`
  t.match(await refusal(stage.endCall.cancel(tenant.accountId, callId)), { type: 'SERVICE_UNAVAILABLE' })
  await stage.sql`delete from nodes where id = 'silent'`
  t.match(await stage.endCall.cancel(tenant.accountId, callId), { outcome: 'canceled' })
})

test('of canceling and dialing exactly one wins, however close they come', async (t) => {
  const stage = await open(t)
  const elsewhere = await openCallNode(await opened)
  t.teardown(() => elsewhere.close())
  const random = createRandom(7)
  const { accountId, workerId } = await createCallingTenant(stage.sql)
  const ends = { canceled: 0, dialed: 0 }
  for (let round = 0; round < 60; round++) {
    const { callId } = await place(stage.node, { accountId, workerId })
    const closeUp = random.below(2) === 0
    const looked = lookingAt(stage.clock)
    for (let granted = false; closeUp && !granted; looked()) {
      const [row] = await stage.sql<{ granted: boolean }[]>`
        select slot_granted_at is not null as granted from calls where id = ${callId}`
      granted = row?.granted ?? true
    }
    const node = random.pick([stage.node, elsewhere])
    const problem = await refusal(node.endCall.cancel(accountId, callId))
    const out = problem?.type === 'SERVICE_UNAVAILABLE'
    if (problem && !out && problem.type !== 'CONFLICT') t.fail('a race ends in a conflict', { problem })
    stage.clock.advance(1_000)
    await finished(stage, callId)
    const [call, log] = [await findCall(stage.sql, accountId, callId), await listCallEvents(stage.sql, callId)]
    const canceled = call?.failedReason === 'cancelled_by_account_admin'
    const dialed = JSON.stringify(log.map(({ effects }) => effects)).includes('"dial"')
    if (canceled === dialed || (!out && canceled !== (problem === null)))
      t.fail('both or none', { round, canceled, dialed, problem })
    ends[canceled ? 'canceled' : 'dialed']++
  }
  t.equal(ends.canceled + ends.dialed, 60)
  t.comment(ends)
})

test('calls are listed newest first, a page at a time, by status, outcome, direction, worker and time', async (t) => {
  const stage = await open(t)
  const { sql, clock } = stage
  const tenant = await createCallingTenant(sql)
  const other = await createTenant(sql, { slug: newId() })
  const began = clock.now()
  const scheduled = await place(stage.node, tenant, { scheduledAt: stage.iso(hour) })
  clock.advance(1000)
  const canceled = await place(stage.node, tenant, { scheduledAt: stage.iso(hour) })
  await stage.endCall.cancel(tenant.accountId, canceled.callId)
  const web = await stage.createWebCall(tenant.accountId, { workerId: tenant.workerId })
  await stage.createWebCall(other.accountId, { workerId: other.workerId })
  clock.advance(1000)
  const failed = await place(stage.node, tenant)
  await finished(stage, failed.callId)
  const names = new Map([scheduled, canceled, web, failed].map((call, index) => [call.callId as string, 'scwf'[index]]))
  const list = async (query: object) =>
    (await listCalls(sql, tenant.accountId, PhoneCallQuery.parse(query))).map(({ id }) => names.get(id)).join('')

  t.equal(await list({}), 'fwcs')
  t.equal(await list({ limit: 2 }), 'fwc', 'one more than asked for tells that there is more')
  t.equal(await list({ cursor: web.callId }), 'cs')
  t.equal(await list({ status: 'scheduled' }), 'ws')
  t.equal(await list({ status: 'completed' }), 'fc', 'every terminal state')
  t.equal(await list({ status: 'canceled' }), 'c')
  t.equal(await list({ status: 'failed' }), 'f')
  t.equal(await list({ status: 'queued' }), '')
  t.equal(await list({ direction: 'inbound' }), 'w')
  t.equal(await list({ workerId: tenant.workerId.toUpperCase(), direction: 'outbound' }), 'fcs')
  t.equal(await list({ workerId: other.workerId }), '')
  t.equal(await list({ workerId: 'no id' }), '')
  const [from, to] = [1000, 2000].map((ms) => new Date(began + ms).toISOString())
  t.equal(await list({ from }), 'fwc', 'from is inclusive')
  t.equal(await list({ from, to }), 'wc', 'to is not')
})

test('the log of every call of these tests replays to the same effects', async (t) => {
  const { sql } = await opened
  const calls = await sql<{ id: CallId }[]>`select id from calls where finished`
  t.ok(calls.length > 60)
  for (const { id } of calls) {
    const { differences } = replay(await listCallEvents(sql, id))
    if (differences.length > 0) t.fail('a replay differs', { differences })
  }
})

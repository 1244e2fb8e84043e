/**
 * Calls that are planned, and placed once they are confirmed, on a real database: a token works once and for its holder, and a confirmation and its calls are
 * written together or not at all. docs/contract/mcp.md "Calls and confirmations".
 */
import { createHash } from 'node:crypto'
import t, { test } from 'tap'
import { createOutboundCalls } from '../../actors/call/birth/outbound-calls.ts'
import type { AccountId, DocumentId, WorkerId } from '../../model/ids.ts'
import {
  confirmationLifetime,
  maxPendingConfirmations,
  type ConfirmationHolder,
  type ConfirmationKind,
  type WantedCall,
} from '../../model/outbound-calls.ts'
import { Problem } from '../../model/problem.ts'
import { changeAccountConfig } from '../../store/accounts.ts'
import { findCall } from '../../store/calls.ts'
import {
  decideConfirmation,
  findByConfirmationToken,
  forgetConfirmations,
  issueConfirmation,
  listPendingConfirmations,
  revokeConfirmation,
} from '../../store/confirmations.ts'
import { createDocument } from '../../store/documents.ts'
import { createPerson, deletePerson } from '../../store/persons.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { box } from '../scenes/call-node.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createCallingTenant } from '../scenes/telephony.ts'
import { newId } from '../scenes/tenant.ts'

const opened = openTestDatabase(t)
const number = '+4930200'

async function open() {
  const { sql, server } = await opened
  const clock = createHandClock()
  const engines = new Map([['embedded', createScriptedEngine()]] as const)
  const woken = { deliveries: 0, dispatcher: 0 }
  const callsOver = (pool: Sql) =>
    createOutboundCalls({
      sql: pool,
      clock,
      newId,
      box,
      engines,
      wakeDeliveries: () => void (woken.deliveries += 1),
      wakeDispatcher: () => void (woken.dispatcher += 1),
    })
  const tenant = await createCallingTenant(sql)
  const { accountId, workerId } = tenant
  const calls = callsOver(sql)
  const holder: ConfirmationHolder = { accountId, userId: newId(), clientId: 'client-1' }
  const prepare = async (wanted: WantedCall | WantedCall[], kind: ConfirmationKind = 'single') => {
    const planned = await calls.plan(accountId, Array.isArray(wanted) ? wanted : [wanted])
    const given = { holder, clientName: 'Claude', kind, calls: planned.calls, summary: 'Ada calls', newId }
    return { ...(await issueConfirmation(sql, { ...given, now: clock.now() })), planned }
  }
  return {
    sql,
    server,
    clock,
    calls,
    callsOver,
    woken,
    accountId,
    workerId,
    holder,
    prepare,
    confirm: (token: string, kind: ConfirmationKind = 'single', over: Partial<ConfirmationHolder> = {}) =>
      calls.confirm({ holder: { ...holder, ...over }, kind, token }),
    countCalls: async () => (await sql`select from calls where account_id = ${accountId}`).length,
  }
}

const problemOf = (promise: Promise<unknown>): Promise<Problem> =>
  promise.then(
    () => {
      throw new Error('it was not refused')
    },
    (error: unknown) => error as Problem,
  )

const said = (problem: Problem) => ({
  type: problem.type,
  issues: problem.issues?.map(({ path, message }) => `${path} ${message}`),
})

test('a confirmed call is placed exactly as it was planned', async (t) => {
  const { sql, clock, accountId, workerId, prepare, confirm, woken } = await open()
  const request = { type: 'customer', firstName: 'Eve', lastName: 'Stone', phoneNumber: number } as const
  const person = await createPerson(sql, { accountId, request, newId, now: clock.now() })
  const scheduledAt = clock.now() + 3_600_000
  const context = JSON.stringify({ order: 7 })
  const { token, planned } = await prepare({ workerId, personId: person.id, context, scheduledAt })
  t.match(planned.calls, [
    {
      workerId,
      workerName: 'Ada',
      fromNumber: '+4930100',
      toNumber: number,
      calleeName: 'Eve Stone',
      scheduledAt,
      scripts: [{ title: 'Script' }],
    },
  ])
  t.match(planned.limits, { maxConcurrentCalls: 100, dailyMinutes: null })
  const [call, ...others] = await confirm(token)
  t.same(others, [])
  t.match(call, { status: 'scheduled', direction: 'outbound', toNumber: number, fromNumber: '+4930100', workerId })
  const [row] = await sql<{ personId: string; context: string; scriptIds: string[] }[]>`
    select person_id, context, script_ids from calls where id = ${call!.id}`
  t.same(row, { personId: person.id, context, scriptIds: [planned.calls[0]!.scripts[0]!.id] })
  t.same(woken, { deliveries: 1, dispatcher: 1 })
  t.equal(call!.scheduledAt, new Date(scheduledAt).toISOString())
})

test('without a time a confirmed call waits for its turn, and a batch is scheduled whole', async (t) => {
  const { sql, workerId, prepare, confirm } = await open()
  const one = await prepare({ workerId, phoneNumber: number, instructions: 'Ask for the order.' })
  t.match(await confirm(one.token), [{ status: 'queued' }])
  const [{ request } = { request: null }] = await sql`select request from calls where worker_id = ${workerId}`
  t.same(request, { instructions: 'Ask for the order.' })
  const wanted = Array.from({ length: 100 }, (_, index) => ({ workerId, phoneNumber: `+49301${1000 + index}` }))
  const { token } = await prepare(wanted, 'batch')
  const placed = await confirm(token, 'batch')
  t.equal(placed.length, 100)
  t.ok(placed.every(({ status, scheduledAt }) => status === 'scheduled' && scheduledAt !== undefined))
  t.same(
    placed.map(({ toNumber }) => toNumber),
    wanted.map(({ phoneNumber }) => phoneNumber),
  )
  const jobs =
    await sql`select from jobs where kind = 'dial_time' and account_id = (select account_id from workers where id = ${workerId})`
  t.equal(jobs.length, 100, 'each has its dial time')
})

test('of two confirms at once one places the call, over one pool and over two', async (t) => {
  const { sql, server, workerId, holder, callsOver, prepare, countCalls } = await open()
  const other = connect({ server, applicationName: 'second process', maxConnections: 4 })
  t.teardown(() => other.end({ timeout: 1 }))
  const pools = [sql, other]
  for (const [round, kind] of (['single', 'single', 'batch'] as const).entries()) {
    const wanted = Array.from({ length: kind === 'batch' ? 5 : 1 }, () => ({ workerId, phoneNumber: number }))
    const { token } = await prepare(wanted, kind)
    const before = await countCalls()
    const tries = Array.from({ length: 8 }, (_, index) =>
      callsOver(pools[round === 0 ? 0 : index % 2]!).confirm({ holder, kind, token }),
    )
    const settled = await Promise.allSettled(tries)
    const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as Problem] : []))
    t.equal(refused.length, 7)
    t.ok(refused.every(({ type, message }) => type === 'CONFLICT' && /was used already/.test(message)))
    t.equal((await countCalls()) - before, wanted.length)
  }
})

test('a token works for its client, user, account and kind only, and stays good for them', async (t) => {
  const { sql, holder, workerId, prepare, confirm, countCalls } = await open()
  const stranger = await createCallingTenant(sql)
  const { token } = await prepare({ workerId, phoneNumber: number })
  const unknown = { type: 'NOT_FOUND', message: 'There is no such confirmation.' }
  const foreign = [{ userId: newId() }, { clientId: 'client-2' }, { accountId: stranger.accountId }]
  for (const over of foreign) {
    t.match(await problemOf(confirm(token, 'single', over)), unknown)
    t.match(await problemOf(revokeConfirmation(sql, { ...holder, ...over }, token, 0)), unknown)
    t.same(await listPendingConfirmations(sql, { ...holder, ...over }, 0), [])
    t.equal(await findByConfirmationToken(sql, { ...holder, ...over }, token), null)
  }
  t.match(await problemOf(confirm('x'.repeat(43))), unknown)
  t.match(said(await problemOf(confirm(token, 'batch'))), {
    type: 'CONFLICT',
    issues: ['batch_confirmation_token stands for one call: use confirm_phone_call'],
  })
  t.equal(await countCalls(), 0)
  t.equal((await confirm(token)).length, 1)
})

test('a token lives ten minutes', async (t) => {
  const { sql, holder, clock, workerId, prepare, confirm, countCalls } = await open()
  const { token, expiresAt } = await prepare({ workerId, phoneNumber: number })
  t.equal(expiresAt - clock.now(), 600_000)
  clock.advance(confirmationLifetime - 1)
  t.equal((await listPendingConfirmations(sql, holder, clock.now())).length, 1)
  clock.advance(1)
  t.same(await listPendingConfirmations(sql, holder, clock.now()), [])
  t.match(await problemOf(confirm(token)), { type: 'CONFLICT', message: /has expired/ })
  t.equal(await countCalls(), 0)
  clock.advance(1)
  const forget = () => forgetConfirmations(sql, { before: clock.now() - 3_600_000, now: clock.now(), limit: 1_000 })
  t.ok((await forget()) >= 1)
  t.match(await problemOf(confirm(token)), { type: 'NOT_FOUND' })
})

test('a revoked token places nothing, a used one cannot be revoked, and either may be asked for again', async (t) => {
  const { sql, holder, clock, workerId, prepare, confirm } = await open()
  const revoked = await prepare({ workerId, phoneNumber: number })
  t.match(await revokeConfirmation(sql, holder, revoked.token, clock.now()), { state: 'revoked' })
  t.match(await revokeConfirmation(sql, holder, revoked.token, clock.now()), { state: 'revoked' })
  t.match(await problemOf(confirm(revoked.token)), { type: 'CONFLICT', message: /was revoked/ })
  const used = await prepare({ workerId, phoneNumber: number })
  const [call] = await confirm(used.token)
  const tooLate = [() => confirm(used.token), () => revokeConfirmation(sql, holder, used.token, clock.now())]
  for (const late of tooLate)
    t.match(await problemOf(late()), { type: 'CONFLICT', message: new RegExp(`placed the call ${call!.id}`) })
  const rows = await sql`select calls, summary from confirmations where account_id = ${holder.accountId}`
  t.same(
    rows,
    [
      { calls: [], summary: '' },
      { calls: [], summary: '' },
    ],
    'nothing personal is kept of what is settled',
  )
})

test('where the user is waited for, nothing is placed before they approved, and a denial is final', async (t) => {
  const { sql, holder, clock, workerId, calls, prepare, countCalls } = await open()
  const decide = (id: string, word: 'approved' | 'denied', userId = holder.userId) =>
    decideConfirmation(sql, { id, userId, accountId: holder.accountId }, word, clock.now())
  const approved = await prepare({ workerId, phoneNumber: number })
  const confirming = { holder, kind: 'single', mustBeApproved: true } as const
  const waiting = () => calls.confirm({ ...confirming, token: approved.token })
  t.match(await problemOf(waiting()), { type: 'CONFLICT', message: /has not been approved by the user yet/ })
  t.equal(await decide(approved.id, 'approved', newId()), false, 'another user has no say')
  t.match(await problemOf(waiting()), { type: 'CONFLICT' })
  t.equal(await decide(approved.id, 'approved'), true)
  t.equal((await waiting()).length, 1)
  t.equal(await decide(approved.id, 'denied'), false, 'too late')
  const denied = await prepare({ workerId, phoneNumber: number })
  t.equal(await decide(denied.id, 'denied'), true)
  t.equal(await decide(denied.id, 'approved'), false)
  for (const mustBeApproved of [true, false])
    t.match(await problemOf(calls.confirm({ ...confirming, mustBeApproved, token: denied.token })), {
      type: 'CONFLICT',
      message: /was denied by the user/,
    })
  t.equal(await countCalls(), 1)
})

test('a token rests as its hash', async (t) => {
  const { sql, workerId, prepare } = await open()
  const { token, id } = await prepare({ workerId, phoneNumber: number })
  const [row] = await sql<{ tokenHash: Buffer; all: string }[]>`
    select token_hash, to_jsonb(confirmations)::text as all from confirmations where id = ${id}`
  t.same(row?.tokenHash, createHash('sha256').update(token).digest())
  t.notOk(row?.all.includes(token))
})

test('what cannot be placed any more leaves the token as it was, to be used when it can', async (t) => {
  const { sql, clock, accountId, workerId, prepare, confirm, countCalls } = await open()
  const { token } = await prepare({ workerId, phoneNumber: '+14155550100' })
  await sql`update workers set is_active = false where id = ${workerId}`
  t.match(said(await problemOf(confirm(token))), { type: 'WORKER_INACTIVE', issues: [/^0\.workerId /] })
  await sql`update workers set is_active = true where id = ${workerId}`
  await changeAccountConfig(sql, accountId, { allowedDestinations: ['+49'] }, clock.now())
  t.match(said(await problemOf(confirm(token))), { type: 'VALIDATION_FAILED', issues: [/^0\.phoneNumber /] })
  await changeAccountConfig(sql, accountId, { allowedDestinations: null }, clock.now())
  await sql`update workers set outbound_phone_number = '+4930999' where id = ${workerId}`
  t.match(said(await problemOf(confirm(token))), { issues: [/^0\.workerId must be a number of one of the workers/] })
  await sql`update workers set outbound_phone_number = '+4930100' where id = ${workerId}`
  await sql`update documents set is_active = false where account_id = ${accountId}`
  t.match(await problemOf(confirm(token)), { type: 'CALL_SCRIPT_NOT_CONFIGURED' })
  await sql`update documents set is_active = true where account_id = ${accountId}`
  t.equal(await countCalls(), 0)
  t.equal((await confirm(token)).length, 1)
  const soon = await prepare({ workerId, phoneNumber: number, scheduledAt: clock.now() + 60_000 })
  clock.advance(60_000)
  t.match(said(await problemOf(confirm(soon.token))), { issues: ['0.scheduledAt must be in the future'] })
})

test('a failed batch places none of its calls', async (t) => {
  const { sql, clock, workerId, prepare, confirm, countCalls } = await open()
  const phoneNumber = number
  const wanted = [
    { workerId, phoneNumber },
    { workerId, phoneNumber, scheduledAt: clock.now() + 1_000 },
  ]
  const { token } = await prepare(wanted, 'batch')
  clock.advance(2_000)
  t.match(said(await problemOf(confirm(token, 'batch'))), { issues: ['1.scheduledAt must be in the future'] })
  t.equal(await countCalls(), 0)
  t.same(
    await sql`select from call_events where account_id = (select account_id from workers where id = ${workerId})`,
    [],
  )
})

test('a call of a person who was deleted meanwhile is named by its index', async (t) => {
  const { sql, clock, accountId, workerId, prepare, confirm, countCalls } = await open()
  const request = { type: 'lead', firstName: 'Eve', lastName: 'Stone' } as const
  const { id: personId } = await createPerson(sql, { accountId, request, newId, now: clock.now() })
  const good = { workerId, phoneNumber: number }
  const { token } = await prepare([good, { ...good, personId }], 'batch')
  await deletePerson(sql, accountId, personId)
  t.match(said(await problemOf(confirm(token, 'batch'))), {
    type: 'VALIDATION_FAILED',
    issues: ['1.personId must be a person of the account'],
  })
  t.equal(await countCalls(), 0)
})

test('batches with the same customers in another order place all of their calls, at once', async (t) => {
  const { workerId, holder, calls, prepare, countCalls } = await open()
  const wanted = Array.from({ length: 30 }, (_, index) => ({
    workerId,
    phoneNumber: number,
    customer: { type: 'customer', externalId: `customer-${index}` } as const,
  }))
  const tokens = [
    (await prepare(wanted, 'batch')).token,
    (await prepare(wanted.toReversed(), 'batch')).token,
    (await prepare(wanted, 'batch')).token,
    (await prepare(wanted.toReversed(), 'batch')).token,
  ]
  const settled = await Promise.allSettled(tokens.map((token) => calls.confirm({ holder, kind: 'batch', token })))
  t.same(
    settled.map((one) => (one.status === 'rejected' ? String(one.reason) : one.value.length)),
    tokens.map(() => wanted.length),
  )
  t.equal(await countCalls(), tokens.length * wanted.length)
})

test('every bad call of a plan is named by its index', async (t) => {
  const { sql, clock, calls, accountId, workerId } = await open()
  const stranger = await createCallingTenant(sql)
  const good = { workerId, phoneNumber: number }
  const ofStranger = await sql<{ id: string }[]>`select id from documents where account_id = ${stranger.accountId}`
  const inbound = await scriptOf(sql, { accountId, workerId, tagKeys: ['inbound_call_script'] })
  const queued = await scriptOf(sql, { accountId, workerId, status: 'queued' })
  const off = await scriptOf(sql, { accountId, workerId, isActive: false })
  const noones = await scriptOf(sql, { accountId, workerId: null })
  const person = await createPerson(sql, {
    accountId,
    request: { type: 'lead', firstName: 'No', lastName: 'Number' },
    newId,
    now: clock.now(),
  })
  const foreign = await createPerson(sql, {
    accountId: stranger.accountId,
    request: { type: 'lead', firstName: 'Of', lastName: 'Others', phoneNumber: number },
    newId,
    now: clock.now(),
  })
  const isScript = 'must be an outbound call script of the worker, active and completed'
  const problem = await problemOf(
    calls.plan(accountId, [
      good,
      { ...good, workerId: stranger.workerId },
      { workerId },
      { workerId, personId: person.id },
      { workerId, personId: foreign.id },
      { ...good, scheduledAt: clock.now() },
      { ...good, scriptIds: [ofStranger[0]!.id, inbound, queued, off, noones, 'no id'] },
      { ...good, scheduledAt: clock.now() + 400 * 24 * 3_600_000 },
    ]),
  )
  t.same(said(problem), {
    type: 'VALIDATION_FAILED',
    issues: [
      '1.workerId must be a worker of the account',
      '2.phoneNumber is missing',
      '3.phoneNumber is missing, and the person has no number',
      '4.personId must be a person of the account',
      '5.scheduledAt must be in the future',
      ...[0, 1, 2, 3, 4, 5].map((index) => `6.scriptIds.${index} ${isScript}`),
      '7.scheduledAt must be at most 366 days ahead',
    ],
  })
  t.match(problem.message, '7 calls cannot be placed')
})

test('an explicit number goes before that of the person, whose number may be refused', async (t) => {
  const { sql, clock, calls, accountId, workerId } = await open()
  const request = { type: 'customer', firstName: 'Eve', lastName: 'Stone', phoneNumber: '+14155550100' } as const
  const { id: personId } = await createPerson(sql, { accountId, request, newId, now: clock.now() })
  const toNumbers = async (wanted: Partial<WantedCall>) =>
    (await calls.plan(accountId, [{ workerId, ...wanted }])).calls.map(({ toNumber }) => toNumber)
  t.same(await toNumbers({ personId }), ['+14155550100'])
  t.same(await toNumbers({ personId, phoneNumber: number }), [number])
  t.same(await toNumbers({ customer: { type: 'lead', phoneNumber: '+49 30 200' } }), ['+4930200'])
  await changeAccountConfig(sql, accountId, { allowedDestinations: ['+49'] }, clock.now())
  t.match(said(await problemOf(toNumbers({ personId }))), { issues: [/^0\.personId /] })
})

test('a worker without a number to call from places no calls', async (t) => {
  const { sql, calls, accountId, workerId } = await open()
  await sql`update workers set outbound_phone_number = null where id = ${workerId}`
  const problem = await problemOf(calls.plan(accountId, [{ workerId, phoneNumber: number }]))
  t.same(said(problem).issues, ['0.workerId must have an outbound phone number to place calls'])
})

test('a call of a named person tells what was sent of them, and stores nothing', async (t) => {
  const { sql, clock, accountId, workerId, prepare, confirm } = await open()
  const request = { type: 'customer', firstName: 'Eve', lastName: 'Stone', phoneNumber: number } as const
  const person = await createPerson(sql, { accountId, request, newId, now: clock.now() })
  const customer = { type: 'customer', firstName: 'Evelyn', city: 'Berlin' } as const
  const { token } = await prepare({ workerId, personId: person.id, customer })
  const [call] = await confirm(token)
  t.match(call?.customer, { id: person.id, firstName: 'Evelyn', lastName: 'Stone', city: 'Berlin' })
  const [row] = await sql`select first_name, city from persons where id = ${person.id}`
  t.same(row, { firstName: 'Eve', city: null })
  t.equal((await findCall(sql, accountId, call!.id as never))?.personId, person.id)
})

test('a client has so many pending confirmations for a user, however many it asks for at once', async (t) => {
  const { sql, clock, holder, workerId, calls, accountId } = await open()
  const planned = await calls.plan(accountId, [{ workerId, phoneNumber: number }])
  const issue = (over: Partial<ConfirmationHolder> = {}) =>
    issueConfirmation(sql, {
      holder: { ...holder, ...over },
      clientName: 'Claude',
      kind: 'single',
      calls: planned.calls,
      summary: '',
      newId,
      now: clock.now(),
    })
  const settled = await Promise.allSettled(Array.from({ length: maxPendingConfirmations + 20 }, () => issue()))
  t.equal(settled.filter(({ status }) => status === 'fulfilled').length, maxPendingConfirmations)
  t.match(await problemOf(issue()), { type: 'CONFLICT', message: /as many as there may be/ })
  await issue({ clientId: 'client-2' })
  clock.advance(confirmationLifetime)
  await issue()
})

async function scriptOf(
  sql: Sql,
  over: {
    accountId: AccountId
    workerId: WorkerId | null
    tagKeys?: string[]
    status?: 'queued' | 'completed'
    isActive?: boolean
  },
): Promise<DocumentId> {
  const { accountId, workerId, tagKeys = ['outbound_call_script'], status = 'completed', isActive = true } = over
  const made = { accountId, title: 'Other', fileName: `${newId()}.txt`, content: 'Say no.', newId, now: Date.now() }
  return createDocument(sql, { ...made, status, tagKeys, isActive, workerIds: workerId === null ? [] : [workerId] })
}

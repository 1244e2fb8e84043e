/** Idempotency keys on a real database: the same key with the same request gives the same answer, once done. docs/contract/rest.md "Idempotency". */
import { createHash } from 'node:crypto'
import t, { test, type Test } from 'tap'
import { createPhoneCallCreator } from '../../actors/call/birth/create-phone-call.ts'
import { createWebCallCreator } from '../../actors/call/birth/create-web-call.ts'
import { idempotencyLifetime, type Once } from '../../model/idempotency.ts'
import { Problem } from '../../model/problem.ts'
import { answerOnce, forgetIdempotencyKeys } from '../../store/idempotency.ts'
import { box } from '../scenes/call-node.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { createCallingTenant } from '../scenes/telephony.ts'
import { newId } from '../scenes/tenant.ts'

const opened = openTestDatabase(t)

const onceOf = (key: string, request: unknown = 'first'): Once => ({
  key,
  fingerprint: createHash('sha256').update(JSON.stringify(request)).digest(),
})

async function open(_: Test) {
  const { sql } = await opened
  const clock = createHandClock()
  const engines = new Map([['embedded', createScriptedEngine()]] as const)
  const deps = { sql, clock, newId, box, engines, wakeDeliveries: () => {}, wakeDispatcher: () => {} }
  const tenant = await createCallingTenant(sql)
  const { accountId } = tenant
  let made = 0
  return {
    ...tenant,
    sql,
    clock,
    made: () => made,
    make: (once: Once | null, before: () => Promise<void> = async () => {}) =>
      answerOnce({ sql, box }, { accountId, once, now: clock.now() }, async () => {
        await before()
        return { number: ++made }
      }),
    keys: () => sql`select key, answer from idempotency_keys where account_id = ${accountId}`,
    countCalls: async () => (await sql`select from calls where account_id = ${accountId}`).length,
    createPhoneCall: createPhoneCallCreator(deps),
    createWebCall: createWebCallCreator(deps),
  }
}

test('a repeated creation gets the answer of the first one, token and all, and creates nothing', async (t) => {
  const { accountId, workerId, createWebCall, createPhoneCall, countCalls, sql, keys } = await open(t)
  const web = await createWebCall(accountId, { workerId }, onceOf('web'))
  t.same(await createWebCall(accountId, { workerId }, onceOf('web')), web)
  const phone = await createPhoneCall(accountId, { workerId, phoneNumber: '+4930200' }, onceOf('phone'))
  await sql`update workers set is_active = false where id = ${workerId}`
  const again = await createPhoneCall(accountId, { workerId, phoneNumber: '+4930200' }, onceOf('phone'))
  t.same(again, phone, 'also when it could not be created any more')
  t.equal(await countCalls(), 2)
  t.notOk(JSON.stringify(await keys()).includes(web.token), 'the token rests encrypted')
})

test('without a key every request is a new one', async (t) => {
  const { make, keys } = await open(t)
  t.same([await make(null), await make(null)], [{ number: 1 }, { number: 2 }])
  t.same(await keys(), [])
})

test('a key that was used for another request is refused with 409, in its own account only', async (t) => {
  const [one, other] = [await open(t), await open(t)]
  await one.make(onceOf('k'))
  await t.rejects(
    one.make(onceOf('k', 'second')),
    new Problem('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another request.'),
  )
  t.same(await other.make(onceOf('k', 'second')), { number: 1 })
})

test('who comes while the first request is under way waits for it and gets its answer', async (t) => {
  const { make, made, sql } = await open(t)
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = make(onceOf('k'), () => (begun.resolve(), gate.promise))
  await begun.promise
  const others = Promise.all([
    make(onceOf('k')),
    make(onceOf('k')),
    make(onceOf('k', 'other')).catch((error: unknown) => error),
  ])
  for (let waiting = 0; waiting < 3;) {
    const [row] = await sql<{ waiting: number }[]>`
      select count(*)::int as waiting from pg_locks where not granted and locktype in ('transactionid', 'tuple')`
    waiting = row?.waiting ?? 0
  }
  t.equal(made(), 0)
  gate.resolve()
  t.same(await first, { number: 1 })
  t.match(await others, [{ number: 1 }, { number: 1 }, { type: 'IDEMPOTENCY_KEY_REUSED' }])
  t.equal(made(), 1)
})

test('a refused creation leaves no key behind: its turn goes to whoever waits', async (t) => {
  const { accountId, workerId, createPhoneCall, sql, keys, make, made } = await open(t)
  await sql`update workers set is_active = false where id = ${workerId}`
  const create = () => createPhoneCall(accountId, { workerId }, onceOf('k'))
  await t.rejects(create(), /switched off/)
  t.same(await keys(), [])
  await sql`update workers set is_active = true where id = ${workerId}`
  t.match(await create(), { status: 'queued' })

  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = make(onceOf('refused'), () => (begun.resolve(), gate.promise))
  await begun.promise
  const second = make(onceOf('refused', 'another request'))
  gate.reject(new Problem('WORKER_INACTIVE', 'no'))
  await t.rejects(first, { message: 'no' })
  t.same([await second, made()], [{ number: 1 }, 1])
})

test('a key is forgotten after 24 hours, and not before', async (t) => {
  const { make, clock } = await open(t)
  await make(onceOf('k'))
  clock.advance(idempotencyLifetime - 1)
  t.same(await make(onceOf('k')), { number: 1 })
  clock.advance(1)
  t.same(await make(onceOf('k', 'second')), { number: 2 }, 'and may be used for another request')
  clock.advance(idempotencyLifetime - 1)
  t.same(await make(onceOf('k', 'second')), { number: 2 }, 'its time counts from there')
})

test('keys that nobody used again are deleted when they are asked to be', async (t) => {
  const { make, clock, keys, sql } = await open(t)
  await make(onceOf('old'))
  clock.advance(1000)
  await make(onceOf('new'))
  await forgetIdempotencyKeys(sql, clock.now(), 1_000)
  t.match(await keys(), [{ key: 'new' }])
  t.equal((await keys()).length, 1)
})

/** What is deleted is gone from every read at once; its many rows go by and by, whatever process ends meanwhile. */
import t, { test, type Test } from 'tap'
import { createRemovals, removalsEvery } from '../../actors/rounds/removals.ts'
import type { PersonId, SubscriptionId, TrunkId } from '../../model/ids.ts'
import { PhoneCallQuery } from '../../model/phone-call.ts'
import { listAccounts } from '../../store/accounts.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { findDatedCall } from '../../store/call-reports.ts'
import { findCall, listCalls } from '../../store/calls.ts'
import { claimDue } from '../../store/deliveries.ts'
import { closeAccount } from '../../store/delete-account.ts'
import { findDelivery, resendDelivery } from '../../store/delivery-log.ts'
import { createKeyAndCallLookup } from '../../store/key-and-call.ts'
import { deletePerson, findPerson } from '../../store/persons.ts'
import { claimRemoval, walkRemoval } from '../../store/removals.ts'
import type { Fragment, Sql } from '../../store/sql.ts'
import {
  createSubscription,
  deleteSubscription,
  findSubscription,
  findTarget,
  listSubscriptions,
} from '../../store/subscriptions.ts'
import { createTrunks } from '../../store/trunks.ts'
import { findWorker } from '../../store/workers.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { box } from '../scenes/call-node.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const calls = 1_250
const opened = fill()

async function fill() {
  const { sql } = await openTestDatabase(t)
  const clock = createHandClock()
  const tenant = await createTenant(sql)
  const { accountId, workerId } = tenant
  await sql`insert into trunks (id, account_id, name, direction) values ('trunk', ${accountId}, 'T', 'both'), ('other', ${accountId}, 'O', 'both')`
  await sql`
    insert into persons (id, account_id, type, first_name, last_name)
    values ('eva', ${accountId}, 'lead', 'Eva', 'M'), ('kim', ${accountId}, 'lead', 'Kim', 'M')`
  // Several of one moment, as calls are that arrive together.
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, outcome, snapshot, finished, created_at, person_id, trunk_id)
    select gen_random_uuid()::text, ${accountId}, ${workerId}, 's', 'outbound', 'sip_trunk', 'completed', 'completed', '{}', true, to_timestamp(n / 300),
      case n % 2 when 0 then 'eva' else 'kim' end, case when n % 5 = 0 then 'other' else 'trunk' end
    from generate_series(1, ${calls}::int) n`
  const request = { eventType: '*', url: 'https://example.com/hook' } as const
  const subscribe = async () =>
    (await createSubscription(sql, box, { accountId, request, newId, now: clock.now() })).id as SubscriptionId
  /** Until the test is over: rounds of one test must not take what another looks at. */
  const open = (t: Test) => {
    const rounds = createRemovals({ sql, clock, log: createQuietLog() })
    t.teardown(() => rounds.close())
    return rounds
  }
  return { sql, clock, ...tenant, subscribe, open }
}

const count = async (sql: Sql, where: Fragment) =>
  (await sql<{ count: number }[]>`select count(*)::int as count ${where}`)[0]?.count

test('a subscription that is deleted is in no read, nothing is sent to it, and its deliveries go in the background', async (t) => {
  const { sql, clock, accountId, subscribe, open } = await opened
  const [id, stays] = [await subscribe(), await subscribe()]
  await sql`
    insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, run_at, status)
    select gen_random_uuid()::text, account_id, s, id, 'call.ended', '{}', now(), to_timestamp(0), case when id < '8' then 'pending' else 'exhausted' end
    from calls, unnest(${[id, stays]}::text[]) s`
  const [exhausted] = await sql<{ id: never }[]>`
    select id from deliveries where subscription_id = ${id} and status = 'exhausted' order by id desc limit 1`
  t.equal(await deleteSubscription(sql, accountId, id, 0), true)
  const left = (await count(sql, sql`from deliveries where subscription_id = ${id}`)) ?? 0
  t.ok(left > 0 && left < calls, `a request takes no more time than it has: ${left} are left`)
  t.strictSame(
    (await listSubscriptions(sql, accountId, null, box)).map((one) => one.id),
    [stays],
  )
  t.equal(await findSubscription(sql, accountId, id, box), null)
  t.equal(await findTarget(sql, accountId, id), null)
  const key = { accountId, subscriptionId: id, id: exhausted?.id as never, now: clock.now() }
  t.equal(await findDelivery(sql, accountId, id, key.id), null)
  t.equal(await resendDelivery(sql, key), false)
  t.equal(await deleteSubscription(sql, accountId, id), false, 'there is none to delete')
  const bounds = { limit: 10_000, lease: 1, perSubscription: 10_000, rooms: new Map() }
  const claimed = await claimDue(sql, { nodeId: newId<'node'>(), now: clock.now(), ...bounds })
  t.ok(claimed.length > 0 && claimed.every(({ subscriptionId }) => subscriptionId === stays))
  await open(t).idle()
  t.equal(await count(sql, sql`from deliveries where subscription_id = ${id}`), 0)
  t.equal(await count(sql, sql`from webhook_subscriptions where id = ${id}`), 0)
  t.equal(await count(sql, sql`from deliveries where subscription_id = ${stays}`), calls)
})

test('calls of a person and of a trunk that are deleted tell of neither at once, and lose both links', async (t) => {
  const { sql, clock, accountId, open } = await opened
  const trunks = createTrunks({ sql, box, clock, newId, removalWithin: 0 })
  t.equal(await deletePerson(sql, accountId, 'eva' as PersonId, 0), true)
  t.equal(await trunks.remove(accountId, 'trunk' as TrunkId), true)
  t.equal(await findPerson(sql, accountId, 'eva' as PersonId), null)
  const linked = sql`from calls where person_id = 'eva' or trunk_id = 'trunk'`
  t.ok(((await count(sql, linked)) ?? 0) > calls / 2, 'most of it is still to be done')
  const page = await listCalls(sql, accountId, PhoneCallQuery.parse({ limit: 100 }))
  t.strictSame(new Set(page.map(({ personId }) => personId)), new Set([null, 'kim']))
  t.strictSame(new Set(page.map(({ trunkId }) => trunkId)), new Set([null, 'other']))
  const [some] = await sql<{ id: never }[]>`select id ${linked} limit 1`
  const call = await findCall(sql, accountId, some?.id as never)
  t.ok(call?.personId !== 'eva' && call?.trunkId !== 'trunk')
  const { key } = await createApiKey(sql, { accountId, name: 'reads', newId, now: clock.now() })
  const asked = await createKeyAndCallLookup(sql, clock.now)(key, some?.id as never)
  const told = await findDatedCall(sql, accountId, some?.id as never)
  for (const also of [asked?.call, told])
    t.match(also, { id: some?.id, personId: call?.personId, trunkId: call?.trunkId }, 'however it is read')
  await open(t).idle()
  t.equal(await count(sql, linked), 0)
  t.equal(await count(sql, sql`from calls where person_id = 'kim'`), calls / 2)
  t.equal(await count(sql, sql`from calls where trunk_id = 'other'`), calls / 5)
  t.equal(await count(sql, sql`from removals`), 0)
})

test('a removal whose process has ended is gone on with by another, from where it was', async (t) => {
  const { sql, clock, accountId, subscribe, open } = await opened
  const id = await subscribe()
  await sql`
    insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, status)
    select gen_random_uuid()::text, account_id, ${id}, id, 'call.ended', '{}', now(), 'delivered' from calls`
  t.equal(await deleteSubscription(sql, accountId, id, 0), true)
  const claimed = await claimRemoval(sql, clock.now(), 30_000)
  t.match(claimed, { kind: 'subscription', subjectId: id })
  t.equal(await claimRemoval(sql, clock.now(), 30_000), null, 'one at a time')
  const rounds = open(t)
  await rounds.idle()
  t.equal(await count(sql, sql`from webhook_subscriptions where id = ${id}`), 1)
  clock.advance(30_000 + removalsEvery)
  await rounds.idle()
  t.equal(await count(sql, sql`from webhook_subscriptions where id = ${id}`), 0)
  if (claimed) await walkRemoval(sql, claimed)
  t.equal(await count(sql, sql`from removals`), 0, 'and the first may come back')
})

test('an account that is deleted is closed at once, and all of it goes, whatever process ends meanwhile; that of another stays', async (t) => {
  const { sql, clock, open } = await opened
  const [tenant, other] = [await createTenant(sql, { slug: 'goes' }), await createTenant(sql, { slug: 'stays' })]
  const { accountId, workerId } = tenant
  const fillOf = async (account: string, worker: string, calls: number) => {
    await sql`
      insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, outcome, snapshot, finished, started_at, created_at)
      select gen_random_uuid()::text, ${account}, ${worker}, 's', 'inbound', 'webrtc', 'completed', 'completed', '{}', true, now(), to_timestamp(n / 300)
      from generate_series(1, ${calls}::int) n`
    await sql`
      insert into persons (id, account_id, type, first_name, last_name)
      select gen_random_uuid()::text, ${account}, 'lead', 'P', n::text from generate_series(1, ${calls}::int * 10) n`
    const request = { eventType: '*', url: 'https://example.com/hook' } as const
    const { id } = await createSubscription(sql, box, {
      accountId: account as never,
      request,
      newId,
      now: clock.now(),
    })
    await sql`
      insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, event_at, status)
      select gen_random_uuid()::text, account_id, ${id}, id, 'call.ended', '{}', now(), 'pending' from calls where account_id = ${account}`
  }
  await fillOf(accountId, workerId, 250)
  await fillOf(other.accountId, other.workerId, 2)
  await sql`update calls set finished = false where id = (select min(id) from calls where account_id = ${accountId})`
  await t.rejects(closeAccount(sql, accountId), { type: 'CONFLICT', message: /a call that is not over/ })
  t.notSame(await findWorker(sql, accountId, workerId), null, 'nothing of it was changed')
  await sql`update calls set finished = true where account_id = ${accountId}`
  const removal = await closeAccount(sql, accountId)
  t.match(removal, { kind: 'account', subjectId: accountId })
  t.equal(await findWorker(sql, accountId, workerId), null)
  t.notOk((await listAccounts(sql)).some(({ id }) => id === accountId))
  if (removal) await walkRemoval(sql, removal, 0)
  t.equal(await count(sql, sql`from calls where account_id = ${accountId}`), 150, 'a part of it, then its process dies')
  const rounds = open(t)
  clock.advance(removalsEvery)
  await rounds.idle()
  for (const table of ['accounts', 'calls', 'persons', 'deliveries', 'workers', 'webhook_subscriptions', 'removals']) {
    const column = table === 'accounts' ? 'id' : 'account_id'
    t.equal(await count(sql, sql`from ${sql(table)} where ${sql(column)} = ${accountId}`), 0, table)
  }
  t.equal(
    await count(sql, sql`from recording_removals where starts_with(key, ${accountId})`),
    250,
    'what the store still has is ordered to go',
  )
  t.equal(await count(sql, sql`from persons where account_id = ${other.accountId}`), 20)
  t.equal(await count(sql, sql`from deliveries where account_id = ${other.accountId}`), 2)
})

/**
 * Owns what simulated worlds stand on, one after the other: a Postgres of their own with the sessions that they share, whose clock is the world's, the one
 * account that calls, and a reset that leaves no trace of the world before, not even in the order of rows on disk.
 */
import { createTelephony, type TelephonyDeps } from '../../actors/telephony/telephony.ts'
import type { AccountId, NewId, TrunkId, WorkerId } from '../../model/ids.ts'
import type { Telephony, TrunkAccess } from '../../model/telephony.ts'
import { createAccount } from '../../store/accounts.ts'
import { createDocument } from '../../store/documents.ts'
import { connect, type DatabaseServer, type Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createWorker } from '../../store/workers.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { beginning } from './loop.ts'
import type { Plan } from './plan.ts'
import { openSessions, type Sessions } from './simulated-database.ts'
import { box } from './simulated-node.ts'

export type Tenant = { readonly accountId: AccountId; readonly workerId: WorkerId; readonly trunk: TrunkAccess }

export type Stage = {
  readonly sql: Sql
  readonly sessions: Sessions
  reset(limits: Plan['limits']): Promise<Tenant>
  /** Whose limits are broken at this moment. */
  overbooked(limits: Plan['limits']): Promise<string[]>
  /** No call, job or delivery waits for anything. */
  isQuiet(): Promise<boolean>
  whatIsLeft(): Promise<string>
  telephonyOf(deps: Pick<TelephonyDeps, 'sql' | 'bus' | 'log' | 'clock' | 'newId'>): Telephony
  close(): Promise<void>
}

const connections = 40

/** Written by worlds, those that refer to others first; what they read only stays. */
const written = [
  'sim.writers',
  'delivery_attempts',
  'deliveries',
  'jobs',
  'call_events',
  'transcript_turns',
  'call_words',
  'web_sessions',
  'idempotency_keys',
  'call_refusals',
  'calls',
  'persons',
  'trunk_states',
  'nodes',
]
/** Worlds, after which room is made where the rows of former ones were. Emptying tables at once would have all plans made anew. */
const tidiesEvery = 25

export async function openStage(): Promise<Stage> {
  const closing: (() => Promise<void>)[] = []
  const { server } = await openTestDatabase({ teardown: (close) => closing.push(close) })
  const sql = connect({ server, applicationName: 'simulation', maxConnections: 2 })
  await useWorldClock(sql)
  const base = openPool(server)
  const sessions = await openSessions(base, sql, connections)
  const tenant = await createTenant(sql)
  let worlds = 0
  const of = { accountId: tenant.accountId, workerId: tenant.workerId }
  return {
    sql,
    sessions,
    async reset({ account, worker, trunk }) {
      await sql.unsafe(written.map((table) => `delete from ${table};`).join(''))
      if (++worlds % tidiesEvery === 0) for (const table of written) await sql.unsafe(`vacuum ${table}`)
      await sql`update accounts set config = ${sql.json({ maxConcurrentCalls: account })} where id = ${of.accountId}`
      await sql`update workers set max_concurrent_calls = ${worker} where id = ${of.workerId}`
      const settings = { ...tenant.trunk.settings, ...(trunk !== null && { maxConcurrentCalls: trunk }) }
      await sql`update trunks set config = ${sql.json(settings as never)} where id = ${tenant.trunk.id}`
      await sql`update webhook_subscriptions set enabled = true, failing_since = null, disabled_reason = null`
      return { ...tenant, trunk: { ...tenant.trunk, settings } }
    },
    async overbooked(limits) {
      const [row] = await sql<{ account: number; trunk: number }[]>`
        select count(*)::int as account,
          count(*) filter (where trunk_id = ${tenant.trunk.id})::int as trunk
        from calls where outcome is null
          and (direction = 'inbound' or transport = 'webrtc' or slot_granted_at is not null)`
      const { account = 0, trunk = 0 } = row ?? {}
      return [
        ...(account > limits.account ? [`${account} calls of an account that may have ${limits.account}`] : []),
        ...(account > (limits.worker ?? Infinity)
          ? [`${account} calls of a worker that may have ${limits.worker}`]
          : []),
        ...(trunk > (limits.trunk ?? Infinity) ? [`${trunk} calls of a trunk that may have ${limits.trunk}`] : []),
      ]
    },
    async isQuiet() {
      const [row] = await sql`
        select where exists (select from calls where not finished) or exists (select from jobs where kind <> 'expire_token')
          or exists (select from deliveries where status = 'pending')`
      return row === undefined
    },
    async whatIsLeft() {
      const calls =
        await sql`select id, owner, epoch, progress, transport, direction, snapshot->>'value' as state from calls where not finished`
      const jobs = await sql`select call_id, kind, attempts from jobs`
      const deliveries =
        await sql`select event_type, attempts, run_at, claimed_by from deliveries where status = 'pending'`
      return JSON.stringify({ calls, jobs, deliveries })
    },
    telephonyOf: (deps) =>
      createTelephony({
        ...deps,
        box,
        nodeId: deps.newId<'node'>(),
        router: { route: () => Promise.resolve(false) },
        refusalOf: () => Promise.resolve(null),
        wakeDeliveries: () => undefined,
      }),
    async close() {
      await Promise.all([sql.end({ timeout: 1 }), base.end({ timeout: 0 })])
      for (const close of closing.toReversed()) await close()
    },
  }
}

const openPool = (server: DatabaseServer): Sql =>
  connect({ server, applicationName: 'simulated world', maxConnections: connections, lasting: true })

/** Sessions that look here first take it for Postgres' own. */
async function useWorldClock(sql: Sql): Promise<void> {
  await sql`create schema sim`
  for (const name of ['now', 'clock_timestamp'])
    await sql.unsafe(`
      create function sim.${name}() returns timestamptz language sql stable
      return current_setting('sim.now')::timestamptz`)
  await sql`create table sim.writers (call_id text, seq integer, epoch integer, writer text)`
  await sql.unsafe(`
    create function sim.note_writer() returns trigger language plpgsql as $$ begin
      insert into sim.writers values (new.call_id, new.seq, new.epoch, current_setting('sim.writer'));
      return null;
    end $$`)
  await sql`create trigger note_writer after insert on call_events for each row execute function sim.note_writer()`
  await sql`alter system set autovacuum = off`
  await sql`alter system set synchronous_commit = off`
  await sql`select pg_reload_conf()`
}

async function createTenant(sql: Sql): Promise<Tenant> {
  let made = 0
  const newId = (() => `00000000-0000-7000-8000-${(++made).toString(16).padStart(12, '0')}`) as NewId
  const now = beginning
  const account = await createAccount(sql, { name: 'Acme', slug: 'acme', config: {}, newId, now })
  const accountId = account.id as AccountId
  const worker = await createWorker(sql, {
    accountId,
    name: 'Ada',
    language: 'en',
    isActive: true,
    config: {},
    newId,
    now,
  })
  const workerId = worker.id as WorkerId
  await sql`update workers set outbound_phone_number = '+4930100' where id = ${workerId}`
  await createDocument(sql, {
    accountId,
    title: 'Script',
    fileName: 'script.txt',
    content: 'Say hello.',
    status: 'completed',
    tagKeys: ['inbound_call_script', 'outbound_call_script'],
    workerIds: [workerId],
    newId,
    now,
  })
  const trunkId = newId<'trunk'>()
  const settings = { gateways: [{ host: '127.0.0.1' }] }
  await sql`
    insert into trunks (id, account_id, name, direction, is_active, config)
    values (${trunkId}, ${accountId}, 'Carrier', 'both', true, ${sql.json(settings)})`
  await sql`insert into trunk_workers (account_id, trunk_id, worker_id) values (${accountId}, ${trunkId}, ${workerId})`
  for (const [eventType, url] of [
    ['*', 'https://all.example/hook'],
    ['call.ended', 'https://ends.example/hook'],
    ['call.worker_request', 'https://asks.example/hook'],
  ] as const)
    await createSubscription(sql, box, { accountId, request: { eventType, url }, newId, now })
  const trunk = { id: trunkId as TrunkId, accountId, name: 'Carrier', settings, password: null }
  return { accountId, workerId, trunk }
}

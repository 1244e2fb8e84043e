/** Which commits do not wait for the disk. */
import t, { test } from 'tap'
import { createApiKey, createKeyLookup } from '../../store/api-keys.ts'
import { claimJobs, finishJobs, insertJob, retryJob } from '../../store/jobs.ts'
import { renewLease } from '../../store/nodes.ts'
import type { Sql } from '../../store/sql.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const opened = openTestDatabase(t)

/** What the transactions that write these tables have said of their commits, in order. */
async function watch(sql: Sql, table: string): Promise<() => Promise<string[]>> {
  await sql.unsafe(`
    create table commits_of_${table} (seq int generated always as identity, setting text);
    create function tell_${table}() returns trigger language plpgsql as $$
      begin insert into commits_of_${table} (setting) values (current_setting('synchronous_commit')); return null; end $$;
    create trigger tell after insert or update or delete on ${table} for each statement execute function tell_${table}();`)
  return async () =>
    (await sql.unsafe(`select setting from commits_of_${table} order by seq`)).map((row) => String(row['setting']))
}

test('a lease is renewed without waiting for the disk, and the connection waits again afterwards', async (t) => {
  const { sql } = await opened
  const told = await watch(sql, 'nodes')
  const nodeId = newId<'node'>()
  await renewLease(sql, nodeId, 5_000)
  await renewLease(sql, nodeId, 5_000)
  t.same([...new Set(await told())], ['off'])
  const settings = await Promise.all(
    Array.from({ length: 20 }, async () => (await sql`select current_setting('synchronous_commit') as setting`)[0]),
  )
  t.same([...new Set(settings.map((row) => row?.['setting'] as string))], ['on'])
  const [row] = await sql`select lease_until > clock_timestamp() as is_alive from nodes where id = ${nodeId}`
  t.equal(row?.['isAlive'], true)
})

test('when a key was last used is written without waiting for the disk', async (t) => {
  const { sql } = await opened
  const { accountId } = await createTenant(sql, { slug: newId() })
  const { key } = await createApiKey(sql, { accountId, name: 'k', newId, now: 1_000 })
  const told = await watch(sql, 'api_keys')
  t.match(await createKeyLookup(sql, () => 2_000)(key), { accountId })
  while ((await told()).length === 0) await sql`select 1`
  t.same(await told(), ['off'])
  t.match(await sql`select last_used_at from api_keys where account_id = ${accountId}`, [{ lastUsedAt: 2_000 }])
})

test('the claim of a job and its end are written without waiting for the disk, that it is to be tried again waits', async (t) => {
  const { sql } = await opened
  const { accountId, workerId } = await createTenant(sql, { slug: newId() })
  const callId = newId<'call'>()
  const call = { id: callId, accountId, workerId, sessionId: 's', direction: 'inbound', transport: 'webrtc' }
  await sql`insert into calls ${sql({ ...call, progress: 'ringing', snapshot: sql.json({}), createdAt: 1_000 })}`
  const job = { id: newId(), accountId, callId, kind: 'post_process', runAt: 1_000 } as const
  await sql.begin((tx) => insertJob(tx, job))
  const told = await watch(sql, 'jobs')
  t.match(await claimJobs(sql, newId<'node'>(), 2_000, 1_000, 5), [{ id: job.id }])
  t.same(await told(), ['off'])
  await retryJob(sql, job.id, 1_000)
  t.same(await told(), ['off', 'on'])
  t.same(await finishJobs(sql, [job.id]), new Set([job.id]))
  t.same(await told(), ['off', 'on', 'off'])
})

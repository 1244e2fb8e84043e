/**
 * Owns what becomes of a worker that is deleted. Its calls are history and keep it: the row stays, and nothing but them finds it. Its numbers are free,
 * trunks, documents and persons lose their link. Subscriptions of the worker alone are told what is still due to them, then they go as well.
 * docs/contract/rest.md "Workers".
 */
import type { AccountId, SubscriptionId, WorkerId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { countUnfinished } from './call-capacity.ts'
import type { Sql, Transaction } from './sql.ts'
import { deleteSubscription } from './subscriptions.ts'

/** False: the account has no such worker. Throws Problem CONFLICT while a call of it runs or waits. */
export async function deleteWorker(
  sql: Sql,
  { accountId, workerId, now }: { accountId: AccountId; workerId: WorkerId; now: number },
): Promise<boolean> {
  const deleted = await sql.begin(async (tx) => {
    if (!(await lockWorker(tx, accountId, workerId))) return false
    await requireIdle(tx, accountId, workerId)
    await tx`
      update workers set deleted_at = ${now}, updated_at = ${now}, is_active = false,
        inbound_phone_number = null, outbound_phone_number = null
      where account_id = ${accountId} and id = ${workerId}`
    await unlinkTrunks(tx, accountId, workerId)
    return true
  })
  // A deletion that was broken off is gone on with by the next.
  const isDeleted = sql`exists (select from workers where id = ${workerId} and deleted_at is not null)`
  await sql`
    update persons set worker_id = null where account_id = ${accountId} and worker_id = ${workerId} and ${isDeleted}`
  await sql`delete from document_workers where account_id = ${accountId} and worker_id = ${workerId} and ${isDeleted}`
  return deleted
}

/**
 * Whoever writes a call holds the worker by a key share lock until it is committed (holdWorker): of a deletion and a call at the same moment the later
 * one sees the other. Trunks before workers, as by who changes a trunk.
 */
async function lockWorker(tx: Transaction, accountId: AccountId, workerId: WorkerId): Promise<boolean> {
  await tx`
    select from trunks where account_id = ${accountId} and (
      exists (select from trunk_workers where trunk_id = trunks.id and worker_id = ${workerId})
      or exists (select from trunk_extensions where trunk_id = trunks.id and worker_id = ${workerId}))
    order by id for no key update`
  const [worker] = await tx`
    select from workers where account_id = ${accountId} and id = ${workerId} and deleted_at is null for update`
  return worker !== undefined
}

async function requireIdle(tx: Transaction, accountId: AccountId, workerId: WorkerId): Promise<void> {
  const unfinished = await countUnfinished(tx, accountId, workerId)
  if (unfinished === 0) return
  const calls = unfinished === 1 ? 'a call that is' : `${unfinished} calls that are`
  throw new Problem('CONFLICT', `The worker has ${calls} not over: hang up what runs, cancel what waits, or wait.`)
}

/** Extensions that name it go: a line of its own is not for another worker. */
async function unlinkTrunks(tx: Transaction, accountId: AccountId, workerId: WorkerId): Promise<void> {
  await tx`delete from trunk_workers where account_id = ${accountId} and worker_id = ${workerId}`
  const extensions = await tx<{ trunkId: string }[]>`
    delete from trunk_extensions where account_id = ${accountId} and worker_id = ${workerId} returning trunk_id`
  if (extensions.length === 0) return
  await tx`
    update trunks set config = jsonb_set(config, '{extensions}', coalesce((
      select jsonb_agg(extension) from jsonb_array_elements(config->'extensions') extension
      where extension->>'workerId' is distinct from ${workerId}), '[]'))
    where account_id = ${accountId} and id = any(${extensions.map(({ trunkId }) => trunkId)})`
}

/** Of workers deleted before then; how many. Nothing of their calls is due any more: no event is tried again for so long. */
export async function forgetSubscriptionsOfDeleted(sql: Sql, before: number, limit: number): Promise<number> {
  const rows = await sql<{ id: SubscriptionId; accountId: AccountId }[]>`
    select webhook_subscriptions.id, webhook_subscriptions.account_id from workers
    join webhook_subscriptions on webhook_subscriptions.worker_id = workers.id
    where workers.deleted_at < ${before} and webhook_subscriptions.deleted_at is null order by workers.deleted_at limit ${limit}`
  for (const { id, accountId } of rows) await deleteSubscription(sql, accountId, id)
  return rows.length
}

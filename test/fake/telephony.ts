/** Owns what a tenant needs to place calls: a number to call from, a trunk to dial out on. */
import type { TrunkId, WorkerId } from '../../model/ids.ts'
import type { Sql } from '../../store/sql.ts'
import { createTenant, newId, type Tenant } from './tenant.ts'

export type TrunkOptions = {
  readonly direction?: 'inbound' | 'outbound' | 'both'
  readonly isActive?: boolean
  readonly gateways?: readonly { readonly host: string }[]
  readonly workerIds?: readonly WorkerId[]
}

export async function addTrunk(sql: Sql, tenant: Tenant, options: TrunkOptions = {}): Promise<TrunkId> {
  const { direction = 'both', isActive = true, gateways = [{ host: '127.0.0.1' }] } = options
  const { workerIds = [tenant.workerId] } = options
  const [id, { accountId }] = [newId<'trunk'>(), tenant]
  await sql`
    insert into trunks (id, account_id, name, direction, is_active, config)
    values (${id}, ${accountId}, 'Carrier', ${direction}, ${isActive}, ${sql.json({ gateways } as never)})`
  for (const workerId of workerIds)
    await sql`insert into trunk_workers (account_id, trunk_id, worker_id) values (${accountId}, ${id}, ${workerId})`
  return id
}

/** A tenant whose worker may call, with number, script and trunk. */
export async function createCallingTenant(
  sql: Sql,
  options: { maxConcurrentCalls?: number; workerLimit?: number | null } = {},
): Promise<Tenant> {
  const { maxConcurrentCalls, workerLimit = null } = options
  const limit = maxConcurrentCalls === undefined ? {} : { maxConcurrentCalls }
  const tenant = await createTenant(sql, { slug: newId(), script: 'Say hello.', ...limit })
  await sql`
    update workers set outbound_phone_number = '+4930100', max_concurrent_calls = ${workerLimit}
    where id = ${tenant.workerId}`
  await addTrunk(sql, tenant)
  return tenant
}

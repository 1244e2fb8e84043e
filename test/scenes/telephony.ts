/** Owns telephony in tests: the telephony of a node, and what a tenant needs to place calls: a number to call from, a trunk to dial out on. */
import { createDestinationPolicy } from '../../actors/telephony/destination-policy.ts'
import { createTelephony, type TelephonyDeps } from '../../actors/telephony/telephony.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { systemClock } from '../../app/clock.ts'
import type { TrunkId, WorkerId } from '../../model/ids.ts'
import type { TrunkSettings } from '../../model/trunk.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { replaceTrunkAddresses } from '../../store/trunk-addresses.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createTenant, newId, type Tenant } from './tenant.ts'

export type TrunkOptions = TrunkSettings & {
  readonly name?: string
  readonly direction?: 'inbound' | 'outbound' | 'both'
  readonly isActive?: boolean
  readonly password?: string
  readonly workerIds?: readonly WorkerId[]
}

export const clearBox: SecretBox = { seal: (text) => `sealed ${text}`, open: (sealed) => sealed.slice(7) }

/** Of a node of its own, which takes every call; unless `parts` say otherwise. */
export const openTelephony = (
  { sql, clock }: Pick<TelephonyDeps, 'sql' | 'clock'>,
  parts: Partial<TelephonyDeps> = {},
) =>
  createTelephony({
    sql,
    bus: createLocalBus({ log: createQuietLog(), clock: systemClock }),
    clock,
    log: createQuietLog(),
    box: clearBox,
    newId,
    nodeId: newId<'node'>(),
    router: { route: async () => true },
    refusalOf: createDestinationPolicy({ sql, clock }),
    wakeDeliveries: () => undefined,
    ...parts,
  })

export async function addTrunk(sql: Sql, tenant: Tenant, options: TrunkOptions = {}): Promise<TrunkId> {
  const { name = 'Carrier', direction = 'both', isActive = true, password = null } = options
  const { workerIds = [tenant.workerId], ...given } = options
  const { name: _, direction: __, isActive: ___, password: ____, ...settings } = given
  const [id, { accountId }] = [newId<'trunk'>(), tenant]
  const config: TrunkSettings = { gateways: [{ host: '127.0.0.1' }], ...settings }
  const sealed = password === null ? null : clearBox.seal(password, '')
  await sql.begin(async (tx) => {
    await tx`
      insert into trunks (id, account_id, name, direction, is_active, config, password)
      values (${id}, ${accountId}, ${name}, ${direction}, ${isActive}, ${tx.json(config)}, ${sealed})`
    for (const workerId of workerIds)
      await tx`insert into trunk_workers (account_id, trunk_id, worker_id) values (${accountId}, ${id}, ${workerId})`
    await replaceTrunkAddresses(tx, accountId, id, config)
  })
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

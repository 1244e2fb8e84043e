/** Owns the rows of workers (the specification's voice agents). */
import type { AccountId, NewId, WorkerId } from '../model/ids.ts'
import type { WorkerFacts } from '../model/worker-resource.ts'
import type { WorkerConfig } from '../model/worker.ts'
import type { Sql, Transaction } from './sql.ts'

export type Worker = WorkerFacts & {
  readonly isActive: boolean
  readonly createdAt: number
  readonly updatedAt: number
}

export type NewWorker = {
  readonly accountId: AccountId
  readonly name: string
  /** BCP 47. */
  readonly language: string
  readonly inboundPhoneNumber?: string | null | undefined
  readonly outboundPhoneNumber?: string | null | undefined
  readonly isActive?: boolean | undefined
  readonly config?: WorkerConfig | undefined
  readonly newId: NewId
  readonly now: number
}

export async function createWorker(sql: Sql | Transaction, worker: NewWorker): Promise<Worker> {
  const { accountId, name, language, isActive = true, config = {}, newId, now } = worker
  const { inboundPhoneNumber = null, outboundPhoneNumber = null } = worker
  const row = { accountId, name, language, inboundPhoneNumber, outboundPhoneNumber, isActive }
  const id = newId<'worker'>()
  await sql`
    insert into workers ${sql({ id, ...row, config: sql.json(config as never), createdAt: now, updatedAt: now })}`
  return { id, ...row, config, createdAt: now, updatedAt: now }
}

/** In the order they were made. */
export function listWorkers(sql: Sql | Transaction, accountId: AccountId): Promise<Worker[]> {
  return sql<Worker[]>`
    select id, account_id, name, language, inbound_phone_number, outbound_phone_number, is_active, config, created_at, updated_at
    from workers where account_id = ${accountId} order by created_at, id`
}

export async function findWorker(
  sql: Sql | Transaction,
  accountId: AccountId,
  workerId: WorkerId,
): Promise<Worker | null> {
  const [row] = await sql<Worker[]>`
    select id, account_id, name, language, inbound_phone_number, outbound_phone_number, is_active, config, created_at, updated_at
    from workers where account_id = ${accountId} and id = ${workerId}`
  return row ?? null
}

/** Owns the rows of workers, the configured voice agents. */
import { toId, type AccountId, type NewId, type WorkerId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { WorkerChange, WorkerFacts, WorkerType } from '../model/worker-resource.ts'
import type { WorkerConfig } from '../model/worker.ts'
import { settleHomeCountry } from './accounts.ts'
import { conflictOf, requireNotOthers, takeNumber, type NumberRule } from './account-numbers.ts'
import { askForReadingOf } from './document-jobs.ts'
import { givenColumns } from './given-columns.ts'
import { requireRoom } from './room.ts'
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
  readonly type?: WorkerType | null | undefined
  readonly maxConcurrentCalls?: number | null | undefined
  readonly inboundPhoneNumber?: string | null | undefined
  readonly outboundPhoneNumber?: string | null | undefined
  readonly isActive?: boolean | undefined
  readonly config?: WorkerConfig | undefined
  /** Absent: the operator's word. */
  readonly numberRule?: NumberRule | undefined
  readonly newId: NewId
  readonly now: number
}

export type ChangedWorker = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  readonly change: WorkerChange
  /** Absent: the operator's word. */
  readonly numberRule?: NumberRule | undefined
  readonly now: number
}

/** What one answer names at most. */
const maxIssues = 50

type Numbers = Pick<WorkerChange, 'inboundPhoneNumber' | 'outboundPhoneNumber'>
type NumberWish = {
  readonly accountId: AccountId
  readonly numbers: Numbers
  readonly numberRule?: NumberRule | undefined
}

/**
 * Writes a worker together with its right to its numbers: a call comes to whoever has the number, and is called back where it came from. Throws
 * Problem CONFLICT for one of another account.
 */
async function withNumbers<Written>(
  sql: Sql | Transaction,
  { accountId, numbers, numberRule = 'assign' }: NumberWish,
  write: (tx: Sql | Transaction) => Promise<Written>,
): Promise<Written> {
  const { inboundPhoneNumber: number, outboundPhoneNumber: shown } = numbers
  if (shown) await requireNotOthers(sql, accountId, shown)
  const first = number ?? shown
  if (!first) return write(sql)
  const taking = async (tx: Transaction): Promise<Written> => {
    if (number) await takeNumber(tx, accountId, { number, rule: numberRule })
    const written = await write(tx)
    await settleHomeCountry(tx, accountId, first)
    return written
  }
  const taken = 'begin' in sql ? sql.begin(taking) : taking(sql)
  return taken.catch((error: unknown) => conflictOf(number, error)) as Promise<Written>
}

export async function createWorker(sql: Sql | Transaction, worker: NewWorker): Promise<Worker> {
  const { accountId, name, language, isActive = true, config = {}, newId, now } = worker
  await requireRoom(sql, accountId, 'workers')
  const { type = null, inboundPhoneNumber = null, outboundPhoneNumber = null, maxConcurrentCalls = null } = worker
  const row = { accountId, name, language, inboundPhoneNumber, outboundPhoneNumber, isActive, maxConcurrentCalls }
  const id = newId<'worker'>()
  const { numberRule } = worker
  await withNumbers(
    sql,
    { accountId, numbers: { inboundPhoneNumber, outboundPhoneNumber }, numberRule },
    (tx) => tx`
      insert into workers ${tx({
        ...row,
        id,
        type: type && tx.json(type),
        config: tx.json(config as never),
        createdAt: now,
        updatedAt: now,
      })}`,
  )
  return { id, ...row, type, config, createdAt: now, updatedAt: now }
}

/** In the order they were made. */
export function listWorkers(sql: Sql | Transaction, accountId: AccountId): Promise<Worker[]> {
  return sql<Worker[]>`
    select id, account_id, name, language, type, inbound_phone_number, outbound_phone_number, is_active, max_concurrent_calls,
      config, created_at, updated_at
    from workers where account_id = ${accountId} and deleted_at is null order by created_at, id`
}

export async function findWorker(
  sql: Sql | Transaction,
  accountId: AccountId,
  workerId: WorkerId,
): Promise<Worker | null> {
  const [row] = await sql<Worker[]>`
    select id, account_id, name, language, type, inbound_phone_number, outbound_phone_number, is_active, max_concurrent_calls,
      config, created_at, updated_at
    from workers where account_id = ${accountId} and id = ${workerId} and deleted_at is null`
  return row ?? null
}

/** The same, of a worker that nobody deletes until the transaction ends: a call that is written in it has one. */
export async function holdWorker(tx: Transaction, accountId: AccountId, workerId: WorkerId): Promise<Worker | null> {
  const [row] = await tx<Worker[]>`
    select id, account_id, name, language, type, inbound_phone_number, outbound_phone_number, is_active, max_concurrent_calls,
      config, created_at, updated_at
    from workers where account_id = ${accountId} and id = ${workerId} and deleted_at is null for key share`
  return row ?? null
}

/** Is the number one that callers of the account call, or are shown? */
export async function hasNumber(sql: Sql | Transaction, accountId: AccountId, number: string): Promise<boolean> {
  const [worker] = await sql`
    select from workers
    where account_id = ${accountId} and ${number} in (inbound_phone_number, outbound_phone_number) limit 1`
  return worker !== undefined
}

/** Config is merged key by key of its top level, null takes a key away. Null: the account has no such worker. */
export async function changeWorker(
  sql: Sql | Transaction,
  { accountId, workerId, change, numberRule, now }: ChangedWorker,
): Promise<Worker | null> {
  const { config = {}, type, ...plain } = change
  // A number that nobody takes in the end must not be claimed.
  if (change.inboundPhoneNumber && !(await findWorker(sql, accountId, workerId))) return null
  const columns = givenColumns({ ...plain, type: type && sql.json(type), updatedAt: now })
  const removed = Object.keys(config).filter((key) => config[key as keyof typeof config] === null)
  const [row] = await withNumbers(
    sql,
    { accountId, numbers: change, numberRule },
    (tx) => tx<Worker[]>`
      update workers set ${tx(columns)}, config = (config || ${tx.json(config as never)}::jsonb) - ${removed}::text[]
      where account_id = ${accountId} and id = ${workerId} and deleted_at is null
      returning id, account_id, name, language, type, inbound_phone_number, outbound_phone_number, is_active,
        max_concurrent_calls, config, created_at, updated_at`,
  )
  if (row && change.language !== undefined) await askForReadingOf(sql, accountId, workerId, now)
  return row ?? null
}

/** An id as somebody sent it, and where it stood in what was sent. */
export type NamedWorker = { readonly path: string; readonly id: string }

/**
 * Each worker once. Nobody deletes them until the transaction ends: what is linked in it loses its link. `most`: of issues. Throws Problem
 * VALIDATION_FAILED with the path of every id that is no worker of the account.
 */
export async function requireWorkers(
  sql: Sql | Transaction,
  accountId: AccountId,
  named: readonly NamedWorker[],
  most = maxIssues,
): Promise<WorkerId[]> {
  const ids = [...new Set(named.flatMap(({ id }) => toId<'worker'>(id) ?? []))]
  if (named.length === 0) return []
  const rows = await sql<{ id: WorkerId }[]>`
    select id from workers where account_id = ${accountId} and id = any(${ids}) and deleted_at is null
    order by id for key share`
  const known = new Set(rows.map(({ id }) => id))
  const unknown = named.filter(({ id }) => !known.has(toId<'worker'>(id) as WorkerId))
  if (unknown.length === 0) return ids
  const issues = unknown.slice(0, most).map(({ path }) => ({ path, message: 'must be a worker of the account' }))
  throw new Problem('VALIDATION_FAILED', 'Some workers do not exist; see issues.', issues)
}

/** As a field `workerIds` names them. */
export const namedWorkers = (workerIds: readonly string[]): NamedWorker[] =>
  workerIds.map((id, index) => ({ path: `workerIds.${index}`, id }))

/** Owns what of workers is kept in mind for the time that the database is away. */
import type { AccountId, WorkerId } from '../model/ids.ts'
import type { WorkerConfig } from '../model/worker.ts'
import { defaultLimit } from './call-capacity.ts'
import { workerConfigOf } from './call-rows.ts'
import { findCallScripts, keyOfScriptQuestion } from './documents.ts'
import type { Sql } from './sql.ts'
import { findMatchingOfWorkers, type MatchingSubscription } from './subscriptions.ts'

export type KnownWorkerRow = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  /** BCP 47. */
  readonly language: string
  /** With what the account says for all of its workers. */
  readonly config: WorkerConfig
  /** Calls at once. */
  readonly accountLimit: number
  readonly workerLimit: number | null
  /** Of its inbound calls; null: it has none. */
  readonly script: string | null
  /** Who is asked before its calls begin; null: nobody. */
  readonly hook: MatchingSubscription | null
}

const scriptsTogether = 10

/** Of those that are active. */
export async function readKnownWorkers(
  sql: Sql,
  asked: readonly Pick<KnownWorkerRow, 'accountId' | 'workerId'>[],
): Promise<KnownWorkerRow[]> {
  const rows = await sql<Omit<KnownWorkerRow, 'script' | 'hook'>[]>`
    select workers.account_id, workers.id as worker_id, language, ${workerConfigOf(sql)} as config,
      coalesce((accounts.config->>'maxConcurrentCalls')::int, ${defaultLimit}::int) as account_limit,
      max_concurrent_calls as worker_limit
    from workers join accounts on accounts.id = workers.account_id
    where workers.id = any(${asked.map(({ workerId }) => workerId)}::text[]) and is_active and workers.deleted_at is null`
  const hooks = await findMatchingOfWorkers(
    sql,
    rows.map(({ workerId }) => workerId),
    'call.worker_request',
  )
  const known: KnownWorkerRow[] = []
  for (let from = 0; from < rows.length; from += scriptsTogether) {
    const some = rows.slice(from, from + scriptsTogether)
    const questionOf = ({ accountId, workerId }: (typeof some)[number]) =>
      ({ accountId, workerId, direction: 'inbound' }) as const
    const scripts = await findCallScripts(sql, some.map(questionOf))
    for (const row of some) {
      const [hook = null] = hooks.get(row.workerId) ?? []
      known.push({ ...row, script: scripts.get(keyOfScriptQuestion(questionOf(row))) ?? null, hook })
    }
  }
  return known
}

/** Owns which worker a new call may have. */
import { toId, type AccountId } from '../../../model/ids.ts'
import { Problem } from '../../../model/problem.ts'
import type { Transaction } from '../../../store/sql.ts'
import { holdWorker, type Worker } from '../../../store/workers.ts'

/** Throws Problem: VALIDATION_FAILED for a worker the account has not got, WORKER_INACTIVE for one that is switched off. */
export async function findCallableWorker(tx: Transaction, accountId: AccountId, id: string): Promise<Worker> {
  const workerId = toId<'worker'>(id)
  const worker = workerId && (await holdWorker(tx, accountId, workerId))
  if (!worker)
    throw new Problem('VALIDATION_FAILED', 'The worker does not exist.', [
      { path: 'workerId', message: 'must be a worker of the account' },
    ])
  if (!worker.isActive) throw new Problem('WORKER_INACTIVE', 'the worker is switched off')
  return worker
}

/** Owns an account with one worker and its script, as most tests of calls need one. */
import { v7 as uuid } from 'uuid'
import type { AccountId, NewId, WorkerId } from '../../model/ids.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { createAccount } from '../../store/accounts.ts'
import { createDocument } from '../../store/documents.ts'
import type { Sql } from '../../store/sql.ts'
import { createWorker } from '../../store/workers.ts'

export const newId = (() => uuid()) as NewId

export type Tenant = { readonly accountId: AccountId; readonly workerId: WorkerId }

export async function createTenant(
  sql: Sql,
  options: {
    slug?: string
    config?: WorkerConfig
    script?: string
    maxConcurrentCalls?: number
    isActive?: boolean
  } = {},
): Promise<Tenant> {
  const now = Date.now()
  const { slug = 'acme', config = {}, script, maxConcurrentCalls, isActive = true } = options
  const account = await createAccount(sql, { name: slug, slug, config: { maxConcurrentCalls }, newId, now })
  const accountId = account.id as AccountId
  const worker = await createWorker(sql, { accountId, name: 'Ada', language: 'en', isActive, config, newId, now })
  const workerId = worker.id as WorkerId
  if (script !== undefined)
    await createDocument(sql, {
      accountId,
      title: 'Script',
      fileName: 'script.txt',
      content: script,
      status: 'completed',
      tagKeys: ['inbound_call_script', 'outbound_call_script'],
      workerIds: [workerId],
      newId,
      now,
    })
  return { accountId, workerId }
}

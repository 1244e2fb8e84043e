/** Owns the demo account that a first start on an empty database makes: one worker with scripts, dimensions, next actions and a document. */
import { readFile } from 'node:fs/promises'
import type { AccountId, WorkerId } from '../../model/ids.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { createAccount } from '../../store/accounts.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { createDocument } from '../../store/documents.ts'
import type { Sql, Transaction } from '../../store/sql.ts'
import { createWorker } from '../../store/workers.ts'
import { newId } from '../core.ts'

export type SeededDemo = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  /** Only at the very first start: afterwards nobody can tell it any more. */
  readonly apiKey: string | null
}

const slug = 'demo'

const config: WorkerConfig = {
  voiceId: 'rms',
  recordingChannelMode: 'split',
  dimensions: [
    { key: 'wants_table', name: 'Wants a table', type: 'boolean' },
    { key: 'seating', name: 'Seating', type: 'enum', options: ['inside', 'outside', 'at the bar'] },
    { key: 'drink', name: 'Drink', type: 'enum', options: ['tea', 'coffee', 'water'] },
    { key: 'confirmed', name: 'Confirmed', type: 'boolean' },
  ],
  nextActions: [
    { key: 'book_table', name: 'Book the table' },
    { key: 'call_back', name: 'Call back' },
    { key: 'cancel_table', name: 'Cancel the table' },
    { key: 'nothing_to_do', name: 'Nothing to do' },
  ],
}

/** Makes the demo once; two processes that start at once get the same one. */
export function seedDemo(sql: Sql, now: number): Promise<SeededDemo> {
  return sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtext('parley demo'))`
    return (await findDemo(tx)) ?? (await createDemo(tx, now))
  })
}

async function findDemo(tx: Transaction): Promise<SeededDemo | null> {
  const [found] = await tx<{ accountId: AccountId; workerId: WorkerId }[]>`
    select accounts.id as account_id, workers.id as worker_id from accounts join workers on workers.account_id = accounts.id
    where slug = ${slug} order by workers.created_at limit 1`
  return found ? { ...found, apiKey: null } : null
}

async function createDemo(tx: Transaction, now: number): Promise<SeededDemo> {
  const account = await createAccount(tx, { name: 'Demo', slug, newId, now })
  const accountId = account.id as AccountId
  const worker = await createWorker(tx, { accountId, name: 'Parley demo', language: 'en', config, newId, now })
  const workerId = worker.id as WorkerId
  const add = async (title: string, fileName: string, tagKeys: string[]): Promise<void> => {
    const content = await readFile(new URL(fileName, import.meta.url), 'utf8')
    const document = {
      accountId,
      title,
      fileName,
      content,
      status: 'completed',
      tagKeys,
      workerIds: [workerId],
    } as const
    await createDocument(tx, { ...document, newId, now })
  }
  await add('Inbound call script', 'inbound-call-script.txt', ['inbound_call_script'])
  await add('Outbound call script', 'outbound-call-script.txt', ['outbound_call_script'])
  await add('About the restaurant', 'knowledge.txt', [])
  const { key } = await createApiKey(tx, { accountId, name: 'First key', newId, now })
  return { accountId, workerId, apiKey: key }
}

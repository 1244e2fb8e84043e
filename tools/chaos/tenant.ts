/** Owns the account whose calls are disturbed: a worker with its scripts, a trunk that leads to our telephone, and where its events go. */
import type { AccountId, WorkerId } from '../../model/ids.ts'
import { newId } from '../../app/core.ts'
import { systemClock as clock } from '../../app/clock.ts'
import { createAccount } from '../../store/accounts.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { createDocument } from '../../store/documents.ts'
import { boxOf, loadAppKey } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createTrunks } from '../../store/trunks.ts'
import { createWorker } from '../../store/workers.ts'
import { scriptOf } from './conversation.ts'
import type { Told } from './told.ts'

/** Of a range that is reserved for examples (NANP 555-01XX). */
export const workerNumber = '+12025550100'
/** No seed is disturbed by the calls of another one. */
const callsAtOnce = 1_000

export type Tenant = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  readonly key: string
}

type Wish = {
  readonly sql: Sql
  readonly appSecret: string
  readonly turns: number
  /** Where our telephone waits for calls. */
  readonly phonePort: number
  readonly told: Told
}

export async function openTenant({ sql, appSecret, turns, phonePort, told }: Wish): Promise<Tenant> {
  const made = { newId, now: clock.now() }
  const limits = { maxConcurrentCalls: callsAtOnce }
  const slug = `chaos-${made.now}`
  const accountId = (await createAccount(sql, { name: 'Chaos', slug, config: limits, ...made })).id as AccountId
  const { key } = await createApiKey(sql, { accountId, name: 'Chaos', ...made })
  // The number is the worker's that has it: a folder that is used again has one of before.
  await sql`update workers set inbound_phone_number = null, outbound_phone_number = null where inbound_phone_number = ${workerNumber}`
  const numbers = { inboundPhoneNumber: workerNumber, outboundPhoneNumber: workerNumber }
  const config = { llmProvider: 'embedded', voiceId: 'rms', firstSpeechTimeout: 0 } as const
  const worker = await createWorker(sql, { accountId, name: 'Chaos', language: 'en', ...numbers, config, ...made })
  const workerId = worker.id as WorkerId
  const tagKeys = ['inbound_call_script', 'outbound_call_script']
  const content = scriptOf(turns)
  const document = { title: 'Script', fileName: 'script.txt', content, status: 'completed', tagKeys } as const
  await createDocument(sql, { accountId, ...document, workerIds: [workerId], ...made })
  const box = boxOf([await loadAppKey({ appSecret, dataDir: '' })])
  const gateways = [{ host: '127.0.0.1', port: phonePort }]
  const trunk = { name: 'Chaos', gateways, allowedAddresses: ['127.0.0.1'], workerIds: [workerId], qualify: false }
  await createTrunks({ sql, box, clock, newId }).create(accountId, trunk)
  const subscribe = async (eventType: 'call.worker_request' | '*', url: string): Promise<string> => {
    const { signingSecret } = await createSubscription(sql, box, { accountId, request: { eventType, url }, ...made })
    return signingSecret ?? ''
  }
  // The first that fits is asked the question of a call.
  const questions = await subscribe('call.worker_request', told.questionsUrl)
  told.trust({ questions, events: await subscribe('*', told.eventsUrl) })
  return { accountId, workerId, key }
}

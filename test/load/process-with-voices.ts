/**
 * Owns the service of the voice bench, in a process of its own: the real one, with real engines, and a worker that answers the telephone. It tells
 * what it costs.
 */
import process from 'node:process'
import { systemClock } from '../../app/clock.ts'
import { readConfig } from '../../app/config.ts'
import { newId, type Core } from '../../app/core.ts'
import { createLog } from '../../app/log.ts'
import { startParley } from '../../app/parley.ts'
import { openEngines } from '../../app/voice-side.ts'
import type { AccountId, WorkerId } from '../../model/ids.ts'
import { createAccount } from '../../store/accounts.ts'
import { createDocument } from '../../store/documents.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createTrunks } from '../../store/trunks.ts'
import { createWorker } from '../../store/workers.ts'
import { readPostgresCpu } from './postgres-cpu.ts'

export type VoiceServiceWish = {
  readonly dataDir: string
  /** As the environment has them. The engine that they set up is the one that is used. */
  readonly settings: Readonly<Record<string, string>>
  readonly script: string
  /** Asked before each call; null: nobody is. */
  readonly hookUrl: string | null
}

export type VoiceServiceReading = {
  /** Of all threads, ms since the process started. */
  readonly cpuMs: number
  readonly postgresCpuMs: number
  readonly rssBytes: number
  readonly running: number
  /** Share of frames, 0–1, of the last 20 s. */
  readonly late: number
}

const called = '+12025550160'
const maxCalls = 1_000

const { dataDir, settings, script, hookUrl } = JSON.parse(process.argv[2] ?? '{}') as VoiceServiceWish
const config = readConfig({
  DATA_DIR: dataDir,
  PORT: '0',
  SIP_PORT: '0',
  SELF_TEST: 'off',
  LOG_LEVEL: 'warn',
  MEDIA_PORTS: '41000-41999',
  ...settings,
})
const log = createLog('warn')
const closing = new AsyncDisposableStack()
const { engines } = await openEngines(config, { log, clock: systemClock }, closing)
const service = await startParley({ config, log, engines, seed })

async function seed(core: Core): Promise<null> {
  const { sql, box, clock } = core
  const [now, language] = [clock.now(), 'en']
  const wish = { name: 'Voice bench', slug: 'voice-bench', config: { maxConcurrentCalls: maxCalls } }
  const accountId = (await createAccount(sql, { ...wish, newId, now })).id as AccountId
  const numbers = { inboundPhoneNumber: called, outboundPhoneNumber: called }
  const worker = { accountId, name: 'Voice bench', language, ...numbers, newId, now }
  const workerId = (await createWorker(sql, worker)).id as WorkerId
  const document = { title: 'Script', fileName: 'script.txt', content: script, status: 'completed' } as const
  const tagKeys = ['inbound_call_script']
  await createDocument(sql, { accountId, ...document, tagKeys, workerIds: [workerId], newId, now })
  const trunk = { name: 'Phones on this machine', gateways: [], allowedAddresses: ['127.0.0.0/8'], qualify: false }
  await createTrunks({ sql, box, clock, newId }).create(accountId, { ...trunk, workerIds: [workerId] })
  if (hookUrl !== null) {
    const request = { eventType: 'call.worker_request', url: hookUrl } as const
    await createSubscription(sql, box, { accountId, request, newId, now })
  }
  return null
}

async function read(): Promise<VoiceServiceReading> {
  const { user, system } = process.cpuUsage()
  return {
    cpuMs: (user + system) / 1000,
    postgresCpuMs: await readPostgresCpu(service.sql),
    rssBytes: process.memoryUsage.rss(),
    running: service.running(),
    late: service.lateness().overTenMs,
  }
}

async function answer(question: unknown): Promise<void> {
  if (question === 'close') {
    await service.close()
    await closing.disposeAsync()
    return process.disconnect()
  }
  process.send?.(await read())
}

// Whoever asked is gone.
process.once('disconnect', () => process.exit())
process.on('message', (question) => void answer(question))
process.send?.({ port: service.sip?.port ?? 0, called })

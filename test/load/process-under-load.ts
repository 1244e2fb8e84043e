/**
 * Owns the service under load, in a process of its own: the real service with the engine of the bench, asked over IPC for what it costs. CPU,
 * memory, late frames, file descriptors, timers and what SIP keeps are read here, where they are spent.
 */
import { soundThreads } from '../scenes/sound-threads.ts'
import { readdirSync } from 'node:fs'
import process from 'node:process'
import { readConfig } from '../../app/config.ts'
import { demoNumbers, seedDemo } from '../../tools/start/demo/seed-demo.ts'
import { createLog } from '../../app/log.ts'
import { startParley, type Parley } from '../../app/parley.ts'
import { createEchoEngine } from './echo-engine.ts'
import { createPhoneEngine, phoneModes } from './phone-engine.ts'
import { startProfile, type ThreadProfile } from './own-profile.ts'
import { readPostgresCost } from './postgres-cost.ts'
import { readPostgresCpu } from './postgres-cpu.ts'
import { createProcessCost, type ProcessCost } from './process-cost.ts'
import { countSentStatements } from './sent-statements.ts'
import { countThreads, readMemory, type Memory } from './read-memory.ts'

export type Reading = ProcessCost & {
  readonly rssBytes: number
  readonly heapBytes: number
  readonly fileDescriptors: number
  readonly timers: number
  readonly running: number
  /** Null without the embedded SIP server. */
  readonly sip: ReturnType<Parley['sipSizes']>
  /** Slots of the ticker since the start. */
  readonly beat: ReturnType<Parley['beat']>
  readonly legs: number
}

/** Looking through all mappings takes a while: only for who asks for it. */
export type MemoryReading = Reading & { readonly memory: Memory; readonly threadCount: number }

/**
 * `phone`: the engine of the telephone benches, which is told over IPC what to do; else the echo. Benches look for what a machine can bear, so
 * new calls are refused only for `gate`.
 */
const [, , dataDir = '.data/bench', engineName, gate = 'open'] = process.argv
const phoneEngine = engineName === 'phone' ? await createPhoneEngine() : null
const config = readConfig({
  ...soundThreads(),
  DATA_DIR: dataDir,
  PORT: '0',
  SIP_PORT: '0',
  SELF_TEST: 'off',
  LOG_LEVEL: 'warn',
  MEDIA_PORTS: '41000-41999',
  LOAD_GATE: gate === 'gate' ? 'on' : 'off',
  RATE_LIMIT_PER_ADDRESS: '0',
})
const engines = new Map([['embedded', phoneEngine?.engine ?? createEchoEngine()]] as const)
const sentStatements = countSentStatements()
const service = await startParley({
  config,
  log: createLog('warn'),
  engines,
  async seed(core) {
    const demo = await seedDemo(core)
    const { sql } = core
    await sql`update accounts set config = ${sql.json({ maxConcurrentCalls: 1000 })} where id = ${demo.accountId}`
    return demo
  },
})

const cost = createProcessCost()

function read(): Reading {
  const { rss, heapUsed } = process.memoryUsage()
  return {
    ...cost(),
    rssBytes: rss,
    heapBytes: heapUsed,
    fileDescriptors: readdirSync('/proc/self/fd').length,
    timers: process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length,
    running: service.running(),
    sip: service.sipSizes(),
    beat: service.beat(),
    legs: service.legs(),
  }
}

let endProfile: (() => Promise<ThreadProfile[]>) | null = null

async function answer(question: unknown): Promise<void> {
  const mode = phoneModes.find((known) => question === `engine ${known}`)
  if (mode) phoneEngine?.use(mode)
  if (question === 'collect') globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  if (question === 'close') {
    await service.close()
    return process.disconnect()
  }
  if (question === 'profile') endProfile = await startProfile()
  if (question === 'end of profile') return void process.send?.(await endProfile?.())
  if (question === 'memory')
    return void process.send?.({ ...read(), memory: readMemory(), threadCount: countThreads() })
  if (question === 'database')
    return void process.send?.({ statements: sentStatements.count(), ...(await readPostgresCost(service.sql)) })
  if (question === 'statements') return void process.send?.([...sentStatements.byText()])
  process.send?.(question === 'postgres' ? { cpuMs: await readPostgresCpu(service.sql) } : read())
}

// Whoever asked is gone.
process.once('disconnect', () => process.exit())
process.on('message', (question) => void answer(question))
process.send?.({ url: service.url, sipPort: service.sip?.port ?? 0, called: demoNumbers.inbound })

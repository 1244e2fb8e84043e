/**
 * Owns the service under load, in a process of its own: the real service with the echo engine, asked over IPC for what it costs. CPU, memory,
 * late frames, file descriptors and timers are read here, where they are spent.
 */
import { readdirSync } from 'node:fs'
import process from 'node:process'
import { readConfig } from '../../app/config.ts'
import { seedDemo } from '../../app/demo/seed-demo.ts'
import { createLog } from '../../app/log.ts'
import { startParley } from '../../app/parley.ts'
import { createEchoEngine } from './echo-engine.ts'

export type Reading = {
  /** Since the process started, ms of CPU. */
  readonly cpuMs: number
  readonly rssBytes: number
  readonly heapBytes: number
  readonly fileDescriptors: number
  readonly timers: number
  readonly running: number
  readonly lateness: {
    readonly ticks: number
    readonly overTenMs: number
    readonly p99: number
    readonly skipped: number
  }
}

const dataDir = process.argv[2] ?? '.data/bench'
const config = readConfig({
  DATA_DIR: dataDir,
  PORT: '0',
  SELF_TEST: 'off',
  LOG_LEVEL: 'warn',
  MEDIA_PORTS: '41000-41999',
})
const engines = new Map([['embedded', createEchoEngine()]] as const)
const service = await startParley({
  config,
  log: createLog('warn'),
  engines,
  async seed(sql) {
    const demo = await seedDemo(sql, Date.now())
    await sql`update accounts set config = ${sql.json({ maxConcurrentCalls: 1000 })} where id = ${demo.accountId}`
    return demo
  },
})

function read(): Reading {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  return {
    cpuMs: (user + system) / 1000,
    rssBytes: rss,
    heapBytes: heapUsed,
    fileDescriptors: readdirSync('/proc/self/fd').length,
    timers: process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length,
    running: service.running(),
    lateness: service.lateness(),
  }
}

process.on('message', (message) => {
  if (message === 'collect') globalThis.gc?.()
  if (message === 'read' || message === 'collect') process.send?.(read())
  if (message !== 'close') return
  void service.close().then(() => process.disconnect())
})
process.send?.({ url: service.url })

/** Owns the service that is soaked: a process of its own on embedded defaults, sampled from outside (`/proc`), from inside, and in its database. */
import { readdir, readFile, readlink } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { z } from 'zod'
import { systemClock as clock } from '../../app/clock.ts'
import { pause } from '../../model/clock.ts'
import { silentLog } from '../../model/log.ts'
import { readConfig } from '../../app/config.ts'
import { openDatabase } from '../../store/open-database.ts'
import { startChild } from '../cluster/child.ts'
import { freePorts } from '../cluster/free-ports.ts'
import type { Counted, Sample } from './growth.ts'

export type Soaked = {
  readonly url: string
  readonly key: string
  /** `host:port` for telephones. */
  readonly sip: string
  /** Throws when the process is gone. */
  sample(): Promise<Sample>
  count(): Promise<Counted>
  close(): Promise<void>
}

const program = path.join(import.meta.dirname, '../start/start.ts')
const inside = path.join(import.meta.dirname, 'tell-from-inside.ts')
/** On a machine that does something else as well. */
const upWithin = 120_000
const toldWithin = 10_000
const closeWithin = 20_000
const lookEvery = 50
const jobsLate = 10_000

const defaults = {
  SELF_TEST: 'off',
  LOG_LEVEL: 'warn',
  LOAD_GATE: 'off',
  RATE_LIMIT_PER_ADDRESS: '0',
  RATE_LIMIT_PER_ACCOUNT: '0',
  BAN_AFTER: '0',
  SHUTDOWN_GRACE_SECONDS: '2',
  MALLOC_ARENA_MAX: '2',
  MALLOC_TRIM_THRESHOLD_: '131072',
} as const

export async function openSoaked(
  folder: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Soaked> {
  await using opening = new AsyncDisposableStack()
  const first = await freePorts(3)
  const [port, sipPort, tlsPort] = [first, first + 1, first + 2].map(String)
  const sampleFile = path.join(folder, 'sample.json')
  const logFile = path.join(folder, 'service.log')
  const dataDir = path.join(folder, 'data')
  const own = { DATA_DIR: dataDir, PORT: port, SIP_PORT: sipPort, SIP_TLS_PORT: tlsPort, SOAK_SAMPLE_FILE: sampleFile }
  const { PATH = '', HOME = folder, NODE_COMPILE_CACHE = '' } = environment
  const child = await startChild({
    name: 'service',
    program: process.execPath,
    args: ['--expose-gc', '--max-semi-space-size=8', '--import', inside, program],
    env: { PATH, HOME, ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }), ...defaults, ...own } as Record<
      string,
      string
    >,
    cwd: folder,
    logFile,
  })
  opening.defer(async () => void (await child.end(closeWithin)))
  const key = await keyIn(logFile, () => child.isOver())
  const database = await openDatabase({ ...readConfig({ DATA_DIR: dataDir }), mustExist: true, log: silentLog })
  opening.defer(() => database.close())
  const { sql } = database
  const parts = opening.move()
  let told = 0

  async function toldFromInside(): Promise<z.infer<typeof Told>> {
    child.signal('SIGUSR2')
    for (const until = performance.now() + toldWithin; performance.now() < until; await pause(clock, lookEvery)) {
      const text = await readFile(sampleFile, 'utf8').catch(() => null)
      const sample = text === null ? null : Told.parse(JSON.parse(text))
      if (!sample || sample.count <= told) continue
      told = sample.count
      return sample
    }
    throw new Error(
      `the service told nothing within ${toldWithin / 1000} s (${child.isOver() ? 'it is over' : 'it runs'}); its log: ${logFile}`,
    )
  }

  return {
    url: `http://127.0.0.1:${port}`,
    key,
    sip: `127.0.0.1:${sipPort}`,
    async sample() {
      const { heapUsed, external, resources } = await toldFromInside()
      const { Timeout: timers = 0, Immediate: _, ...others } = resources
      const handles = Object.values(others).reduce((sum, count) => sum + count, 0)
      return { at: performance.now(), heap: heapUsed, external, timers, handles, ...(await outsideOf(child.pid)) }
    },
    async count() {
      const tables = await sql<{ name: string }[]>`
        select tablename as name from pg_tables where schemaname = current_schema() order by 1`
      const rows: Record<string, number> = {}
      for (const { name } of tables) {
        // A job that waits for its time, as the end of a token does, is none that stays: those count that should have been done.
        const due = name === 'jobs' ? sql`where run_at < ${Date.now() - jobsLate}` : sql``
        const [counted] = await sql<{ count: number }[]>`select count(*)::int as count from ${sql(name)} ${due}`
        rows[name] = counted?.count ?? 0
      }
      return { calls: rows['calls'] ?? 0, rows }
    },
    close: () => parts.disposeAsync(),
  }
}

const Told = z.object({
  count: z.number(),
  heapUsed: z.number(),
  external: z.number(),
  resources: z.record(z.string(), z.number()),
})

async function outsideOf(pid: number) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const numberOf = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
  const descriptors = await readdir(`/proc/${pid}/fd`)
  const links = await Promise.all(descriptors.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')))
  return {
    rss: numberOf('VmRSS') * 1024,
    threads: numberOf('Threads'),
    descriptors: descriptors.length,
    sockets: links.filter((link) => link.startsWith('socket:')).length,
  }
}

/** As a person finds it: the first start shows it. */
async function keyIn(logFile: string, isOver: () => boolean): Promise<string> {
  for (
    const until = performance.now() + upWithin;
    performance.now() < until && !isOver();
    await pause(clock, lookEvery)
  ) {
    const text = await readFile(logFile, 'utf8')
    const key = /\bvk_\w+/.exec(text)?.[0]
    if (key && text.includes('Call it from a browser')) return key
  }
  throw new Error(`the service did not start: see ${logFile}`)
}

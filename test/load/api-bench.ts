/**
 * Owns `npm run bench api [seconds]`: reading a call with a key from the real service, against a bare server that does the same work on the
 * same database. Short rounds take turns, so that whatever else the machine does meets all of them alike; what counts is the ratio of
 * neighbouring rounds, and the CPU of a request.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createLog } from '../../app/log.ts'
import type { Sql } from '../../store/sql.ts'
import { openDatabase } from '../../store/open-database.ts'
import { loadFor, type Load, type Target } from './http-load.ts'
import { seedCalls } from './seed-calls.ts'
import { printTable, quantile } from './table.ts'

const connections = 32
const rounds = 11
const defaultRoundSeconds = 1
const warmUpMs = 2_000
const defaultNames = ['bare', 'node', 'uws'] as const

type Name = (typeof defaultNames)[number]
/** CPU of the server's process, and of everything in Postgres, which works for nobody else meanwhile. */
type Cpu = { readonly server: number; readonly postgres: number }
type Round = Load & { readonly cpuMicroseconds: Cpu }
type Server = { readonly name: Name; readonly url: string; readCpu(): Promise<number>; close(): Promise<void> }

export async function benchApi([seconds]: readonly string[]): Promise<void> {
  const roundMs = Number(seconds ?? defaultRoundSeconds) * 1000
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  await using closing = new AsyncDisposableStack()
  closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  const database = await openDatabase({ databaseUrl: null, dataDir, log: createLog('warn') })
  closing.defer(() => database.close())
  const targets = await seedCalls(database.sql)
  const servers: Server[] = []
  for (const name of defaultNames) {
    const server = await openServer(name, dataDir)
    if (!server) continue
    servers.push(server)
    closing.defer(() => server.close())
  }
  await requireSameAnswers(servers, targets)
  const measured = await measure(servers, { targets, ms: roundMs, sql: database.sql })
  printTable(servers.map(({ name }) => toCells(name, measured)))
}

async function measure(
  servers: readonly Server[],
  { targets, ms, sql }: { readonly targets: readonly Target[]; readonly ms: number; readonly sql: Sql },
): Promise<ReadonlyMap<Name, Round[]>> {
  const measured = new Map<Name, Round[]>(servers.map(({ name }) => [name, []]))
  for (const { url } of servers) await loadFor(warmUpMs, { url, targets, connections })
  for (let round = 0; round < rounds; round++)
    for (const { name, url, readCpu } of servers) {
      const before = { server: await readCpu(), postgres: await readPostgresCpu(sql) }
      const load = await loadFor(ms, { url, targets, connections })
      const cpuMicroseconds = {
        server: (await readCpu()) - before.server,
        postgres: (await readPostgresCpu(sql)) - before.postgres,
      }
      measured.get(name)?.push({ ...load, cpuMicroseconds })
    }
  return measured
}

function toCells(name: Name, measured: ReadonlyMap<Name, readonly Round[]>): Record<string, string> {
  const own = measured.get(name) ?? []
  const bare = measured.get('bare') ?? []
  const ratios = own.map((round, index) => rateOf(round) / rateOf(bare[index] ?? round))
  const latencies = own.flatMap((round) => round.latencies)
  const cpuOf = (kind: keyof Cpu): string =>
    quantile(
      own.map((round) => round.cpuMicroseconds[kind] / round.requests),
      0.5,
    ).toFixed(0)
  return {
    server: name === 'bare' ? 'bare fastify' : `parley, ${name}`,
    'requests/s': quantile(own.map(rateOf), 0.5).toFixed(0),
    'ratio (of rounds)': `${quantile(ratios, 0.5).toFixed(2)} (${quantile(ratios, 0).toFixed(2)}–${quantile(ratios, 1).toFixed(2)})`,
    'p50/p99 ms': `${quantile(latencies, 0.5).toFixed(1)} / ${quantile(latencies, 0.99).toFixed(1)}`,
    'CPU µs per request': cpuOf('server'),
    'and of Postgres': cpuOf('postgres'),
  }
}

const rateOf = ({ requests, ms }: Load): number => (requests / ms) * 1000

const microsecondsPerTick = 10_000

/** Of all connections' processes so far, µs; NaN where the system does not tell. */
async function readPostgresCpu(sql: Sql): Promise<number> {
  const rows = await sql<{ pid: number }[]>`select pid from pg_stat_activity where backend_type = 'client backend'`
  return rows.map(({ pid }) => cpuOfProcess(pid)).reduce((sum, cpu) => sum + cpu, 0)
}

function cpuOfProcess(pid: number): number {
  try {
    // proc(5): user and system time are the 14th and 15th field; the 2nd, in parentheses, may hold spaces.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * microsecondsPerTick
  } catch {
    return Number.NaN // No /proc here.
  }
}

/** Who answers something else is not compared. */
async function requireSameAnswers(servers: readonly Server[], targets: readonly Target[]): Promise<void> {
  const { path: target, key } = targets[0] as Target
  const answers = await Promise.all(
    servers.map(async ({ url }) => (await fetch(`${url}${target}`, { headers: { 'x-api-key': key } })).text()),
  )
  if (new Set(answers).size > 1) throw new Error(`the servers answer differently:\n${answers.join('\n')}`)
}

/** Null where uWebSockets.js does not load. */
async function openServer(name: Name, dataDir: string): Promise<Server | null> {
  const [program, ...before] = name === 'uws' ? await commandForUws() : [process.execPath]
  if (program === undefined) return null
  const file = path.join(import.meta.dirname, 'process-under-api-load.ts')
  const child = spawn(program, [...before, file, name, dataDir], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const { url } = await answerOf<{ url: string }>(child)
  return {
    name,
    url,
    async readCpu() {
      child.send('read')
      return (await answerOf<{ cpuMicroseconds: number }>(child)).cpuMicroseconds
    },
    async close() {
      const exit = once(child, 'exit')
      child.send('close')
      await exit
    },
  }
}

/** By itself, or through the newer C library that .ci/newer-libc.sh unpacks; empty where neither is. */
async function commandForUws(): Promise<readonly string[]> {
  const loads = await import('uWebSockets.js').then(Boolean, () => false)
  if (loads) return [process.execPath]
  const folder = path.join(import.meta.dirname, '../../.data/newer-libc')
  const loaders = ['ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'].map((loader) => path.join(folder, loader))
  const loader = loaders.find((file) => existsSync(file))
  return loader === undefined ? [] : [loader, '--library-path', path.join(folder, 'lib'), process.execPath]
}

/** The next message of the child; rejects when it ends instead. */
function answerOf<Answer>(child: ChildProcess): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const answered = (message: unknown): void => resolve(message as Answer)
  const died = (): void => reject(new Error('the server under test ended'))
  child.once('message', answered).once('exit', died)
  return promise.finally(() => child.off('message', answered).off('exit', died))
}

/**
 * Owns `npm run bench api [seconds]`: reading a call with a key from the real service, against a bare server that does the same work on the
 * same database. Short rounds take turns, so that whatever else the machine does meets all of them alike; what counts is the ratio of
 * neighbouring rounds, and the CPU of a request.
 */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createLog } from '../../app/log.ts'
import type { Sql } from '../../store/sql.ts'
import { openDatabase } from '../../store/open-database.ts'
import { openApiServer, type ApiServer, type ApiServerName } from './api-server.ts'
import { loadFor, type Load, type Target } from './http-load.ts'
import { seedCalls } from './seed-calls.ts'
import { printTable, quantile } from './table.ts'

const connections = 32
const rounds = 11
const defaultRoundSeconds = 1
const warmUpMs = 2_000
const names: readonly ApiServerName[] = ['bare', 'node', 'uws']

/** CPU of the server's process, and of everything in Postgres, which works for nobody else meanwhile. */
type Cpu = { readonly server: number; readonly postgres: number }
type Round = Load & { readonly cpuMicroseconds: Cpu }

export async function benchApi([seconds]: readonly string[]): Promise<void> {
  const roundMs = Number(seconds ?? defaultRoundSeconds) * 1000
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  await using closing = new AsyncDisposableStack()
  closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  const database = await openDatabase({ databaseUrl: null, dataDir, log: createLog('warn') })
  closing.defer(() => database.close())
  const targets = await seedCalls(database.sql)
  const servers: ApiServer[] = []
  for (const name of names) {
    const server = await openApiServer(name, dataDir)
    if (!server) continue
    servers.push(server)
    closing.defer(() => server.close())
  }
  await requireSameAnswers(servers, targets)
  const measured = await measure(servers, { targets, ms: roundMs, sql: database.sql })
  printTable(servers.map(({ name }) => toCells(name, measured)))
}

async function measure(
  servers: readonly ApiServer[],
  { targets, ms, sql }: { readonly targets: readonly Target[]; readonly ms: number; readonly sql: Sql },
): Promise<ReadonlyMap<ApiServerName, Round[]>> {
  const measured = new Map<ApiServerName, Round[]>(servers.map(({ name }) => [name, []]))
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

function toCells(name: ApiServerName, measured: ReadonlyMap<ApiServerName, readonly Round[]>): Record<string, string> {
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
async function requireSameAnswers(servers: readonly ApiServer[], targets: readonly Target[]): Promise<void> {
  const { path: target, key } = targets[0] as Target
  const answers = await Promise.all(
    servers.map(async ({ url }) => (await fetch(`${url}${target}`, { headers: { 'x-api-key': key } })).text()),
  )
  if (new Set(answers).size > 1) throw new Error(`the servers answer differently:\n${answers.join('\n')}`)
}

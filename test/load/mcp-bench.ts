/**
 * Owns `npm run bench mcp [seconds]`: tools/call of a tool of one query against the same query over REST, on the same service in the same run.
 * Beside it stands an example server of the official SDK, which looks at no key and asks no database. Short rounds take turns, so that whatever else the machine does meets both alike; what counts is the ratio of neighbouring rounds. Then a
 * thousand sessions are opened, and what each costs in memory is read.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createLog } from '../../app/log.ts'
import { openDatabase } from '../../store/open-database.ts'
import { openApiServer, type ApiServer, type ApiServerName } from './api-server.ts'
import { loadFor, type Load, type Target } from './http-load.ts'
import { forkProcess } from './forked-process.ts'
import { openSessions } from './mcp-sessions.ts'
import { exampleTargets, seedMcp, type McpTargets } from './seed-mcp.ts'
import { printTable, quantile } from './table.ts'

const connections = 32
const rounds = 11
const defaultRoundSeconds = 1
const warmUpMs = 2_000
const sessions = 1_000
/** Ms: the server has noticed by then that a session is over. */
const goneWithin = 2_000
const drivers: readonly ApiServerName[] = ['node', 'uws']

const ways = ['rest', 'current', 'legacy', 'list'] as const
type Way = (typeof ways)[number]
type Round = Load & { readonly cpuMicroseconds: number }
type Measured = Readonly<Partial<Record<Way, Round[]>>>
type Row = Record<string, string>

const nameOf: Readonly<Record<Way, string>> = {
  rest: 'REST, GET …/workers',
  current: 'MCP 2026-07-28, tools/call',
  legacy: 'MCP 2025-11-25, tools/call',
  list: 'MCP 2025-11-25, tools/list',
}

export async function benchMcp([seconds]: readonly string[]): Promise<void> {
  const roundMs = Number(seconds ?? defaultRoundSeconds) * 1000
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  await using closing = new AsyncDisposableStack()
  closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  const database = await openDatabase({ databaseUrl: null, dataDir, log: createLog('warn') })
  closing.defer(() => database.close())
  const rows: Row[] = []
  const memory: Row[] = []
  for (const driver of drivers) {
    const server = await openApiServer(driver, dataDir)
    if (!server) continue
    closing.defer(() => server.close())
    const targets = await seedMcp(database.sql, server.url)
    await requireSameAnswers(server, targets)
    rows.push(...rowsOf(driver, await measure(server, targets, roundMs)))
    memory.push(await measureSessions(server, targets))
  }
  rows.push(...(await measureExample(roundMs)))
  printTable(rows)
  printTable(memory)
}

type Measurable = Pick<ApiServer, 'url' | 'readCpu'>

async function measure(
  { url, readCpu }: Measurable,
  targets: Partial<Record<Way, readonly Target[]>>,
  ms: number,
): Promise<Measured> {
  const asked = ways.flatMap((way) => (targets[way] ? [{ targets: targets[way], own: [] as Round[], way }] : []))
  for (const { targets } of asked) await loadFor(warmUpMs, { url, targets, connections })
  for (let round = 0; round < rounds; round++)
    for (const { targets, own } of asked) {
      const before = await readCpu()
      const load = await loadFor(ms, { url, targets, connections })
      own.push({ ...load, cpuMicroseconds: (await readCpu()) - before })
    }
  return Object.fromEntries(asked.map(({ way, own }) => [way, own]))
}

async function measureExample(ms: number): Promise<Row[]> {
  const child = await forkProcess<{ url: string }>('process-serving-mcp-example.ts', [])
  try {
    const readCpu = async () => (await child.ask<{ cpuMicroseconds: number }>('read')).cpuMicroseconds
    return rowsOf('example of the SDK', await measure({ url: child.ready.url, readCpu }, exampleTargets, ms))
  } finally {
    await child.close()
  }
}

const rowsOf = (driver: string, measured: Measured): Row[] =>
  ways.flatMap((way) => {
    const { [way]: own, rest = [] } = measured
    if (!own) return []
    const ratios = own.map((round, index) => rateOf(round) / rateOf(rest[index] ?? round))
    const latencies = own.flatMap((round) => round.latencies)
    const cpus = own.map((round) => round.cpuMicroseconds / round.requests)
    return {
      driver,
      [`${connections} connections`]: nameOf[way],
      'requests/s': quantile(own.map(rateOf), 0.5).toFixed(0),
      'ratio (of rounds)':
        rest.length === 0
          ? '–'
          : `${quantile(ratios, 0.5).toFixed(2)} (${quantile(ratios, 0).toFixed(2)}–${quantile(ratios, 1).toFixed(2)})`,
      'p50/p95 ms': `${quantile(latencies, 0.5).toFixed(1)} / ${quantile(latencies, 0.95).toFixed(1)}`,
      'CPU µs per request': quantile(cpus, 0.5).toFixed(0),
    }
  })

const rateOf = ({ requests, ms }: Load): number => (requests / ms) * 1000

/** What a session costs while it is open, and what is left of all of them when they are gone. */
async function measureSessions(server: ApiServer, { listening }: McpTargets): Promise<Row> {
  const warm = await openSessions(server.url, listening, 50)
  warm.close()
  await pause(goneWithin)
  const before = await server.readMemory()
  const opened = await openSessions(server.url, listening, sessions)
  const during = await server.readMemory()
  opened.close()
  await pause(goneWithin)
  const after = await server.readMemory()
  const each = (kind: 'rss' | 'heapUsed' | 'external'): string =>
    ((during[kind] - before[kind]) / opened.open / 1024).toFixed(1)
  return {
    driver: server.name,
    'open sessions': String(opened.open),
    'RSS KiB each': each('rss'),
    'heap KiB each': each('heapUsed'),
    'external KiB each': each('external'),
    'heap left MiB': ((after.heapUsed - before.heapUsed) / 1024 ** 2).toFixed(1),
  }
}

/** What is compared tells the same worker. */
async function requireSameAnswers({ url }: ApiServer, targets: McpTargets): Promise<void> {
  for (const way of ['rest', 'current', 'legacy'] as const) {
    const target = targets[way][0] as Target
    const { path: asked, key, post } = target
    const headers = post ? { authorization: `Bearer ${key}`, ...post.headers } : { 'x-api-key': key }
    const answer = await fetch(`${url}${asked}`, { method: post ? 'POST' : 'GET', headers, body: post?.body ?? null })
    const text = await answer.text()
    if (answer.status !== 200 || !text.includes(targets.workerId))
      throw new Error(`${way} answered ${answer.status}: ${text}`)
  }
}

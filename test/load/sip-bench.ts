/**
 * Owns `npm run bench sip [number of calls …]`: calls by telephone against the service in another process. How many a second are set up and torn
 * down, how many talk at the same time and what they cost, each beside a floor in the same run, and whether anything is left behind.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createTicker } from '../../media/ticker/ticker.ts'
import { measureCallRate, type RatedProcess } from './call-rate.ts'
import { forkProcess } from './forked-process.ts'
import type { PhoneMode } from './phone-engine.ts'
import { preparePhoneSound } from './phone-load.ts'
import {
  cellsOf,
  echoTalkMs,
  measureRow,
  serviceTalkMs,
  type OtherEnd,
  type PhoneRow,
  type RowDeps,
} from './phone-row.ts'
import type { Reading } from './process-under-load.ts'
import { openRawSipCaller, type RawSipCaller } from './raw-sip-caller.ts'
import { hasSipp } from './sipp-load.ts'
import { printTable, quantile } from './table.ts'

const defaultCounts = [10, 50, 100, 200]
const calling = '+12025550150'
const warmUpCalls = 100
const churnCalls = 2_000
const churnAtOnce = 10
const maxLate = 0.01
const searchSteps = 3
/** Timer J of the last BYE, and a bit: until then its answer is kept (RFC 3261 §17.2.2). */
const transactionsForgottenMs = 33_000

type Service = {
  readonly port: number
  readonly called: string
  use(mode: PhoneMode): Promise<void>
  read(): Promise<Reading>
  /** The same after a garbage collection, whose CPU would spoil the rows. */
  collect(): Promise<Reading>
  postgresCpu(): Promise<number>
  settled(): Promise<void>
}

export async function benchSip(arguments_: readonly string[]): Promise<void> {
  const counts = arguments_.length > 0 ? arguments_.map(Number) : defaultCounts
  await using closing = new AsyncDisposableStack()
  const service = await openService(closing)
  const caller = await openRawSipCaller({ ...service, calling })
  closing.defer(() => caller.close())
  const ticker = createTicker({ now: () => performance.now(), after })
  closing.defer(() => ticker.close())
  await reportChurn(service, caller)
  const deps = { ticker, sound: preparePhoneSound() }
  const echo = await openEcho(closing)
  await reportTalks(counts, { deps, echo, serviceAs: (mode) => phonesTo(service, caller, mode) })
}

/** While the SIP edge alone is measured, the service has nothing to do but to forget. */
async function reportChurn(service: Service, caller: RawSipCaller): Promise<void> {
  await service.use('idle')
  await churn(caller, warmUpCalls)
  await service.settled()
  const before = await service.collect()
  const isRated = hasSipp()
  if (!isRated) console.log('calls per second: not measured, sipp is not installed')
  const rated = isRated ? await measureCallRate(ratedService(service)) : null
  const placed = rated?.placed ?? 0
  await churn(caller, churnCalls - placed)
  await service.settled()
  const forgottenAt = performance.now() + transactionsForgottenMs
  if (rated) printTable([rated.cells, await measureEdge(service.called)])
  await pause(Math.max(0, forgottenAt - performance.now()))
  reportLeft(Math.max(placed, churnCalls), before, await service.collect())
}

function reportLeft(calls: number, before: Reading, now: Reading): void {
  const change = (of: (reading: Reading) => number | string): string => `${of(before)} → ${of(now)}`
  const left = ({ sip }: Reading): string =>
    sip
      ? Object.entries(sip)
          .map((entry) => entry.join(' '))
          .join(', ')
      : '-'
  console.log(
    `\nafter ${calls} calls made and ended: heap ${change(({ heapBytes }) => (heapBytes / 1e6).toFixed(1))} MB, ` +
      `descriptors ${change((reading) => reading.fileDescriptors)}, timers ${change((reading) => reading.timers)}\n` +
      `SIP keeps ${left(before)} → ${left(now)}\n`,
  )
}

const ratedService = (service: Service): RatedProcess => ({
  ...service,
  name: 'the service',
  calling,
  from: 20,
  readCpu: async () => ({ own: (await service.read()).cpuMs, postgres: await service.postgresCpu() }),
})

async function measureEdge(called: string): Promise<Record<string, string>> {
  const open = () => forkProcess<{ readonly sipPort: number }>('process-answering-sip.ts', [])
  let edge = await open()
  const readCpu = async () => ({ own: (await edge.ask<{ cpuMs: number }>('read')).cpuMs, postgres: null })
  try {
    const { cells } = await measureCallRate({
      name: 'its SIP edge alone, no actor, no database',
      get port() {
        return edge.ready.sipPort
      },
      called,
      calling,
      from: 150,
      readCpu,
      settled: () => pause(500),
      async renew() {
        await edge.close()
        edge = await open()
      },
    })
    return cells
  } finally {
    await edge.close()
  }
}

async function churn(caller: RawSipCaller, count: number): Promise<void> {
  for (let done = 0; done < count; done += churnAtOnce) {
    // Nobody listens on that port.
    const calls = await Promise.all(Array.from({ length: churnAtOnce }, () => caller.call(1_999)))
    await Promise.all(calls.map((call) => call.hangUp()))
  }
}

type Talks = {
  readonly deps: RowDeps
  readonly echo: OtherEnd
  readonly serviceAs: (mode: PhoneMode) => OtherEnd
}

/** Service and floor take turns, so that whatever else the machine does meets both. */
async function reportTalks(counts: readonly number[], { deps, echo, serviceAs }: Talks): Promise<void> {
  const measureAt = (count: number, mode: PhoneMode = 'pcmu'): Promise<PhoneRow> =>
    measureRow(serviceAs(mode), deps, { count, talkMs: serviceTalkMs })
  const rows: PhoneRow[] = []
  const cells: Record<string, string>[] = []
  for (const count of counts) {
    const row = await measureAt(count)
    const floor = await measureRow(echo, deps, { count, talkMs: echoTalkMs })
    rows.push(row)
    cells.push(cellsOf('service, engine PCMU', row, floor), cellsOf('bare echo', floor, null))
    if (count === middleOf(counts))
      cells.push(cellsOf('service, engine 16 kHz', await measureAt(count, 'pcm16'), floor))
  }
  printTable(cells)
  console.log(
    'rtpengine, the usual floor for RTP, is not available here: the floor is a bare socket of node that echoes.',
  )
  await reportLimit(rows, measureAt)
}

const middleOf = (counts: readonly number[]): number => counts[counts.length >> 1] ?? 0

/** Between the last row that was in time and the first that was not, halved a few times; beyond the last row as long as all were in time. */
async function reportLimit(rows: readonly PhoneRow[], measureAt: (count: number) => Promise<PhoneRow>): Promise<void> {
  const inTime = (row: PhoneRow): boolean => (row.late ?? 0) < maxLate && row.count === row.wanted
  let good = Math.max(0, ...rows.filter(inTime).map((row) => row.wanted))
  let bad = Math.min(...rows.filter((row) => !inTime(row) && row.wanted > good).map((row) => row.wanted))
  const tried: string[] = []
  for (let step = 0; step < searchSteps && bad - good > 2; step++) {
    const row = await measureAt(Math.round(Number.isFinite(bad) ? (good + bad) / 2 : good * 1.5))
    const client = `client ${(row.clientLate * 100).toFixed(2)} %`
    tried.push(
      `${row.wanted}: ${((row.late ?? 0) * 100).toFixed(2)} %, ${client}, ${quantile(row.cpuMsPerCallSecond, 0.5).toFixed(2)} ms`,
    )
    if (inTime(row)) good = row.wanted
    else bad = row.wanted
  }
  const between = Number.isFinite(bad) ? `, not with ${bad}` : ''
  console.log(
    `\nunder 1 % late frames with ${good} calls${between}${tried.length > 0 ? ` (tried ${tried.join('; ')})` : ''}`,
  )
}

function phonesTo(service: Service, caller: RawSipCaller, mode: PhoneMode): OtherEnd {
  return {
    prepare: () => service.use(mode),
    async connect(phone) {
      const call = await caller.call(phone.port)
      phone.begin(call.remote)
      return call.hangUp
    },
    read: service.read,
    settled: service.settled,
  }
}

async function openEcho(closing: AsyncDisposableStack): Promise<OtherEnd> {
  const child = await forkProcess<unknown>('process-echoing-rtp.ts', [])
  closing.defer(() => child.close())
  let ports: number[] = []
  return {
    prepare: async (count) => void ({ ports } = await child.ask<{ ports: number[] }>(`open ${count}`)),
    async connect(phone) {
      const port = ports.pop()
      if (port === undefined) throw new Error('the echo has no port left')
      phone.begin({ address: '127.0.0.1', port })
      return () => Promise.resolve()
    },
    read: () => child.ask<{ cpuMs: number }>('read'),
    settled: () => Promise.resolve(),
  }
}

async function openService(closing: AsyncDisposableStack): Promise<Service> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  type Ready = { readonly sipPort: number; readonly called: string }
  const child = await forkProcess<Ready>('process-under-load.ts', [dataDir, 'phone'], ['--expose-gc'])
  closing.defer(() => child.close())
  const read = (): Promise<Reading> => child.ask('read')
  return {
    port: child.ready.sipPort,
    called: child.ready.called,
    use: async (mode) => void (await child.ask(`engine ${mode}`)),
    read,
    collect: () => child.ask('collect'),
    postgresCpu: async () => (await child.ask<{ cpuMs: number }>('postgres')).cpuMs,
    async settled() {
      for (let look = 0; look < 400 && (await read()).running > 0; look++) await pause(50)
      await pause(1_000)
    },
  }
}

function after(ms: number, action: () => void): () => void {
  const timer = setTimeout(action, ms)
  return () => clearTimeout(timer)
}

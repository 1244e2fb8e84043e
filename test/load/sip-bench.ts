/**
 * Owns `npm run bench sip [rate] [talk] [limit] [seconds=20] [number of calls …]`: calls by telephone against the service in another process. `rate`:
 * how many a second are set up and torn down, and whether anything is left behind; `talk`: what calls cost that talk, each row beside a floor in the
 * same minute; `limit`: how many are in time. Without a word all of it.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createTicker } from '../../media/ticker/ticker.ts'
import { measureCallRate, type RatedProcess } from './call-rate.ts'
import { forkProcess } from './forked-process.ts'
import { after, calling, openLoadedService, type LoadedService } from './open-loaded.ts'
import { openMachineBeat } from './machine-beat.ts'
import type { PhoneMode } from './phone-engine.ts'
import { preparePhoneSound } from './phone-load.ts'
import { openBareEcho } from './bare-echo.ts'
import { hasRtpengine, openRtpengine } from './rtpengine.ts'
import { cellsOf, measureRow, spentCellsOf, talkMsOf, type OtherEnd, type PhoneRow, type RowDeps } from './phone-row.ts'
import type { Reading } from './process-under-load.ts'
import { openRawSipCaller, type RawSipCaller } from '../../tools/callers/raw-sip-caller.ts'
import { hasSipp } from './sipp-load.ts'
import { printTable, quantile } from './table.ts'
import { talkWishOf, type TalkWish } from './talk-wish.ts'

const defaultCounts = [10, 50, 100, 200]
const warmUpCalls = 40
const churnCalls = 2_000
const churnAtOnce = 10
const maxLate = 0.01
const searchSteps = 3
/** Timer J of the last BYE, and a bit: until then its answer is kept (RFC 3261 §17.2.2). */
const transactionsForgottenMs = 33_000

type Service = LoadedService & {
  readonly port: number
  readonly called: string
  use(mode: PhoneMode): Promise<void>
}

export async function benchSip(given: readonly string[]): Promise<void> {
  const wish = talkWishOf(given, defaultCounts)
  await using closing = new AsyncDisposableStack()
  const service = await openService(closing)
  const caller = await openRawSipCaller({ ...service, calling })
  closing.defer(() => caller.close())
  const ticker = createTicker({ now: () => performance.now(), after })
  closing.defer(() => ticker.close())
  const machine = openMachineBeat()
  closing.defer(() => machine.close())
  if (wish.has('rate')) await reportChurn(service, caller)
  if (!wish.has('talk') && !wish.has('limit')) return
  await churn(caller, warmUpCalls)
  const deps = { ticker, sound: preparePhoneSound(), machine }
  const echo = await openBareEcho(closing)
  const relay = wish.has('talk') && hasRtpengine() ? await openRtpengine(closing) : null
  await reportTalks(wish, { deps, echo, relay, serviceAs: (mode) => phonesTo(service, caller, mode) })
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
  readCpu: async () => ({
    own: (await service.read()).cpuMs,
    postgres: (await service.ask<{ cpuMs: number }>('postgres')).cpuMs,
  }),
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
    await Promise.all(Array.from({ length: churnAtOnce }, () => callAndHangUp(caller)))
  }
}

/** Nobody listens on that port. On a machine that is busy with something else one or another does not come about. */
async function callAndHangUp(caller: RawSipCaller): Promise<void> {
  try {
    await (await caller.call(1_999)).hangUp()
  } catch (error) {
    console.error('a call did not come about:', error)
  }
}

type Talks = {
  readonly deps: RowDeps
  readonly echo: OtherEnd
  /** Null: it is not installed. */
  readonly relay: OtherEnd | null
  readonly serviceAs: (mode: PhoneMode) => OtherEnd
}

/** Service and floor take turns, so that whatever else the machine does meets both. */
async function reportTalks(wish: TalkWish, { deps, echo, relay, serviceAs }: Talks): Promise<void> {
  const { counts, talkMs = talkMsOf.service } = wish
  const measureAt = (count: number, mode: PhoneMode = 'pcmu'): Promise<PhoneRow> =>
    measureRow(serviceAs(mode), deps, { count, talkMs })
  const rows: PhoneRow[] = []
  const cells: Record<string, string>[] = []
  const spent: Record<string, string>[] = []
  const add = (name: string, row: PhoneRow, floor: PhoneRow | null): void => {
    cells.push(cellsOf(name, row, floor))
    spent.push(...spentCellsOf(name, row))
  }
  for (const count of counts) {
    const row = await measureAt(count)
    const floor = await measureRow(echo, deps, { count, talkMs: Math.min(talkMs, talkMsOf.echo) })
    rows.push(row)
    add('service, engine PCMU', row, floor)
    add('bare echo', floor, null)
    if (relay)
      add(
        'rtpengine, between two',
        await measureRow(relay, deps, { count, talkMs: Math.min(talkMs, talkMsOf.echo) }),
        floor,
      )
    if (wish.isWhole && count === middleOf(counts))
      add('service, engine 16 kHz', await measureAt(count, 'pcm16'), floor)
  }
  printTable(cells)
  console.log('')
  printTable(spent)
  if (wish.has('talk') && !relay) console.log('No row of rtpengine: it is not installed.')
  if (wish.has('limit')) await reportLimit(rows, measureAt)
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

async function openService(closing: AsyncDisposableStack): Promise<Service> {
  const service = await openLoadedService({ engine: 'phone' }, closing)
  const { sipPort: port, called } = service.ready
  return { ...service, port, called, use: async (mode) => void (await service.ask(`engine ${mode}`)) }
}

/** Owns one row of the telephone bench: N calls that talk for a while, against the service or against the bare echo, and what they cost. */
import { setTimeout as pause } from 'node:timers/promises'
import type { LatenessTotals } from '../../media/ticker/lateness.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { lateShare, type MachineBeat } from './machine-beat.ts'
import { costCells, type ProcessCost } from './process-cost.ts'
import { openLoadedPhone, type LoadedPhone, type PhoneSound } from './phone-load.ts'
import { quantile } from './table.ts'

/** Shares are 0–1; latencies in ms. */
export type PhoneRow = {
  readonly wanted: number
  /** Calls that came about. */
  readonly count: number
  readonly echoes: readonly number[]
  /** Of the service's beat; null for the echo, which has none. */
  readonly late: number | null
  /** Of an empty beat beside it. */
  readonly machineLate: number
  /** Of the time: the thread had work and no core. Late frames of that are the machine's, not the service's. */
  readonly waitedForCore: number | null
  /** Of each part of the talk. */
  readonly cpuMsPerCallSecond: readonly number[]
  /** Beyond what the process had before; null where nobody looks. */
  readonly rssBytesPerCall: number | null
  /** Packets of both ways. */
  readonly lost: number
  readonly clientLate: number
  /** What it was spent on; null where nobody looks. */
  readonly spent: Readonly<Record<string, string>> | null
}

export type RowReading = { readonly cpuMs: number } & Partial<
  ProcessCost & { readonly rssBytes: number; readonly beat: LatenessTotals }
>

/** What stands at the other end of the calls. */
export type OtherEnd = {
  /** Before the calls of a row. */
  prepare(count: number): Promise<void>
  /** Begins one call, and gives what ends it. Rejects when it does not come about. */
  connect(phone: LoadedPhone): Promise<() => Promise<void>>
  read(): Promise<RowReading>
  /** Resolves when no call is left. */
  settled(): Promise<void>
}

export type RowDeps = { readonly ticker: Ticker; readonly sound: PhoneSound; readonly machine: MachineBeat }

const atOnce = 5
/** Of ten calls one measures. */
const measuresEvery = 10
export const talkMsOf = { service: 20_000, echo: 10_000 } as const

export async function measureRow(
  end: OtherEnd,
  deps: RowDeps,
  { count, talkMs }: { readonly count: number; readonly talkMs: number },
): Promise<PhoneRow> {
  await end.prepare(count)
  const idle = await end.read()
  const calls = await connectAll(end, deps, count)
  await pause(1_000)
  for (const { phone } of calls) phone.takeEchoes()
  const countsBefore = countsOf(calls)
  const machineBefore = await deps.machine.totals()
  const moments = await talk(end, talkMs)
  const machineLate = lateShare(machineBefore, await deps.machine.totals())
  const countsAfter = countsOf(calls)
  const clientLate = deps.ticker.lateness().overTenMs
  const echoes = calls.flatMap(({ phone }) => phone.takeEchoes())
  for (const some of chunksOf(calls)) await Promise.all(some.map(hangUp))
  await end.settled()
  return {
    ...costOf(idle, moments, calls.length),
    wanted: count,
    count: calls.length,
    echoes,
    lost: lostBetween(countsBefore, countsAfter),
    clientLate,
    machineLate,
  }
}

type Moment = RowReading & { readonly at: number }

const parts = 4

/** Read at its beginning, its end and in between. */
async function talk(end: OtherEnd, ms: number): Promise<Moment[]> {
  const look = async (): Promise<Moment> => ({ ...(await end.read()), at: performance.now() })
  const moments = [await look()]
  while (moments.length <= parts) {
    await pause(ms / parts)
    moments.push(await look())
  }
  return moments
}

type Cost = Pick<PhoneRow, 'late' | 'spent' | 'waitedForCore' | 'cpuMsPerCallSecond' | 'rssBytesPerCall'>

function costOf(idle: RowReading, moments: readonly Moment[], calls: number): Cost {
  const [first, last] = [moments[0] as Moment, moments.at(-1) as Moment]
  const waited = last.waitedForCoreMs === undefined ? null : last.waitedForCoreMs - (first.waitedForCoreMs ?? 0)
  return {
    late: first.beat && last.beat ? lateShare(first.beat, last.beat) : null,
    spent:
      isWhole(first) && isWhole(last)
        ? costCells(first, last, (calls * (last.at - first.at)) / 1_000, 'call-second')
        : null,
    waitedForCore: waited === null ? null : waited / (last.at - first.at),
    cpuMsPerCallSecond: moments.slice(1).map(({ cpuMs, at }, index) => {
      const before = moments[index] as Moment
      return ((cpuMs - before.cpuMs) * 1000) / (calls * (at - before.at))
    }),
    rssBytesPerCall: last.rssBytes === undefined ? null : (last.rssBytes - (idle.rssBytes ?? 0)) / calls,
  }
}

const isWhole = <Read extends RowReading>(reading: Read): reading is Read & ProcessCost => reading.threads !== undefined

type Counts = ReturnType<typeof countsOf>

function lostBetween(before: Counts, after: Counts): number {
  const grown = (name: keyof Counts): number => after[name] - before[name]
  return (grown('missing') + grown('lostThere')) / (grown('sent') + grown('received'))
}

type Connected = { readonly phone: LoadedPhone; readonly end: () => Promise<void> }

async function hangUp({ phone, end }: Connected): Promise<void> {
  await end()
  await phone.close()
}

/** Those that do not come about are left out, and the row says how many there were. */
async function connectAll(end: OtherEnd, deps: RowDeps, count: number): Promise<Connected[]> {
  const calls: Connected[] = []
  for (const some of chunksOf(Array.from({ length: count }, (_, index) => index))) {
    const opened = await Promise.all(some.map((index) => connect(end, deps, index % measuresEvery === 0)))
    calls.push(...opened.filter((call) => call !== null))
  }
  return calls
}

async function connect(end: OtherEnd, deps: RowDeps, measures: boolean): Promise<Connected | null> {
  const phone = await openLoadedPhone({ ...deps, measures })
  try {
    return { phone, end: await end.connect(phone) }
  } catch (error) {
    await phone.close()
    console.error('a call did not come about:', error)
    return null
  }
}

const chunksOf = <Value>(values: readonly Value[]): Value[][] =>
  Array.from({ length: Math.ceil(values.length / atOnce) }, (_, at) => values.slice(at * atOnce, (at + 1) * atOnce))

function countsOf(calls: readonly Connected[]) {
  const counts = calls.map(({ phone }) => phone.counts())
  const sumOf = (name: keyof (typeof counts)[number]): number => counts.reduce((sum, one) => sum + one[name], 0)
  return {
    sent: sumOf('sent'),
    received: sumOf('received'),
    missing: sumOf('missing'),
    lostThere: sumOf('lostThere'),
  }
}

/** `floor` is the bare echo with as many calls, in the same minute. */
export function cellsOf(name: string, row: PhoneRow, floor: PhoneRow | null): Record<string, string> {
  const floorMs = floor ? quantile(floor.echoes, 0.5) : 0
  const added = (share: number): string => (quantile(row.echoes, share) - floorMs).toFixed(1)
  const cpu = (share: number): string => quantile(row.cpuMsPerCallSecond, share).toFixed(2)
  const { rssBytesPerCall } = row
  return {
    ...namesOf(name, row),
    'CPU ms per call-second (range)': `${cpu(0.5)} (${cpu(0)}–${cpu(1)})`,
    'in echoes': floor ? inEchoes(row.cpuMsPerCallSecond, floor) : '-',
    'late >10 ms %': row.late === null ? '-' : percent(row.late),
    'machine late %': percent(row.machineLate),
    'no core %': row.waitedForCore === null ? '-' : (row.waitedForCore * 100).toFixed(1),
    'mark and back p50/p95 ms': `${quantile(row.echoes, 0.5).toFixed(1)} / ${quantile(row.echoes, 0.95).toFixed(1)}`,
    'added p50/p95 ms': floor ? `${added(0.5)} / ${added(0.95)}` : '-',
    'RSS MB per call': rssBytesPerCall === null ? '-' : (rssBytesPerCall / 1e6).toFixed(2),
    'lost %': percent(row.lost),
    'client late %': percent(row.clientLate),
  }
}

/** CPU told in that of the bare echo of the same minute: it does not move with the machine. */
export const inEchoes = (cpuMsPerCallSecond: readonly number[], floor: PhoneRow): string =>
  (quantile(cpuMsPerCallSecond, 0.5) / quantile(floor.cpuMsPerCallSecond, 0.5)).toFixed(1)

/** Of rows that somebody looked into. */
export const spentCellsOf = (name: string, row: PhoneRow): Record<string, string>[] =>
  row.spent ? [{ ...namesOf(name, row), ...row.spent }] : []

const namesOf = (name: string, { count, wanted }: PhoneRow): Record<string, string> => ({
  calls: count === wanted ? String(count) : `${count} of ${wanted}`,
  'at the other end': name,
})

const percent = (share: number): string => (share * 100).toFixed(2)

/**
 * Owns `npm run bench web`: N concurrent web calls, all talking all the time, from this process against the service in another. Prints one row
 * per N, and whether anything is left behind after many calls made and ended.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { placeLoadedCall, preparePackets, type LoadedCall } from './loaded-call.ts'
import type { Reading } from './process-under-load.ts'
import { printTable, quantile } from './table.ts'

const defaultCounts = [1, 10, 50]
/** The meter of late frames looks back 20 s at most: a shorter talk would count the set-up of the calls. */
const talkMs = 20_000
const warmUpCalls = 30
/** A quantile of fewer is none: calls made and ended one by one fill up the rows of few calls. */
const firstPacketSamples = 20
const maxLate = 0.01
const searchSteps = 4
const churnCalls = 200
const churnAtOnce = 5

/** Shares are 0–1. The call that measures is silent between its marks, so that not all of its packets come back. */
type Row = {
  readonly count: number
  readonly firsts: readonly number[]
  readonly echoes: readonly number[]
  readonly late: number
  readonly cpuMsPerCallSecond: number
  readonly rssBytes: number
  /** Beyond what the process had before the calls of the row. */
  readonly rssBytesPerCall: number
  readonly echoed: number
  readonly clientLate: number
}

type Bench = {
  readonly url: string
  read(): Promise<Reading>
  /** The same after a garbage collection, whose CPU would spoil the rows. */
  collect(): Promise<Reading>
  close(): Promise<void>
}

export async function benchWeb(arguments_: readonly string[]): Promise<void> {
  const counts = arguments_.length > 0 ? arguments_.map(Number) : defaultCounts
  const bench = await openService()
  const ticker = createTicker({ now: () => performance.now(), after })
  const opus = createOpusLibrary()
  const prepared = preparePackets(opus)
  const place = (measures: boolean): Promise<LoadedCall> =>
    placeLoadedCall({ url: bench.url, opus, ticker, measures, packets: measures ? prepared.marks : prepared.talk })
  try {
    await churn(place, warmUpCalls)
    const measureAt = (count: number): Promise<Row> => measure(bench, place, count, () => ticker.lateness().overTenMs)
    const rows: Row[] = []
    for (const count of counts) rows.push(await measureAt(count))
    printTable(rows.map(toCells))
    await reportLimit(rows, measureAt)
    await reportLeaks(bench, place)
  } finally {
    ticker.close()
    await bench.close()
  }
}

/** Between the last row that was in time and the first that was not, halved a few times; beyond the last row as long as all were in time. */
async function reportLimit(rows: readonly Row[], measureAt: (count: number) => Promise<Row>): Promise<void> {
  const inTime = (row: Row): boolean => row.late < maxLate
  let good = Math.max(0, ...rows.filter(inTime).map((row) => row.count))
  let bad = Math.min(...rows.filter((row) => !inTime(row) && row.count > good).map((row) => row.count))
  const tried: string[] = []
  for (let step = 0; step < searchSteps && bad - good > 2; step++) {
    const row = await measureAt(Math.round(Number.isFinite(bad) ? (good + bad) / 2 : good * 1.5))
    tried.push(`${row.count}: ${(row.late * 100).toFixed(2)} %`)
    if (inTime(row)) good = row.count
    else bad = row.count
  }
  const between = Number.isFinite(bad) ? `, not with ${bad}` : ''
  console.log(
    `\nunder 1 % late frames with ${good} calls${between}${tried.length > 0 ? ` (tried ${tried.join(', ')})` : ''}`,
  )
}

/** The first call of the row measures the echo, the others are load. */
async function measure(
  bench: Bench,
  place: (measures: boolean) => Promise<LoadedCall>,
  count: number,
  ownLateness: () => number,
): Promise<Row> {
  const idle = await bench.read()
  const single = await placeOneByOne(place, firstPacketSamples - count)
  const calls: LoadedCall[] = []
  for (let index = 0; index < count; index++) calls.push(await place(index === 0))
  const firsts = [...single, ...(await Promise.all(calls.map((call) => call.firstPacketMs)))]
  await pause(1000)
  const [before, began] = [await bench.read(), performance.now()]
  const packetsBefore = packetsOf(calls)
  await pause(talkMs)
  const [after_, ended] = [await bench.read(), performance.now()]
  const packetsAfter = packetsOf(calls)
  const clientLate = ownLateness()
  const echoes = calls[0]?.echoes ?? []
  await Promise.all(calls.map((call) => call.end()))
  await settled(bench)
  const callSeconds = (count * (ended - began)) / 1000
  const sent = packetsAfter.sent - packetsBefore.sent
  return {
    count,
    firsts,
    echoes,
    late: after_.lateness.overTenMs,
    cpuMsPerCallSecond: (after_.cpuMs - before.cpuMs) / callSeconds,
    rssBytes: after_.rssBytes,
    rssBytesPerCall: (after_.rssBytes - idle.rssBytes) / count,
    echoed: (packetsAfter.received - packetsBefore.received) / sent,
    clientLate,
  }
}

const toCells = (row: Row): Record<string, string> => ({
  calls: String(row.count),
  'first packet p50/p95 ms': `${inMs(row.firsts, 0.5)} / ${inMs(row.firsts, 0.95)}`,
  'echo p50/p95/p99 ms': `${inMs(row.echoes, 0.5)} / ${inMs(row.echoes, 0.95)} / ${inMs(row.echoes, 0.99)}`,
  'late >10 ms %': (row.late * 100).toFixed(2),
  'CPU ms per call-second': row.cpuMsPerCallSecond.toFixed(1),
  'RSS MB (per call)': `${(row.rssBytes / 1e6).toFixed(0)} (${(row.rssBytesPerCall / 1e6).toFixed(1)})`,
  'echoed %': (row.echoed * 100).toFixed(1),
  'client late %': (row.clientLate * 100).toFixed(2),
})

async function placeOneByOne(place: (measures: boolean) => Promise<LoadedCall>, count: number): Promise<number[]> {
  const firsts: number[] = []
  while (firsts.length < count) {
    const call = await place(false)
    firsts.push(await call.firstPacketMs)
    await call.end()
  }
  return firsts
}

async function reportLeaks(bench: Bench, place: (measures: boolean) => Promise<LoadedCall>): Promise<void> {
  await settled(bench)
  const before = await bench.collect()
  await churn(place, churnCalls)
  await settled(bench)
  const after_ = await bench.collect()
  const change = (name: 'fileDescriptors' | 'timers'): string => `${before[name]} → ${after_[name]}`
  const heap = [before, after_].map((reading) => `${(reading.heapBytes / 1e6).toFixed(1)}`).join(' → ')
  console.log(
    `\nafter ${churnCalls} calls made and ended: heap ${heap} MB, descriptors ${change('fileDescriptors')}, timers ${change('timers')}`,
  )
}

async function churn(place: (measures: boolean) => Promise<LoadedCall>, count: number): Promise<void> {
  for (let done = 0; done < count; done += churnAtOnce) {
    const calls = await Promise.all(Array.from({ length: churnAtOnce }, () => place(false)))
    await Promise.all(calls.map((call) => call.firstPacketMs))
    await Promise.all(calls.map((call) => call.end()))
  }
}

/** Waits until the service has no call left, so that one row does not pay for another. */
async function settled(bench: Bench): Promise<void> {
  for (let look = 0; look < 200 && (await bench.read()).running > 0; look++) await pause(50)
  await pause(1000)
}

async function openService(): Promise<Bench> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  const file = path.join(import.meta.dirname, 'process-under-load.ts')
  const child = fork(file, [dataDir], { execArgv: ['--expose-gc'] })
  const { url } = await answerOf<{ url: string }>(child)
  const ask = (question: string): Promise<Reading> => {
    child.send(question)
    return answerOf<Reading>(child)
  }
  return {
    url,
    read: () => ask('read'),
    collect: () => ask('collect'),
    async close() {
      const exit = once(child, 'exit')
      child.send('close')
      await exit
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** The next message of the child; rejects when it ends instead. */
function answerOf<Answer>(child: ChildProcess): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const answered = (message: unknown): void => resolve(message as Answer)
  const died = (): void => reject(new Error('the service under test ended'))
  child.once('message', answered).once('exit', died)
  return promise.finally(() => child.off('message', answered).off('exit', died))
}

const packetsOf = (calls: readonly LoadedCall[]) => ({
  sent: calls.reduce((sum, call) => sum + call.packets().sent, 0),
  received: calls.reduce((sum, call) => sum + call.packets().received, 0),
})
const inMs = (values: readonly number[], share: number): string => quantile(values, share).toFixed(0)

function after(ms: number, action: () => void): () => void {
  const timer = setTimeout(action, ms)
  return () => clearTimeout(timer)
}

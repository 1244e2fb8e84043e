/**
 * Owns `npm run bench web [talk] [half] [limit] [leaks] [seconds=20] [number of calls …]`: concurrent web calls from this process against the service
 * in another. `talk`: all talk all the time; `half`: each talks half of the time, as people do; `limit`: how many are in time; `leaks`: whether
 * anything is left behind by many calls. Without a word all of it. Each row stands beside the bare echo of the same minute, and those of `talk`
 * beside bare werift, and `@roamhq/wrtc` where WRTC_PATH says where that is.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { openBareEcho } from './bare-echo.ts'
import { placeLoadedCall, preparePackets, type LoadedCall } from './loaded-call.ts'
import { after, openLoadedService, type LoadedService } from './open-loaded.ts'
import { lateShare, openMachineBeat, type MachineBeat } from './machine-beat.ts'
import { preparePhoneSound } from './phone-load.ts'
import { inEchoes, measureRow, talkMsOf, type PhoneRow } from './phone-row.ts'
import { costCells } from './process-cost.ts'
import { printTable, quantile } from './table.ts'
import { talkWishOf } from './talk-wish.ts'
import { openWebPeers } from './web-peer.ts'

const defaultCounts = [1, 10, 50]
const warmUpCalls = 30
/** A quantile of fewer is none: calls made and ended one by one fill up the rows of few calls. */
const firstPacketSamples = 20
const maxLate = 0.01
const searchSteps = 4
const churnCalls = 200
const churnAtOnce = 5
/** Calls whose silence and speech do not fall together. */
const phases = 8

/** Shares are 0–1. The call that measures is silent between its marks, so that not all of its packets come back. */
type Row = {
  readonly count: number
  readonly firsts: readonly number[]
  readonly echoes: readonly number[]
  readonly late: number
  readonly machineLate: number
  readonly cpuMsPerCallSecond: number
  readonly rssBytes: number
  /** Beyond what the process had before the calls of the row. */
  readonly rssBytesPerCall: number
  readonly echoed: number
  readonly clientLate: number
  readonly spent: Readonly<Record<string, string>>
}

/** `talk` and `half` are loads, `marks` is what measures; `index` tells their phases apart. */
type Says = 'talk' | 'half' | 'marks'
type Place = (says: Says, index: number) => Promise<LoadedCall>
type Bench = {
  readonly service: LoadedService
  readonly place: Place
  readonly machine: MachineBeat
  clientLate(): number
}

export async function benchWeb(given: readonly string[]): Promise<void> {
  const { counts, talkMs = talkMsOf.service, has, isWhole } = talkWishOf(given, defaultCounts)
  await using closing = new AsyncDisposableStack()
  const service = await openLoadedService({ engine: 'echo' }, closing)
  const ticker = createTicker({ now: () => performance.now(), after })
  closing.defer(() => ticker.close())
  const machine = openMachineBeat()
  closing.defer(() => machine.close())
  const place = placingOn(service, ticker)
  const bench: Bench = { service, place, machine, clientLate: () => ticker.lateness().overTenMs }
  const echo = await openBareEcho(closing)
  const sound = preparePhoneSound()
  const floorOf = (count: number): Promise<PhoneRow> =>
    measureRow(echo, { ticker, sound, machine }, { count, talkMs: Math.min(talkMs, talkMsOf.echo) })

  await churn(place, warmUpCalls)
  const peers = has('talk') ? await openWebPeers(ticker, preparePackets(createOpusLibrary()).talk, closing) : []
  const rows: Row[] = []
  const cells: Record<string, string>[] = []
  const peerCells: Record<string, string>[] = []
  for (const says of ['talk', 'half'] as const)
    for (const count of has(says) || (has('limit') && says === 'talk') ? counts : []) {
      const row = await measure(bench, { count, says, talkMs })
      cells.push(toCells(says, row, await floorOf(count)))
      if (says === 'talk') rows.push(row)
      if (says === 'talk') for (const peer of peers) peerCells.push(await peer.measure({ count, talkMs }))
    }
  if (cells.length > 0) printTable(cells)
  if (peerCells.length > 0) printTable(peerCells)
  if (has('talk') && peers.length < 2)
    console.log('No row of @roamhq/wrtc: WRTC_PATH does not say where it is installed.')
  if (has('limit')) await reportLimit(rows, (count) => measure(bench, { count, says: 'talk', talkMs }))
  if (isWhole || has('leaks')) await reportLeaks(bench)
}

function placingOn({ ready: { url } }: LoadedService, ticker: ReturnType<typeof createTicker>): Place {
  const opus = createOpusLibrary()
  const { talk, half, marks } = preparePackets(opus)
  const packets = {
    talk: () => talk,
    half(index: number) {
      const begin = Math.floor(((index % phases) * half.length) / phases)
      return [...half.slice(begin), ...half.slice(0, begin)]
    },
    marks: () => marks,
  }
  return (says, index) =>
    placeLoadedCall({ url, opus, ticker, measures: says === 'marks', packets: packets[says](index) })
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

type RowWish = { readonly count: number; readonly says: Says; readonly talkMs: number }

/** The first call of the row measures the echo, the others are load. */
async function measure({ service, place, machine, clientLate }: Bench, wish: RowWish): Promise<Row> {
  const { count, says, talkMs } = wish
  const idle = await service.read()
  const single = await placeOneByOne(place, firstPacketSamples - count)
  const calls: LoadedCall[] = []
  for (let index = 0; index < count; index++) calls.push(await place(index === 0 ? 'marks' : says, index))
  const firsts = [...single, ...(await Promise.all(calls.map((call) => call.firstPacketMs)))]
  await pause(1000)
  const machineBefore = await machine.totals()
  const [before, began] = [await service.read(), performance.now()]
  const packetsBefore = packetsOf(calls)
  await pause(talkMs)
  const [now, ended] = [await service.read(), performance.now()]
  const machineLate = lateShare(machineBefore, await machine.totals())
  const packetsAfter = packetsOf(calls)
  const late = clientLate()
  const echoes = calls[0]?.echoes ?? []
  await Promise.all(calls.map((call) => call.end()))
  await service.settled()
  const callSeconds = (count * (ended - began)) / 1000
  const sent = packetsAfter.sent - packetsBefore.sent
  return {
    count,
    firsts,
    echoes,
    late: lateShare(before.beat, now.beat),
    machineLate,
    cpuMsPerCallSecond: (now.cpuMs - before.cpuMs) / callSeconds,
    rssBytes: now.rssBytes,
    rssBytesPerCall: (now.rssBytes - idle.rssBytes) / count,
    echoed: (packetsAfter.received - packetsBefore.received) / sent,
    clientLate: late,
    spent: costCells(before, now, callSeconds, 'call-second'),
  }
}

/** `floor`: the bare echo of as many G.711 calls, in the same minute. */
const toCells = (says: Says, row: Row, floor: PhoneRow): Record<string, string> => ({
  calls: String(row.count),
  'which talk': says === 'talk' ? 'always' : 'half of the time',
  'first packet p50/p95 ms': `${inMs(row.firsts, 0.5)} / ${inMs(row.firsts, 0.95)}`,
  'echo p50/p95/p99 ms': `${inMs(row.echoes, 0.5)} / ${inMs(row.echoes, 0.95)} / ${inMs(row.echoes, 0.99)}`,
  'CPU ms per call-second': row.cpuMsPerCallSecond.toFixed(2),
  'in echoes': inEchoes([row.cpuMsPerCallSecond], floor),
  'bare echo ms per call-second': quantile(floor.cpuMsPerCallSecond, 0.5).toFixed(2),
  'late >10 ms %': (row.late * 100).toFixed(2),
  'machine late %': (row.machineLate * 100).toFixed(2),
  'RSS MB': (row.rssBytes / 1e6).toFixed(0),
  'RSS MB per call': (row.rssBytesPerCall / 1e6).toFixed(1),
  'echoed %': (row.echoed * 100).toFixed(1),
  'client late %': (row.clientLate * 100).toFixed(2),
  ...row.spent,
})

async function placeOneByOne(place: Place, count: number): Promise<number[]> {
  const firsts: number[] = []
  while (firsts.length < count) {
    const call = await place('talk', 0)
    firsts.push(await call.firstPacketMs)
    await call.end()
  }
  return firsts
}

async function reportLeaks({ service, place }: Bench): Promise<void> {
  await service.settled()
  const before = await service.collect()
  await churn(place, churnCalls)
  await service.settled()
  const now = await service.collect()
  const change = (name: 'fileDescriptors' | 'timers'): string => `${before[name]} → ${now[name]}`
  const heap = [before, now].map((reading) => `${(reading.heapBytes / 1e6).toFixed(1)}`).join(' → ')
  console.log(
    `\nafter ${churnCalls} calls made and ended: heap ${heap} MB, descriptors ${change('fileDescriptors')}, timers ${change('timers')}`,
  )
}

async function churn(place: Place, count: number): Promise<void> {
  for (let done = 0; done < count; done += churnAtOnce) {
    const calls = await Promise.all(Array.from({ length: churnAtOnce }, (_, index) => place('talk', index)))
    await Promise.all(calls.map((call) => call.firstPacketMs))
    await Promise.all(calls.map((call) => call.end()))
  }
}

const packetsOf = (calls: readonly LoadedCall[]) => ({
  sent: calls.reduce((sum, call) => sum + call.packets().sent, 0),
  received: calls.reduce((sum, call) => sum + call.packets().received, 0),
})
const inMs = (values: readonly number[], share: number): string => quantile(values, share).toFixed(0)

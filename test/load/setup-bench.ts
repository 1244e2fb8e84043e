/**
 * Owns `npm run bench setup [gate] [beside=30] [seconds=10] [statements] [calls a second …]`: telephone calls that are set up and torn down at a steady
 * rate, beside calls that talk. Prints what one costs the service and the database, how long an INVITE waits, and how late the calls that talk are
 * meanwhile. With `gate` new calls are refused while running ones would suffer, as in service; with `statements` it also prints which statements the
 * service sent for them, and how often.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createTicker } from '../../media/ticker/ticker.ts'
import { lateShare, openMachineBeat } from './machine-beat.ts'
import { after, calling, openLoadedService, sip, type LoadedService, type PlacedCall } from './open-loaded.ts'
import type { PostgresCost } from './postgres-cost.ts'
import { costCells } from './process-cost.ts'
import type { Reading } from './process-under-load.ts'
import { openRawSipCaller, type RawSipCaller } from '../../tools/callers/raw-sip-caller.ts'
import { placeSteadily } from './steady-calls.ts'
import { printTable, quantile } from './table.ts'
import { talkWishOf } from './talk-wish.ts'

const defaultRates = [50, 150]
const defaultMs = 10_000
const defaultBeside = 30
const warmUpMs = 2_000
const restMs = 5_000
/** Connections tell the server's counters what they did once a second. */
const toldMs = 1_500

type DatabaseReading = PostgresCost & { readonly statements: number }
type Look = { readonly reading: Reading; readonly database: DatabaseReading; readonly at: number }

export async function benchSetup(given: readonly string[]): Promise<void> {
  const { counts: rates, talkMs = defaultMs } = talkWishOf(given, defaultRates)
  const toldTexts = given.includes('statements')
  const beside = Number(given.find((word) => /^beside=\d+$/.test(word))?.slice('beside='.length) ?? defaultBeside)
  await using closing = new AsyncDisposableStack()
  const gate = given.includes('gate') ? 'gate' : 'open'
  const service = await openLoadedService({ engine: 'phone', gate }, closing)
  const ticker = createTicker({ now: () => performance.now(), after })
  closing.defer(() => ticker.close())
  const machine = openMachineBeat()
  closing.defer(() => machine.close())
  await service.ask('engine pcmu')
  const place = await sip.open({ ...service, ticker, closing })
  const talking: PlacedCall[] = []
  while (talking.length < beside) talking.push(await place(true))
  await service.ask('engine idle')
  const caller = await openRawSipCaller({ port: service.ready.sipPort, called: service.ready.called, calling })
  closing.defer(() => caller.close())
  await run(caller, rates[0] ?? 1, warmUpMs)

  const rows: Record<string, string>[] = []
  for (const rate of rates) {
    const rest = await restOf(service)
    const machineBefore = await machine.totals()
    const before = await look(service)
    const textsBefore = await textsOf(service)
    const placed = await run(caller, rate, talkMs)
    const now = await look(service)
    if (toldTexts) printTexts(rate, placed.ended(), textsBefore, await textsOf(service))
    const machineLate = lateShare(machineBefore, await machine.totals())
    rows.push(
      cellsOf({ gate, rate, beside, rest, machineLate, clientLate: ticker.lateness().overTenMs }, placed, before, now),
    )
  }
  await Promise.all(talking.map((call) => call.end()))
  await service.settled()
  printTable(rows)
}

async function run(caller: RawSipCaller, rate: number, ms: number) {
  const calls = placeSteadily(caller, rate)
  await pause(ms)
  await calls.end()
  return calls
}

type Texts = ReadonlyMap<string, number>

const textsOf = async (service: LoadedService): Promise<Texts> =>
  new Map(await service.ask<[string, number][]>('statements'))

/** What is sent less often is a round of the service, which no call causes. */
const leastPerCall = 0.02
const charactersOfText = 150

function printTexts(rate: number, calls: number, before: Texts, now: Texts): void {
  const grown = [...now].map(([text, count]) => ({ text, perCall: (count - (before.get(text) ?? 0)) / calls }))
  const rows = grown
    .filter(({ perCall }) => perCall >= leastPerCall)
    .toSorted((first, second) => second.perCall - first.perCall)
    .map(({ text, perCall }) => ({
      'sent per call': perCall.toFixed(2),
      [`statement, ${rate} calls a second`]: text.replaceAll(/\s+/g, ' ').trim().slice(0, charactersOfText),
    }))
  printTable(rows)
}

/** The cost of the calls that talk, a ms. */
type Rest = { readonly own: number; readonly postgres: number }

async function restOf(service: LoadedService): Promise<Rest> {
  const before = await look(service)
  await pause(restMs)
  const now = await look(service)
  const ms = now.at - before.at
  return {
    own: (now.reading.cpuMs - before.reading.cpuMs) / ms,
    postgres: (now.database.cpuMs - before.database.cpuMs) / ms,
  }
}

async function look(service: LoadedService): Promise<Look> {
  await pause(toldMs)
  const reading = await service.read()
  return { reading, database: await service.ask<DatabaseReading>('database'), at: performance.now() }
}

type Row = {
  readonly gate: string
  readonly rate: number
  readonly beside: number
  readonly rest: Rest
  readonly machineLate: number
  readonly clientLate: number
}

function cellsOf(row: Row, placed: ReturnType<typeof placeSteadily>, before: Look, now: Look): Record<string, string> {
  const calls = placed.ended()
  const seconds = (now.at - before.at) / 1_000
  const grown = (of: keyof DatabaseReading): number => now.database[of] - before.database[of]
  const perCall = (value: number, digits = 1): string => (value / calls).toFixed(digits)
  const { cpuMs } = now.reading
  return {
    'calls a second': String(row.rate),
    'talk beside': `beside ${row.beside} that talk${row.gate === 'gate' ? ', with the gate' : ''}`,
    ended: String(calls),
    failed: String(placed.failed()),
    'INVITE to 200 p50/p95 ms': [0.5, 0.95].map((share) => quantile(placed.answeredMs, share).toFixed(0)).join(' / '),
    'late >10 ms %': (lateShare(before.reading.beat, now.reading.beat) * 100).toFixed(2),
    'machine late %': (row.machineLate * 100).toFixed(2),
    'client late %': (row.clientLate * 100).toFixed(2),
    'CPU ms per call': perCall(cpuMs - before.reading.cpuMs - row.rest.own * seconds * 1_000),
    'and of Postgres': perCall(grown('cpuMs') - row.rest.postgres * seconds * 1_000),
    'statements per call': perCall(grown('statements')),
    'commits per call': perCall(grown('commits')),
    'fsyncs per call': perCall(grown('fsyncs'), 2),
    'WAL KB per call': perCall(grown('walBytes') / 1_000),
    'steps per call': perCall(grown('steps')),
    'steps a second': (grown('steps') / seconds).toFixed(0),
    ...costCells(before.reading, now.reading, calls, 'call'),
  }
}

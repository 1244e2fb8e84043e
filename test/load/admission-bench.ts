/**
 * Owns `npm run bench admission [web | sip] [seconds]`: running calls, while three times as many arrive as the node can bear, without the gate before
 * new calls and with it. What it can bear is worked out from what a call and a set-up cost in the same run.
 */
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { createTicker } from '../../media/ticker/ticker.ts'
import { after, openLoadedService, sip, web, type Line, type Place, type PlacedCall } from './open-loaded.ts'
import type { Reading } from './process-under-load.ts'
import { printTable, quantile } from './table.ts'

type Costs = { readonly perCallSecond: number; readonly perSetUp: number }

const times = 3
/** Of the time of the thread: what a node bears, whatever the gate aims at. */
const bearable = 0.7
const defaultSeconds = 15
/** Ms that a call that arrives lasts. */
const lasts = 3_000
const warmUpCalls = 40
const setUps = 40
const costSeconds = 5
const restSeconds = 5
/** Somebody who waits longer has given up. */
const patience = 5_000
/** So long after the last one those that came too late are waited for. */
const longestLate = 20_000

/** Calls that run meanwhile. */
const runningOn = { web: 12, sip: 30 } as const

export async function benchAdmission(given: readonly string[]): Promise<void> {
  const lines = [web, sip].filter(({ name }) => given.includes(name) || !given.some((word) => /^[a-z]/.test(word)))
  const seconds = Number(given.find((word) => /^\d+$/.test(word)) ?? defaultSeconds)
  const rows: Record<string, string>[] = []
  for (const line of lines) {
    let costs: Costs | null = null
    for (const gate of ['open', 'gate'] as const) {
      const measured = await measure(line, { gate, seconds, costs })
      costs = measured.costs
      rows.push(measured.cells)
      console.log(Object.values(measured.cells).join(' | '))
    }
  }
  printTable(rows)
  // Calls that never came about have sockets that nobody can close.
  process.exit()
}

type Run = { readonly gate: 'open' | 'gate'; readonly seconds: number; readonly costs: Costs | null }

async function measure(line: Line, { gate, seconds, costs: known }: Run) {
  await using closing = new AsyncDisposableStack()
  const service = await openLoadedService({ engine: line.name === 'sip' ? 'phone' : 'echo', gate }, closing)
  if (line.name === 'sip') await service.ask('engine pcmu')
  const ticker = createTicker({ now: () => performance.now(), after })
  closing.defer(() => ticker.close())
  const place = await line.open({ ...service, ticker, closing })
  const { read } = service
  const runningCalls = runningOn[line.name]

  await churn(place, warmUpCalls)
  const running = await placeMany(place, runningCalls)
  const costs = known ?? (await costsOf(place, read, runningCalls))
  const borne = arrivalsBorne(costs, runningCalls)
  const rested = await read()
  await pause(restSeconds * 1_000)
  const before = await read()
  const arrived = await arrive(place, { perSecond: times * borne, seconds })
  const now = await read()
  const clientLate = ticker.lateness().overTenMs
  await arrived.over()
  for (const call of running) await call.end()
  return { costs, cells: cellsOf({ line, gate, seconds, borne }, arrived, { rested, before, now, clientLate }) }
}

async function churn(place: Place, count: number): Promise<void> {
  for (let done = 0; done < count; done++) await (await place(false)).end()
}

async function placeMany(place: Place, count: number) {
  const calls: PlacedCall[] = []
  // Slowly: the gate is there already.
  while (calls.length < count) {
    const call = await place(true).catch((error: unknown) => {
      if (!isRefusal(error)) throw error
      return null
    })
    if (call) calls.push(call)
    await pause(call ? 50 : 500)
  }
  return calls
}

/** In ms of CPU of the service: of a running call in a second, and of a set-up with its end. */
async function costsOf(place: Place, read: () => Promise<Reading>, running: number): Promise<Costs> {
  await pause(1_000)
  const before = await read()
  await pause(costSeconds * 1_000)
  const talked = await read()
  const perSecond = (talked.cpuMs - before.cpuMs) / costSeconds
  const beganAt = performance.now()
  await churn(place, setUps)
  const took = (performance.now() - beganAt) / 1_000
  const perSetUp = ((await read()).cpuMs - talked.cpuMs - took * perSecond) / setUps
  return { perCallSecond: perSecond / running, perSetUp: Math.max(1, perSetUp) }
}

/** A second, beside those that run. */
const arrivalsBorne = ({ perCallSecond, perSetUp }: Costs, running: number): number =>
  Math.max(0.5, (bearable * 1_000 - running * perCallSecond) / (perCallSecond * (lasts / 1_000) + perSetUp))

type Arrived = {
  readonly asked: number
  readonly admitted: number
  readonly refused: number
  readonly failed: number
  readonly setUpMs: readonly number[]
  readonly refusedMs: readonly number[]
  /** Resolves when none of them is left. */
  readonly over: () => Promise<void>
}

async function arrive(
  place: Place,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
): Promise<Arrived> {
  const told = { asked: 0, admitted: 0, refused: 0, failed: 0, setUpMs: [] as number[], refusedMs: [] as number[] }
  const underWay = new Set<Promise<void>>()
  const late = new Set<Promise<void>>()
  const one = async (): Promise<void> => {
    const beganAt = performance.now()
    try {
      const call = await inTime(place(false), late)
      told.admitted++
      told.setUpMs.push(performance.now() - beganAt)
      await pause(lasts)
      await call.end()
    } catch (error) {
      if (!isRefusal(error)) return void told.failed++
      told.refused++
      told.refusedMs.push(performance.now() - beganAt)
    }
  }
  const beganAt = performance.now()
  while (performance.now() - beganAt < seconds * 1_000) {
    told.asked++
    const work: Promise<void> = one().finally(() => underWay.delete(work))
    underWay.add(work)
    await pause(Math.max(0, beganAt + (told.asked * 1_000) / perSecond - performance.now()))
  }
  const over = async (): Promise<void> => {
    await Promise.all(underWay)
    await Promise.race([Promise.all(late), pause(longestLate)])
  }
  return { ...told, over }
}

const isRefusal = (error: unknown): boolean => /refused.*503/.test(String(error))

/** A call that comes too late is ended when it comes. */
async function inTime(call: ReturnType<Place>, late: Set<Promise<void>>): ReturnType<Place> {
  const tooLate = Symbol('late')
  const first = await Promise.race([call, pause(patience, tooLate)])
  if (typeof first !== 'symbol') return first
  const ended: Promise<void> = call.then(({ end }) => end()).catch(() => undefined)
  late.add(ended.finally(() => late.delete(ended)))
  throw new Error('not in time')
}

type Told = { readonly line: Line; readonly gate: string; readonly seconds: number; readonly borne: number }
type Between = Readonly<Record<'rested' | 'before' | 'now', Reading>> & { readonly clientLate: number }

function cellsOf({ line, gate, seconds, borne }: Told, arrived: Arrived, between: Between) {
  const { rested, before, now, clientLate } = between
  const ms = (values: readonly number[]): string => quantile(values, 0.95).toFixed(0)
  return {
    'running calls': `${runningOn[line.name]} ${line.name}`,
    'new ones, borne / asked a second': `${borne.toFixed(1)} / ${(arrived.asked / seconds).toFixed(1)}`,
    gate: gate === 'gate' ? 'on' : 'off',
    admitted: String(arrived.admitted),
    refused: String(arrived.refused),
    'not in time': String(arrived.failed),
    'running late >10 ms, before / then %': `${lateBetween(rested, before)} / ${lateBetween(before, now)}`,
    'set-up / refusal p95 ms': `${ms(arrived.setUpMs)} / ${ms(arrived.refusedMs)}`,
    'client late %': (clientLate * 100).toFixed(2),
  }
}

/** Slots that were left out are late. */
function lateBetween(before: Reading, now: Reading): string {
  const of = (name: 'ticks' | 'late' | 'skipped'): number => now.beat[name] - before.beat[name]
  return ((100 * (of('late') + of('skipped'))) / Math.max(1, of('ticks') + of('skipped'))).toFixed(2)
}

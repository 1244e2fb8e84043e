/**
 * Owns `npm run bench profile <web | sip | setup | burst | rest> [calls | calls a second]`: the service under that load with the CPU profiler of V8 in each of its
 * threads, and what each stage takes by itself. The same load without the profiler, just before, says what the profiler itself costs.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createTicker } from '../../media/ticker/ticker.ts'
import {
  after,
  calling,
  openLoadedService,
  sip,
  web,
  type Line,
  type LoadedService,
  type PlacedCall,
} from './open-loaded.ts'
import type { ThreadProfile } from './own-profile.ts'
import { openRawSipCaller, type RawSipCaller } from '../../tools/callers/raw-sip-caller.ts'
import { idle } from './read-profile.ts'
import { placeSteadily } from './steady-calls.ts'
import { printTable } from './table.ts'

/** Something to do for as long as it lasts; `units` are what its cost is told by. */
type Load = { readonly units: () => number; end(): Promise<void> }
type Kind = {
  readonly unit: string
  readonly count: number
  readonly engine: 'echo' | 'phone'
  begin(service: LoadedService, count: number, closing: AsyncDisposableStack): Promise<Load>
}

const measuredMs = 12_000
/** Code is compiled and calls are in the midst of it. */
const settleMs = 4_000
/** Ms in which what a call leaves behind is done. */
const betweenBursts = 500
/** Ms that a call of a burst lasts. */
const heldInBurst = 1_000
/** Nobody listens on that port. */
const nowhere = 1_999
/** Part of the time: less is not worth a line. */
const leastShare = 0.002
/** Part of the time: a thread that does less is left out. */
const leastBusy = 0.005

const talking = (line: Line, engine: Kind['engine'], count: number): Kind => ({
  unit: 'call-second',
  count,
  engine,
  async begin(service, calls, closing) {
    if (engine === 'phone') await service.ask('engine pcmu')
    const ticker = createTicker({ now: () => performance.now(), after })
    closing.defer(() => ticker.close())
    const place = await line.open({ ...service, ticker, closing })
    const placed: PlacedCall[] = []
    while (placed.length < calls) placed.push(await place(true))
    const began = performance.now()
    return {
      units: () => (calls * (performance.now() - began)) / 1_000,
      end: async () => void (await Promise.all(placed.map((call) => call.end()))),
    }
  },
})

/** Of calls that say nothing, to an engine that says nothing. */
async function openCaller(service: LoadedService, closing: AsyncDisposableStack): Promise<RawSipCaller> {
  await service.ask('engine idle')
  const { sipPort: port, called } = service.ready
  const caller = await openRawSipCaller({ port, called, calling })
  closing.defer(() => caller.close())
  return caller
}

const setup: Kind = {
  unit: 'call',
  count: 40,
  engine: 'phone',
  async begin(service, perSecond, closing) {
    const caller = await openCaller(service, closing)
    const calls = placeSteadily(caller, perSecond)
    return { units: calls.ended, end: calls.end }
  },
}

/** All at once, again and again: those before have ended by then. */
const burst: Kind = {
  unit: 'call',
  count: 50,
  engine: 'phone',
  async begin(service, atOnce, closing) {
    const caller = await openCaller(service, closing)
    let [ended, isOver] = [0, false]
    const one = async (): Promise<void> => {
      const call = await caller.call(nowhere)
      await pause(heldInBurst)
      await call.hangUp()
      ended++
    }
    const bursts = async (): Promise<void> => {
      while (!isOver) {
        await Promise.allSettled(Array.from({ length: atOnce }, one))
        await pause(betweenBursts)
      }
    }
    const over = bursts()
    return {
      units: () => ended,
      async end() {
        isOver = true
        await over
      },
    }
  },
}

/** Nothing to do: what is left is what it does by itself. */
const rest: Kind = {
  unit: 'second',
  count: 0,
  engine: 'phone',
  begin: () => Promise.resolve({ units: () => performance.now() / 1_000, end: () => Promise.resolve() }),
}

const kinds: Readonly<Record<string, Kind>> = {
  web: talking(web, 'echo', 20),
  sip: talking(sip, 'phone', 60),
  setup,
  burst,
  rest,
}

export async function benchProfile([name = '', count]: readonly string[]): Promise<void> {
  const kind = kinds[name]
  if (!kind)
    return console.log('usage: npm run bench profile <web | sip | setup | burst | rest> [calls | calls a second]')
  await using closing = new AsyncDisposableStack()
  const service = await openLoadedService(kind, closing)
  const load = await kind.begin(service, Number(count ?? kind.count), closing)
  await pause(settleMs)
  const plain = await measure(service, load)
  await service.ask('profile')
  const profiled = await measure(service, load)
  const threads = await service.ask<ThreadProfile[]>('end of profile')
  await load.end()
  await service.settled()
  for (const thread of threads) report(thread, kind, profiled)
  const [without, within] = [plain, profiled].map(({ cpuMs, units }) => (cpuMs / units).toFixed(2))
  console.log(
    `\nThe process took ${without} ms of CPU per ${kind.unit} without the profiler and ${within} with it: shares count, not sums.\n` +
      'A profiler sees time and not CPU: a thread that waits for a core is charged for it.',
  )
}

type Measured = { readonly cpuMs: number; readonly units: number }

async function measure({ read }: LoadedService, load: Load): Promise<Measured> {
  const [before, units] = [await read(), load.units()]
  await pause(measuredMs)
  return { cpuMs: (await read()).cpuMs - before.cpuMs, units: load.units() - units }
}

function report({ thread, stages }: ThreadProfile, { unit }: Kind, { units }: Measured): void {
  const busy = stages.filter(({ stage }) => stage !== idle)
  const all = busy.reduce((sum, { ms }) => sum + ms, 0)
  const idleMs = stages.find(({ stage }) => stage === idle)?.ms ?? 0
  if (all < leastBusy * (all + idleMs)) return
  console.log(`\nthread ${thread}: busy ${((all / (all + idleMs)) * 100).toFixed(0)} % of the time`)
  printTable(
    busy
      .filter(({ ms }) => ms / all >= leastShare)
      .map(({ stage, ms, functions }) => ({
        'stage of thread': `${stage}, ${thread}`,
        [`ms per ${unit}`]: (ms / units).toFixed(3),
        'of the busy time %': ((ms / all) * 100).toFixed(1),
        'most of it': functions.map(([name, part]) => `${name} ${((part / ms) * 100).toFixed(0)} %`).join(', '),
      })),
  )
}

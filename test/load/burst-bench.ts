/**
 * Owns `npm run bench burst [calls at once] [running calls]`: running telephone calls, while many are placed in one moment. How late their sound comes
 * before and meanwhile, and how long those that were placed waited for their answer.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createTicker } from '../../media/ticker/ticker.ts'
import { forkProcess } from './forked-process.ts'
import { openLoadedPhone, preparePhoneSound } from './phone-load.ts'
import type { Reading } from './process-under-load.ts'
import { openRawSipCaller, type RawSipCaller } from '../../tools/callers/raw-sip-caller.ts'
import { printTable, quantile } from './table.ts'

type Ready = { readonly sipPort: number; readonly called: string }

const defaults = [150, 20]
const warmUpCalls = 60
const atRestMs = 5_000
/** After the last answer: what the set-ups left behind to do. */
const afterMs = 1_000
/** Nobody listens there. */
const deafPort = 1_999

export async function benchBurst(given: readonly string[]): Promise<void> {
  const [placed = 0, running = 0] = defaults.map((number, index) => Number(given[index] ?? number))
  await using closing = new AsyncDisposableStack()
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  // As `npm start` runs it: a larger young generation is collected in longer pauses.
  const child = await forkProcess<Ready>('process-under-load.ts', [dataDir, 'phone'], ['--max-semi-space-size=8'])
  closing.defer(() => child.close())
  const caller = await openRawSipCaller({ ...child.ready, port: child.ready.sipPort, calling: '+12025550150' })
  closing.defer(() => caller.close())
  const read = (): Promise<Reading> => child.ask('read')

  await child.ask('engine idle')
  for (let done = 0; done < warmUpCalls; done++) await (await caller.call(deafPort)).hangUp()
  await child.ask('engine pcmu')
  const talks = await openTalks(caller, running, closing)
  const rested = await read()
  await pause(atRestMs)
  const before = await read()
  await child.ask('engine idle')
  const calls = await Promise.allSettled(Array.from({ length: placed }, () => caller.call(deafPort)))
  await pause(afterMs)
  const now = await read()
  const answered = calls.flatMap((call) => (call.status === 'fulfilled' ? [call.value] : []))
  const answers = answered.map(({ answeredMs }) => answeredMs)
  printTable([
    {
      'running calls': String(running),
      'placed at once': String(placed),
      answered: String(answered.length),
      'INVITE to 200 p50/p95 ms': `${quantile(answers, 0.5).toFixed(0)} / ${quantile(answers, 0.95).toFixed(0)}`,
      'CPU ms per set-up': ((now.cpuMs - before.cpuMs) / placed).toFixed(1),
      'running late >10 ms, before / meanwhile %': `${lateBetween(rested, before)} / ${lateBetween(before, now)}`,
      'no core %': (((now.waitedForCoreMs - before.waitedForCoreMs) / now.cpuMs) * 100).toFixed(1),
    },
  ])
  for (const call of [...answered, ...talks]) await call.hangUp()
}

async function openTalks(caller: RawSipCaller, count: number, closing: AsyncDisposableStack) {
  const ticker = createTicker({ now: () => performance.now(), after })
  closing.defer(() => ticker.close())
  const sound = preparePhoneSound()
  const talks = []
  for (let made = 0; made < count; made++) {
    const phone = await openLoadedPhone({ ticker, sound, measures: false })
    closing.defer(() => phone.close())
    const call = await caller.call(phone.port)
    phone.begin(call.remote)
    talks.push(call)
  }
  return talks
}

/** Of the slots that were due, percent. */
function lateBetween({ beat: first }: Reading, { beat: last }: Reading): string {
  const due = last.ticks - first.ticks + last.skipped - first.skipped
  const late = last.late - first.late + last.skipped - first.skipped
  return ((late / due) * 100).toFixed(2)
}

function after(ms: number, action: () => void): () => void {
  const timer = setTimeout(action, ms)
  return () => clearTimeout(timer)
}

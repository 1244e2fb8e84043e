/** Owns `npm run soak`: calls come and go for so many minutes, and what the service has of everything must not grow. Exit code 1: something grows. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { readEnvironment } from '../../app/config.ts'
import { systemClock as clock } from '../../app/clock.ts'
import { pause } from '../../model/clock.ts'
import { Cannot, failureText } from '../cannot.ts'
import { openStage } from '../simulate/open-stage.ts'
import { endingSignal } from '../simulate/ending-signal.ts'
import { tableVerdictsOf, verdictsOf, type Sample } from './growth.ts'
import { openSoaked, type Soaked } from './open-soaked.ts'
import { startSoakCalls } from './soak-calls.ts'
import { processTable, tablesTable } from './soak-report.ts'

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const options = {
  minutes: { type: 'string', default: '5' },
  calls: { type: 'string', default: '3' },
  seed: { type: 'string', default: '1' },
  help: { type: 'boolean', default: false },
} as const

const usage = `npm run soak -- [--minutes 5] [--calls 3] [--seed 1]
  Calls by browser and telephone come and go, so many at once; the first third, 90 s at most, is for warming up.`

const longestWarmUp = 90_000
const sampleEvery = 2_000
/** What a call leaves for a while is gone: a SIP transaction lasts 32 s (RFC 3261 §17.1.1.2), which is the same after each load. */
const restFor = 4_000
/** More than this share of calls without a line says that the soak was none. */
const mayFail = 0.05

async function main(): Promise<number> {
  const { values } = parseArgs({ options })
  if (values.help) {
    print(usage)
    return 0
  }
  const [minutes, calls, seed] = [numberOf(values, 'minutes'), numberOf(values, 'calls'), numberOf(values, 'seed')]
  if (process.platform !== 'linux') throw new Cannot('npm run soak reads /proc, which Linux has alone')
  const signal = endingSignal(print)
  const environment = readEnvironment()
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-soak-'))
  closing.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const service = await openSoaked(folder, environment)
  closing.defer(() => service.close())
  const begin = await service.count()
  const { url, key, sip } = service
  const stage = await openStage({ deployment: { url, key }, sip, from: null, settings: {}, signal }, closing)
  const load = (ms: number) =>
    loadFor(ms, { service, start: () => startSoakCalls(stage, { atOnce: calls, seed }), signal })
  const whole = minutes * 60_000
  const warmUp = Math.min(longestWarmUp, whole / 3)
  print(`Warming up for ${Math.round(warmUp / 1000)} s …`)
  const before = await load(warmUp)
  print(`${before.done} calls; ${Math.round((whole - warmUp) / 1000)} s are measured …`)
  const after = await load(whole - warmUp)
  if (signal.aborted) return 130
  const verdicts = verdictsOf(after.samples, { first: before.rest, last: after.rest })
  const tables = tableVerdictsOf(begin, before.counted, after.counted)
  print(
    `\n${after.done} calls by browser and telephone, ${after.samples.length} samples\n${processTable(verdicts)}\n\n${tablesTable(tables)}`,
  )
  const failed = [...before.failed, ...after.failed]
  for (const why of failed) print(`a call failed: ${why}`)
  const growing = [...verdicts.filter(({ grows }) => grows), ...tables.filter(({ grows }) => grows)]
  const isSoaked = after.done > 0 && failed.length <= mayFail * (before.done + after.done)
  if (!isSoaked) print('Too many calls failed: nothing is known of growth.')
  else print(growing.length === 0 ? 'Nothing grows.' : `${growing.length} grow.`)
  return isSoaked && growing.length === 0 ? 0 : 1
}

type LoadDeps = {
  readonly service: Soaked
  readonly signal: AbortSignal
  start(): ReturnType<typeof startSoakCalls>
}

/** Calls for so long, with samples; then rest, and what is there then. */
async function loadFor(ms: number, { service, start, signal }: LoadDeps) {
  const calls = start()
  const samples: Sample[] = []
  for (const until = performance.now() + ms; performance.now() < until && !signal.aborted;) {
    await pause(clock, sampleEvery, signal)
    samples.push(await service.sample())
  }
  await calls.stop()
  await pause(clock, restFor, signal)
  return { ...calls.counts(), samples, rest: await service.sample(), counted: await service.count() }
}

function numberOf(values: Readonly<Record<string, unknown>>, name: 'minutes' | 'calls' | 'seed'): number {
  const value = Number(values[name])
  const isGood = name === 'minutes' ? value >= 0.5 && value <= 24 * 60 : Number.isInteger(value) && value >= 1
  if (!isGood)
    throw new Cannot(
      `--${name} must be ${name === 'minutes' ? 'a number from 0.5 to 1440' : 'a whole number from 1 on'}, not ${JSON.stringify(values[name])}`,
    )
  return value
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${failureText(error)}\n`)
    process.exit(2)
  },
)

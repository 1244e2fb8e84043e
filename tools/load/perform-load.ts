/** Owns a load from its options to its result: who is called, the processes that call, a line that says how it goes, what it costs the service. */
import { calledOf, spoken, type Called } from './called-target.ts'
import { verdictOf, type Verdict } from './expectations.ts'
import { createLoadFigures, type LoadFigures, type LoadResult } from './load-figures.ts'
import type { Arrivals, LoadJob } from './load-job.ts'
import { WrongOptions, type LoadOptions } from './load-options.ts'
import { openLoadProcesses } from './load-processes.ts'
import { readSession } from './session/read-session.ts'
import { needsService } from './session/session-check.ts'
import type { CostReader } from './loaded-cost.ts'

export type Performed = {
  readonly result: LoadResult
  readonly verdicts: readonly Verdict[]
  readonly target: string
  /** Of the whole load, ms. */
  readonly ms: number
  readonly startedAt: string
  readonly wasStopped: boolean
}

export type PerformDeps = {
  readonly options: LoadOptions
  /** Ends it in order: calls are hung up. */
  readonly stopping: AbortSignal
  /** A line for who watches, which the next one takes the place of. */
  readonly progress: (line: string) => void
}

/** At most so many windows are kept for the plots. */
const windows = 300
const tickEvery = 1_000

export async function performLoad({ options, stopping, progress }: PerformDeps): Promise<Performed> {
  await using closing = new AsyncDisposableStack()
  progress('the load is being prepared …')
  // What is wrong with a file is told before anything is started.
  const sessions = await Promise.all(options.files.map(readSession))
  const asking = sessions.find(needsService)
  if (asking && !options.isSelf && !options.web)
    throw new WrongOptions(`${asking.file} expects a transcript or an outcome: --url and --key say whom to ask`)
  const called = await calledOf(options, closing)
  const phrases = options.files.length > 0 ? [] : await spoken(options.say)
  const processes = await openLoadProcesses(options.processes)
  closing.defer(() => processes.close())
  const stop = (): void => processes.stop()
  stopping.addEventListener('abort', stop, { once: true })
  const figures = createLoadFigures()
  const began = performance.now()
  const startedAt = new Date().toISOString()
  const unwatch = watch(options, { figures, readCost: called.readCost, progress, began })
  try {
    if (!stopping.aborted) await processes.run({ ...jobOf(options, called), phrases }, (batch) => figures.add(batch))
  } finally {
    stopping.removeEventListener('abort', stop)
    await unwatch()
  }
  const result = figures.read()
  const verdicts = options.expectations.map((expectation) => verdictOf(expectation, result))
  const ms = performance.now() - began
  return { result, verdicts, target: targetOf(called), ms, startedAt, wasStopped: stopping.aborted }
}

const jobOf = (options: LoadOptions, { web, sip }: Called): Omit<LoadJob, 'part' | 'of' | 'beginsAt' | 'phrases'> => ({
  ways: options.ways,
  web,
  sip,
  arrivals: options.arrivals,
  weather: options.weather,
  holdMs: options.holdMs,
  atOnce: options.atOnce,
  allowedHosts: options.allowedHosts,
  files: options.files,
})

const targetOf = ({ web, sip }: Called): string =>
  [web?.url, sip && `sip:${sip.called}@${sip.target.host}:${sip.target.port};transport=${sip.target.protocol}`]
    .filter((part) => typeof part === 'string')
    .join(' and ')

type Watched = {
  readonly figures: LoadFigures
  readonly readCost: CostReader | null
  readonly progress: (line: string) => void
  readonly began: number
}

/** The result ends it, with a last reading. */
function watch(options: LoadOptions, { figures, readCost, progress, began }: Watched): () => Promise<void> {
  const every = Math.max(1, Math.ceil(plannedMs(options.arrivals) / tickEvery / windows))
  let ticks = 0
  let reading = Promise.resolve()
  const at = (): number => performance.now() - began
  const read = async (): Promise<void> => {
    if (readCost) figures.cost(await readCost(), at())
  }
  reading = read()
  const timer = setInterval(() => {
    reading = reading.then(read, read)
    ticks++
    if (ticks % every === 0) figures.turn(at())
    progress(lineOf(figures.read(), at()))
  }, tickEvery)
  return async () => {
    clearInterval(timer)
    await reading.then(read, read)
    figures.turn(at())
  }
}

const plannedMs = ({ durationMs, rampMs, calls, rate }: Arrivals): number =>
  Math.min(durationMs, rampMs + (calls * 1000) / rate)

function lineOf({ counts, measured }: LoadResult, at: number): string {
  const ms = (value: number | undefined): string => (value === undefined ? '–' : `${value.toFixed(0)} ms`)
  return [
    `${(at / 1000).toFixed(0)} s`,
    `${counts.due} due`,
    `${counts.running} running`,
    `${counts.completed} completed`,
    `${counts.failed} failed`,
    `set-up p95 ${ms(measured.setUp?.p95)}`,
    `turn p95 ${ms(measured.turn?.p95)}`,
    `own lateness p99 ${ms(measured.loopDelay?.p99)}`,
  ].join(' · ')
}

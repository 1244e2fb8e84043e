/** Owns a load from its options to its result: who is called, the processes that call, a line that says how it goes, what it costs the service. */
import { readFile } from 'node:fs/promises'
import { systemClock } from '../../app/clock.ts'
import { silentLog } from '../../model/log.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { accountOfKey, askService } from './ask-api.ts'
import { verdictOf, type Verdict } from './expectations.ts'
import { createLoadFigures, type LoadFigures, type LoadResult } from './load-figures.ts'
import type { LoadJob, SipSide, WebTarget } from './load-job.ts'
import type { LoadOptions } from './load-options.ts'
import { openLoadProcesses } from './load-processes.ts'
import { openOwnService } from './own-parley.ts'
import { costOfMetrics, costOfProcess, type CostReader } from './loaded-cost.ts'

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

type Called = { readonly web: WebTarget | null; readonly sip: SipSide | null; readonly readCost: CostReader | null }

/** At most so many windows are kept for the plots. */
const windows = 300
const tickEvery = 1_000

export async function performLoad({ options, stopping, progress }: PerformDeps): Promise<Performed> {
  await using closing = new AsyncDisposableStack()
  progress('the load is being prepared …')
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

async function calledOf(options: LoadOptions, closing: AsyncDisposableStack): Promise<Called> {
  if (options.isSelf) {
    if (options.transport === 'tls') throw new Error('--self has no certificate: use --transport udp or tcp')
    const own = await openOwnService()
    closing.defer(() => own.close())
    const { called, pid, sipPort, url, key, accountId, workerId } = own
    const target = { protocol: options.transport, host: '127.0.0.1', port: sipPort } as const
    return {
      web: { url, key, accountId, workerId },
      sip: { target, called, calling: options.from },
      readCost: costOfProcess(pid),
    }
  }
  return { web: await webOf(options.web), sip: await sipOf(options), readCost: readerOf(options) }
}

function readerOf({ pid, metrics }: LoadOptions): CostReader | null {
  if (metrics !== null) return costOfMetrics(metrics)
  return pid === null ? null : costOfProcess(pid)
}

async function webOf(web: LoadOptions['web']): Promise<WebTarget | null> {
  if (!web) return null
  const { url, key } = web
  const accountId = await accountOfKey(url, key)
  if (web.workerId !== null) return { url, key, accountId, workerId: web.workerId }
  const workers = (await askService({ url, key, accountId }, { method: 'GET', path: 'workers' })) as unknown
  const first = Array.isArray(workers) ? (workers[0] as { readonly id?: unknown } | undefined) : undefined
  if (typeof first?.id !== 'string') throw new Error('the account has no worker: create one, or name it with --worker')
  return { url, key, accountId, workerId: first.id }
}

async function sipOf({ sip, from, tlsCaFile, trustsAny }: LoadOptions): Promise<SipSide | null> {
  if (!sip) return null
  const { protocol, host, port, called } = sip
  const trust = tlsCaFile === null ? null : await readFile(tlsCaFile, 'utf8')
  const trusted = trustsAny ? ({ trust: 'any' } as const) : { ...(trust !== null && { trust: { ca: trust } }) }
  return { target: { protocol, host, port, ...trusted }, called, calling: from }
}

async function spoken(texts: readonly string[]): Promise<Int16Array[]> {
  const synthesiser = await createSynthesiser({ clock: systemClock, log: silentLog })
  try {
    const sounds: Int16Array[] = []
    for (const text of texts) sounds.push((await synthesiser.speak(text, 'slt')).slice())
    return sounds
  } finally {
    await synthesiser.close()
  }
}

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
  const every = Math.max(1, Math.ceil(options.arrivals.durationMs / tickEvery / windows))
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

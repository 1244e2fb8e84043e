/**
 * Owns what is told of the process itself, whatever it does, by the names that every program for Prometheus has for it. Read when somebody
 * looks, and nothing of it costs more than a system call.
 */
import { monitorEventLoopDelay, performance, type EventLoopUtilization } from 'node:perf_hooks'
import process from 'node:process'
import { Counter, Gauge, type Registry } from 'prom-client'
import { allRoles, type Roles } from '../../model/roles.ts'
import type { MetricDescription } from './metric-names.ts'

export type ProcessFacts = {
  readonly version: string
  readonly roles: Roles
  /** Ms since the epoch. */
  readonly startedAt: number
  /** Ms that never jump. */
  readonly now: () => number
}

/** What a thread has worked and waited since it began, ms. */
export type Loop = { readonly thread: string } & Pick<EventLoopUtilization, 'active' | 'idle'>

const anything: readonly string[] = ['any']
const metric = (
  name: string,
  type: 'counter' | 'gauge',
  help: string,
  labels: MetricDescription['labels'] = {},
): MetricDescription => ({ name, type, help, labels, scale: 1 })

export const processMetrics = {
  build: metric('parley_build_info', 'gauge', 'Always 1; which version runs, and on which node.js', {
    version: anything,
    node: anything,
  }),
  role: metric('parley_role', 'gauge', '1 for each role that the process has, 0 for the others', { role: allRoles }),
  startTime: metric('process_start_time_seconds', 'gauge', 'When the service was opened, in seconds since the epoch'),
  cpu: metric('process_cpu_seconds_total', 'counter', 'Time of processors that all threads have used'),
  resident: metric('process_resident_memory_bytes', 'gauge', 'Memory that the process has in use'),
  heapUsed: metric('nodejs_heap_size_used_bytes', 'gauge', 'Heap of the main thread in use'),
  heapTotal: metric('nodejs_heap_size_total_bytes', 'gauge', 'Heap of the main thread'),
  external: metric(
    'nodejs_external_memory_bytes',
    'gauge',
    'Memory that objects of the main thread have beside the heap',
  ),
  delay: metric(
    'nodejs_eventloop_lag_seconds',
    'gauge',
    'How late the main thread came to its timers in the ten seconds, or more, before it was last taken; quantile 1 is the worst',
    { quantile: ['0.5', '0.99', '1'] },
  ),
  busy: metric(
    'parley_event_loop_active_seconds_total',
    'counter',
    'Time in which the event loop of a thread was at work',
    {
      thread: anything,
    },
  ),
  idle: metric('parley_event_loop_idle_seconds_total', 'counter', 'Time in which the event loop of a thread waited', {
    thread: anything,
  }),
} as const

type Name = keyof typeof processMetrics

/** Ms. */
const delayResolution = 20
const delayWindow = 10_000

export type ProcessMetrics = {
  /** Threads beside the main one; asked when somebody looks. */
  watchLoops(read: () => readonly Loop[]): void
  close(): void
}

export function openProcessMetrics(registry: Registry, facts: ProcessFacts): ProcessMetrics {
  const gauge = (name: Name, collect: (gauge: Gauge) => void): void => {
    const { name: metricName, help, labels } = processMetrics[name]
    const opened: Gauge = new Gauge({
      name: metricName,
      help,
      labelNames: Object.keys(labels),
      registers: [registry],
      collect: () => collect(opened),
    })
  }
  const counter = (name: Name, collect: (counter: Counter) => void): void => {
    const { name: metricName, help, labels } = processMetrics[name]
    const opened: Counter = new Counter({
      name: metricName,
      help,
      labelNames: Object.keys(labels),
      registers: [registry],
      collect() {
        opened.reset()
        collect(opened)
      },
    })
  }
  const delay = createDelayWindow(facts.now)
  let otherLoops = (): readonly Loop[] => []
  const loops = (): Loop[] => [{ thread: 'main', ...performance.eventLoopUtilization() }, ...otherLoops()]

  gauge('build', (of) => of.set({ version: facts.version, node: process.versions.node }, 1))
  gauge('role', (of) => allRoles.forEach((role) => of.set({ role }, facts.roles.has(role) ? 1 : 0)))
  gauge('startTime', (of) => of.set(facts.startedAt / 1000))
  gauge('resident', (of) => of.set(process.memoryUsage.rss()))
  gauge('heapUsed', (of) => of.set(process.memoryUsage().heapUsed))
  gauge('heapTotal', (of) => of.set(process.memoryUsage().heapTotal))
  gauge('external', (of) => of.set(process.memoryUsage().external))
  gauge('delay', (of) => {
    of.reset()
    for (const [quantile, seconds] of Object.entries(delay.read())) of.set({ quantile }, seconds)
  })
  counter('cpu', (of) => {
    const { user, system } = process.cpuUsage()
    of.inc((user + system) / 1e6)
  })
  counter('busy', (of) => loops().forEach(({ thread, active }) => of.inc({ thread }, active / 1000)))
  counter('idle', (of) => loops().forEach(({ thread, idle }) => of.inc({ thread }, idle / 1000)))
  return {
    watchLoops: (read) => void (otherLoops = read),
    close: () => delay.close(),
  }
}

/** Taken anew after ten seconds, so that several may look without taking it from each other. */
function createDelayWindow(now: () => number) {
  const delay = monitorEventLoopDelay({ resolution: delayResolution })
  delay.enable()
  let since = now()
  let taken: Readonly<Record<string, number>> | null = null
  // What is measured is the way from one sample to the next, which are `delayResolution` apart where nothing is late.
  const secondsOf = (ns: number): number => Math.max(0, ns / 1e9 - delayResolution / 1000)
  const take = () => ({
    '0.5': secondsOf(delay.percentile(50)),
    '0.99': secondsOf(delay.percentile(99)),
    '1': secondsOf(delay.max),
  })
  return {
    read(): Readonly<Record<string, number>> {
      if (taken !== null && now() - since < delayWindow) return taken
      taken = delay.count === 0 ? {} : take()
      since = now()
      delay.reset()
      return taken
    },
    close: () => void delay.disable(),
  }
}

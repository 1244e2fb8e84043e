/**
 * Owns what this process has spent so far, by what spent it: CPU of its threads by kind, the event loop of the main thread, pauses of the garbage
 * collector by kind. All figures only grow; a bench reads them twice.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { constants, performance, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks'
import process from 'node:process'

/** `pool`: of libuv, which writes files. `v8`: compiles, and collects garbage beside the main thread. `other`: also threads that have ended. */
export const threadKinds = ['main', 'media', 'pool', 'v8', 'other'] as const
type ThreadKind = (typeof threadKinds)[number]
export const gcKinds = ['minor', 'major', 'incremental', 'weak'] as const
type GcKind = (typeof gcKinds)[number]

/** All in ms. */
export type ProcessCost = {
  /** User and system, of all threads. */
  readonly cpuMs: number
  /** NaN where the system does not tell. */
  readonly threads: Readonly<Record<ThreadKind, number>>
  /** What threads waited for a core while they had work: that is the machine, and nothing of ours. NaN where nobody tells. */
  readonly waitedForCoreMs: number
  /** How often threads went to wait for something. NaN where the system does not tell. */
  readonly waits: { readonly main: number; readonly media: number }
  /** Of the main thread's event loop. */
  readonly loop: { readonly active: number; readonly idle: number }
  /** Of the main thread. */
  readonly gc: Readonly<Record<GcKind, number>>
  readonly collections: number
}

const kindOfGc: Readonly<Record<number, GcKind>> = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weak',
}

/** As Node 24 names its threads; a worker has the name that it was given. */
function kindOfThread(name: string): ThreadKind {
  if (name === 'MainThread' || name === 'node') return 'main'
  if (name.startsWith('media')) return 'media'
  if (name.startsWith('libuv')) return 'pool'
  return name.startsWith('V8') || name.startsWith('DelayedTask') ? 'v8' : 'other'
}

/** Counts from now on; the result reads. */
export function createProcessCost(): () => ProcessCost {
  const gc = { minor: 0, major: 0, incremental: 0, weak: 0 }
  let collections = 0
  const observer = new PerformanceObserver((list) => {
    // Of the type only `gc`; the typings know of no detail.
    for (const entry of list.getEntries() as (PerformanceEntry & { readonly detail: { readonly kind: number } })[]) {
      const kind = kindOfGc[entry.detail.kind]
      if (kind) gc[kind] += entry.duration
      collections++
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  return () => {
    const { user, system } = process.cpuUsage()
    const cpuMs = (user + system) / 1000
    const { active, idle } = performance.eventLoopUtilization()
    return { cpuMs, ...threadsWithin(cpuMs), loop: { active, idle }, gc: { ...gc }, collections }
  }
}

function threadsWithin(cpuMs: number): Pick<ProcessCost, 'threads' | 'waitedForCoreMs' | 'waits'> {
  const threads = { main: 0, media: 0, pool: 0, v8: 0, other: 0 }
  const waits = { main: 0, media: 0 }
  const waited = { main: 0, media: 0 }
  try {
    for (const id of readdirSync('/proc/self/task')) {
      const kind = kindOfThread(readFileSync(`/proc/self/task/${id}/comm`, 'latin1').trim())
      // In ns: on a core, in the run queue.
      const [ran = 0, queued = 0] = readFileSync(`/proc/self/task/${id}/schedstat`, 'latin1').split(' ').map(Number)
      threads[kind] += ran / 1e6
      if (kind !== 'main' && kind !== 'media') continue
      waited[kind] += queued / 1e6
      waits[kind] += waitsOf(readFileSync(`/proc/self/task/${id}/status`, 'latin1'))
    }
  } catch {
    // No /proc here.
    const unknown = { main: Number.NaN, media: Number.NaN, pool: Number.NaN, v8: Number.NaN, other: Number.NaN }
    return { threads: unknown, waitedForCoreMs: Number.NaN, waits: { main: Number.NaN, media: Number.NaN } }
  }
  const told = threads.main + threads.media + threads.pool + threads.v8 + threads.other
  threads.other += Math.max(0, cpuMs - told)
  // The frames are the media threads' where there are any.
  return { threads, waits, waitedForCoreMs: threads.media > 0 ? waited.media : waited.main }
}

const waitsOf = (status: string): number => Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1] ?? Number.NaN)

/** What the time between two readings was spent on, for a row of a table. `units`: what was done meanwhile, in `unit`. */
export function costCells(before: ProcessCost, now: ProcessCost, units: number, unit: string): Record<string, string> {
  const grown = (of: (cost: ProcessCost) => number): number => of(now) - of(before)
  const wall = grown(({ loop }) => loop.active + loop.idle)
  const threads = threadKinds.map((kind) => (grown((cost) => cost.threads[kind]) / units).toFixed(2))
  const waits = (['main', 'media'] as const).map((kind) =>
    ((grown((cost) => cost.waits[kind]) * 1_000) / wall).toFixed(0),
  )
  const gc = gcKinds.map((kind) => ((grown((cost) => cost.gc[kind]) * 1_000) / wall).toFixed(1))
  return {
    [`${threadKinds.join('/')} ms per ${unit}`]: threads.join(' / '),
    'waits main/media a second': waits.join(' / '),
    'event loop %': ((grown(({ loop }) => loop.active) / wall) * 100).toFixed(0),
    [`GC ${gcKinds.join('/')} ms a second`]: gc.join(' / '),
  }
}

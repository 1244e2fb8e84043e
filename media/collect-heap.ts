/** Owns collecting the heap of the thread that asks, down to what lives. The service and the threads of the embedded voice give memory back by it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Cancel, Clock } from '../model/clock.ts'

/**
 * Without the flag no program has it, and a flag on the command line would not reach every way to start. Taken when it is needed first: another
 * context is nothing that a process with calls should have for nothing.
 */
export function collectorOfHeap(): () => void {
  let collect: NodeJS.GCFunction | null = null
  return () => {
    collect ??= globalThis.gc ?? takeCollector()
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  }
}

/** Flags are of the whole process: another thread may take the flag back just before this one uses it. */
const mostTries = 1_000

/** The flag is taken back: compiled code is kept by the flags that it was compiled with, and threads that start later would find none. */
function takeCollector(): NodeJS.GCFunction {
  for (let tries = 0; tries < mostTries; tries++) {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('globalThis.gc') as NodeJS.GCFunction | undefined
    setFlagsFromString('--no-expose-gc')
    if (gc) return gc
  }
  throw new Error('V8 gives no collector of its heap')
}

/** Ms without work after which a thread is tidied up: the pauses within a talk are shorter. */
const quietFor = 10_000

/** For a thread that carries no beat. The result is called with each piece of work; it is followed by one collection when no other comes. */
export function collectWhenQuiet(after: Clock['after'], collect = collectorOfHeap()): () => void {
  let cancel: Cancel = () => undefined
  return () => {
    cancel()
    cancel = after(quietFor, collect)
  }
}

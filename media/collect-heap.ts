/** Owns collecting the heap of the thread that asks, down to what lives. The service and the threads of the embedded voice give memory back by it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Cancel, Clock } from '../model/clock.ts'

/**
 * Without the flag no program has it, and a flag on the command line would not reach every way to start. Taken when it is needed first: another
 * context and another set of flags are nothing that a process with calls should have for nothing.
 */
export function collectorOfHeap(): () => void {
  let collect: NodeJS.GCFunction | null = null
  return () => {
    if (collect === null) setFlagsFromString('--expose-gc')
    collect ??= runInNewContext('gc') as NodeJS.GCFunction
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  }
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

/**
 * Owns the making of a recording's copies off the audio path: in a thread of its own with little priority, one recording after another. The thread
 * is started when it is needed, and ends when there was nothing to do for a while.
 */
import { Worker } from 'node:worker_threads'
import type { Cancel, Clock } from '../../model/clock.ts'

/** Paths of files: what is read, and what is made. */
export type CopiesRequest = { readonly wav: string; readonly opus: string; readonly peaks: string }
/** Null: they are made. */
export type CopiesReply = { readonly failure: string | null }

export type RecordingCopies = {
  /** Rejects when they cannot be made of this file, and when the signal ends it: nothing is written to their paths after that. */
  make(request: CopiesRequest, signal: AbortSignal): Promise<void>
  /** What is under way is given up, and rejects. Idempotent. */
  close(): Promise<void>
}

/** Ms. Hours of sound take minutes; a thread that takes longer has got stuck. */
const longest = 30 * 60_000
const idleFor = 30_000
const limits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32 }
const defaultEntry = new URL('./copies-thread.ts', import.meta.url)

type Making = CopiesRequest & { resolve(): void; reject(error: Error): void }

export function createRecordingCopies(clock: Clock, entry = defaultEntry): RecordingCopies {
  const waiting: Making[] = []
  let underWay: Making | null = null
  let thread: Worker | null = null
  let cancel: Cancel = () => {}
  let closed = false

  const start = (): Worker => {
    const started = new Worker(entry, { execArgv: [], resourceLimits: limits, name: 'recordings' })
    const ended = (cause: Error): void => {
      if (thread === started) lose(cause)
    }
    started.on('message', ({ failure }: CopiesReply) => {
      if (thread === started) settle(failure === null ? null : new Error(failure))
    })
    started.on('error', ended)
    started.on('exit', (code) => ended(new Error(`the thread ended with code ${code}`)))
    return started
  }
  const settle = (failure: Error | null): void => {
    cancel()
    const made = underWay
    underWay = null
    if (failure === null) made?.resolve()
    else made?.reject(failure)
    goOn()
  }
  const end = async (): Promise<void> => {
    const ended = thread
    thread = null
    await ended?.terminate()
  }
  const lose = (cause: Error): void => {
    void end()
    settle(cause)
  }
  const stop = async (): Promise<void> => {
    await end()
    settle(new Error('the copies are not wanted any more'))
  }
  const goOn = (): void => {
    if (underWay !== null) return
    cancel()
    underWay = waiting.shift() ?? null
    if (underWay === null) {
      if (thread !== null) cancel = clock.after(idleFor, () => void end())
      thread?.unref()
      return
    }
    thread ??= start()
    thread.ref()
    cancel = clock.after(longest, () => lose(new Error('the thread does not answer')))
    const { wav, opus, peaks } = underWay
    thread.postMessage({ wav, opus, peaks } satisfies CopiesRequest)
  }
  return {
    make(request, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const making = { ...request, resolve, reject }
      const giveUp = (): void => void (underWay === making ? stop() : dropped(waiting, making))
      if (closed || signal.aborted) reject(new Error('no copies are made any more'))
      else waiting.push(making)
      signal.addEventListener('abort', giveUp, { once: true })
      goOn()
      return promise.finally(() => signal.removeEventListener('abort', giveUp))
    },
    async close() {
      closed = true
      const givenUp = waiting.splice(0)
      const ended = end()
      settle(new Error('the service stops'))
      for (const { reject } of givenUp) reject(new Error('the service stops'))
      await ended
    },
  }
}

function dropped(waiting: Making[], making: Making): void {
  const at = waiting.indexOf(making)
  if (at >= 0) waiting.splice(at, 1)
  making.reject(new Error('the copies are not wanted any more'))
}

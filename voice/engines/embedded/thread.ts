/** Owns one worker thread: starts it, notices when it dies or does not answer any more, ends it. */
import { Worker } from 'node:worker_threads'
import type { Cancel, Clock } from '../../../model/clock.ts'

export type Thread<Request> = {
  /** Every request is answered by exactly one reply; no reply for too long is the end of the thread. */
  ask(request: Request, transfer?: ArrayBuffer[]): void
  /** Needs no answer. */
  tell(request: Request): void
  /** Idempotent; the thread is gone when it resolves. Nothing is reported after it. */
  close(): Promise<void>
}

type Options<Reply> = {
  readonly entry: URL
  readonly settings: unknown
  readonly clock: Clock
  /** The first one says that the thread is ready. */
  onReply(reply: Reply): void
  /** At most once, and nothing comes after it. */
  onLost(cause: unknown): void
}

/** A thread that owes an answer for this long, ms, has got stuck. */
const answerWithin = 10_000
/** The same, of its first answer: models are read, and on a busy machine that takes its time. */
const readyWithin = 60_000
const limits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32 }

export function startThread<Request, Reply>(options: Options<Reply>): Thread<Request> {
  const { entry, settings, clock } = options
  const worker = new Worker(entry, { workerData: settings, execArgv: [], resourceLimits: limits, name: 'voice' })
  let owed = 1
  let patience = readyWithin
  let over = false
  let cancel: Cancel | null = null

  const watch = (): void => {
    cancel?.()
    cancel = owed > 0 && !over ? clock.after(patience, () => lose(new Error('the thread does not answer'))) : null
  }
  const lose = (cause: unknown): void => {
    if (over) return
    over = true
    watch()
    void worker.terminate()
    options.onLost(cause)
  }
  worker.on('message', (reply: Reply) => {
    if (over) return
    owed = Math.max(0, owed - 1)
    patience = answerWithin
    watch()
    options.onReply(reply)
  })
  worker.on('error', lose)
  worker.on('exit', (code) => lose(new Error(`the thread ended with code ${code}`)))
  watch()

  return {
    ask(request, transfer = []) {
      if (over) return
      worker.postMessage(request, transfer)
      owed++
      if (owed === 1) watch()
    },
    tell(request) {
      if (!over) worker.postMessage(request)
    },
    async close() {
      over = true
      watch()
      await worker.terminate()
    },
  }
}

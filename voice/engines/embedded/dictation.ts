/**
 * Owns free speech as text: a second recognition of whole utterances in a thread of its own, which is started when it is first needed and let go when
 * it is not needed for long. One utterance at a time, a few wait; what takes too long comes back as not understood. It never throws.
 */
import type { Cancel, Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import type { HeardWords } from './recognition-messages.ts'
import { startThread, type Thread } from './thread.ts'

export type Dictator = {
  /** 16 kHz samples of a whole utterance; the caller gives the buffer away. Null: not understood, or not in time. Never rejects. */
  take(sound: Int16Array<ArrayBuffer>, gain: number): Promise<HeardWords | null>
  /** Idempotent. */
  close(): Promise<void>
}

export type DictationRequest = { readonly sound: Int16Array; readonly gain: number }
export type DictationReply = { readonly type: 'ready' } | { readonly type: 'taken'; readonly heard: HeardWords }

type Deps = { readonly clock: Clock; readonly log: Log; readonly entry?: URL }
type Job = DictationRequest & { settle(heard: HeardWords | null): void; readonly sound: Int16Array<ArrayBuffer> }

const maxWaiting = 4
/** From the end of speech to the result, ms. A second of speech takes a third of a second on a machine that has nothing else to do. */
const answerWithin = 8000
/** A thread that nobody needed for this long is ended, ms. */
const idleFor = 600_000
/** What a recogniser gathers over its life stays small. */
const maxUtterances = 500

export function createDictator(deps: Deps): Dictator {
  const { clock } = deps
  const waiting: Job[] = []
  let running: Job | null = null
  let idle: Cancel | null = null
  let closed = false

  const next = (): void => {
    if (running !== null || closed) return
    idle?.()
    running = waiting.shift() ?? null
    idle = running === null ? clock.after(idleFor, () => writer.rest()) : null
    if (running !== null) writer.write(running)
  }
  const writer = createWriter(deps, (heard) => {
    running?.settle(heard)
    running = null
    next()
  })
  return {
    take(sound, gain) {
      if (closed || waiting.length >= maxWaiting) return Promise.resolve(null)
      return new Promise((resolve) => {
        waiting.push(jobOf({ sound, gain, clock, waiting, done: resolve }))
        next()
      })
    },
    async close() {
      closed = true
      idle?.()
      for (const job of [...waiting, ...(running === null ? [] : [running])]) job.settle(null)
      await writer.close()
    },
  }
}

/** The thread: there when there is something to write, and a new one when it was lost or has written enough. */
function createWriter({ clock, log, entry }: Deps, onDone: (heard: HeardWords | null) => void) {
  let thread: Thread<DictationRequest> | null = null
  let utterances = 0
  let ending = Promise.resolve()

  const rest = (): void => {
    const old = thread
    thread = null
    utterances = 0
    if (old !== null) ending = Promise.all([ending, old.close()]).then(() => undefined)
  }
  const open = (): Thread<DictationRequest> =>
    startThread<DictationRequest, DictationReply>({
      entry: entry ?? new URL('./dictation-thread.ts', import.meta.url),
      settings: null,
      clock,
      onReply(reply) {
        if (reply.type !== 'taken') return
        if (++utterances >= maxUtterances) rest()
        onDone(reply.heard)
      },
      onLost(cause) {
        log.error('the dictation thread was lost', { error: cause })
        thread = null
        utterances = 0
        onDone(null)
      },
    })
  return {
    rest,
    write({ sound, gain }: Job): void {
      thread ??= open()
      thread.ask({ sound, gain }, [sound.buffer])
    },
    async close(): Promise<void> {
      rest()
      await ending
    },
  }
}

type JobDeps = {
  readonly sound: Int16Array<ArrayBuffer>
  readonly gain: number
  readonly clock: Clock
  readonly waiting: Job[]
  done(heard: HeardWords | null): void
}

/** Who has waited too long leaves the queue. */
function jobOf({ sound, gain, clock, waiting, done }: JobDeps): Job {
  const settle = (heard: HeardWords | null): void => {
    deadline()
    const at = waiting.indexOf(job)
    if (at >= 0) waiting.splice(at, 1)
    done(heard)
  }
  const job: Job = { sound, gain, settle }
  const deadline = clock.after(answerWithin, () => settle(null))
  return job
}

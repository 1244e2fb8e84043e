/**
 * Owns the pool of recognition threads: opens as many as the callers on the line need, gives every utterance a recogniser while it is spoken, lets utterances
 * wait when all are taken, replaces threads that died, got stuck or hold too many grammars. What is lost on the way comes back as not understood; it never throws.
 */
import type { Cancel, Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import { createDictator } from './dictation.ts'
import { createRest, usualRest } from './rest.ts'
import { openDecoders, type Decoders } from './decoders.ts'
import type { Grammar } from './grammar.ts'
import type { HeardWords } from './recognition-messages.ts'
import { createUtterance, type LiveUtterance, type Utterance } from './utterance.ts'

export type Recognition = {
  /** `gain` brings the voice to the level that the recogniser likes. `onPartial` gets the words so far. */
  listen(grammar: Grammar, gain: number, onPartial: (words: readonly string[]) => void): Utterance
  /** Any words, of a whole utterance; the caller gives the buffer away. Null: not understood, or not in time. Never rejects. */
  dictate(sound: Int16Array<ArrayBuffer>, gain: number): Promise<HeardWords | null>
  /** A caller is on the line and will speak, until what this returns is called. */
  join(): () => void
  /** Idempotent. */
  close(): Promise<void>
}

type Deps = {
  readonly clock: Clock
  readonly log: Log
  /** At most; one is there from the start. */
  readonly threads: number
  readonly entry?: URL
  /** Ms without an utterance after which the threads are ended. */
  readonly restAfter?: number | undefined
}

/** At most: 8 MB and 50 ms each, one at the start and the others when so many speak at once. There is a thread for so many callers, who may all do so. */
const decodersOfThread = 4
const maxWaiting = 64
/** A thread that could not be started is tried again after this, ms. */
const restartAfter = 1000

/** Resolves when a thread is ready; rejects when it cannot start. */
export async function createRecognition(deps: Deps): Promise<Recognition> {
  const waiting = new Set<LiveUtterance>()
  const threads = createThreads(deps, () => assignWaiting())
  const assigned = new Map<LiveUtterance, Decoders>()
  let closed = false
  let lastId = 0

  const assign = (utterance: LiveUtterance, decoders: Decoders): void => {
    assigned.set(utterance, decoders)
    decoders.assign(utterance)
  }
  const assignWaiting = (): void => {
    for (const utterance of waiting) {
      const decoders = threads.next()
      if (decoders === undefined) return
      waiting.delete(utterance)
      assign(utterance, decoders)
    }
  }
  const onSettled = (utterance: LiveUtterance): void => {
    waiting.delete(utterance)
    assigned.get(utterance)?.release(utterance)
    assigned.delete(utterance)
    assignWaiting()
  }

  try {
    await new Promise<void>(threads.start)
  } catch (error) {
    await threads.close()
    throw new Error('the recogniser could not be started', { cause: error })
  }
  const rest = createRest({
    clock: deps.clock,
    after: deps.restAfter ?? usualRest,
    isBusy: () => waiting.size > 0 || assigned.size > 0,
    letGo: threads.letGo,
  })
  let callers = 0
  const wake = (): void => {
    rest.used()
    threads.need(callers)
  }
  rest.used()
  const dictator = createDictator({ clock: deps.clock, log: deps.log })
  return {
    dictate: dictator.take,
    join() {
      callers++
      wake()
      let isOver = false
      return () => {
        if (!isOver) callers--
        isOver = true
      }
    },
    listen(grammar, gain, onPartial) {
      const utterance = createUtterance({ id: ++lastId, grammar, gain, clock: deps.clock, onPartial, onSettled })
      wake()
      const decoders = threads.next()
      if (decoders !== undefined) assign(utterance, decoders)
      else if (waiting.size < maxWaiting && !closed) waiting.add(utterance)
      else utterance.settle(null)
      return utterance
    },
    async close() {
      closed = true
      rest.close()
      for (const utterance of waiting) utterance.settle(null)
      await Promise.all([threads.close(), dictator.close()])
    },
  }
}

/** As many threads as were needed at most: one that is lost or holds too many grammars is replaced. `onFree`: there are decoders that nobody uses. */
function createThreads({ clock, log, threads: most, entry }: Deps, onFree: () => void) {
  const current = new Set<Decoders>()
  const retired = new Set<Decoders>()
  const pending = new Set<Cancel>()
  let wanted = 1
  /** Of the callers, for each thread. */
  let share = 0
  let ending: Promise<unknown> = Promise.resolve()
  let closed = false

  const open = (onReady: () => void, onFailed: (cause: unknown) => void): void => {
    if (closed) return
    const opened = openDecoders({
      clock,
      size: decodersOfThread,
      entry: entry ?? new URL('./recognition-thread.ts', import.meta.url),
      onReady() {
        onReady()
        onFree()
      },
      onLost(lost, cause) {
        const counted = current.delete(lost)
        log.error('a recognition thread was lost', { error: cause })
        if (!counted) return
        if (lost.isReady()) openMissing()
        else onFailed(cause)
      },
      onFailing(failing, cause) {
        log.error('a recognition thread failed at an utterance and is replaced', { error: cause })
        if (!current.delete(failing)) return
        retire(failing)
        openMissing()
      },
      onFull: replace,
    })
    current.add(opened)
    opened.expect(share)
  }
  const openLater = (): void => {
    const cancel = clock.after(restartAfter, () => {
      pending.delete(cancel)
      open(nothing, openLater)
    })
    pending.add(cancel)
  }
  /** A replacement of the one that is gone may be under way. */
  const openMissing = (): void => {
    if (current.size < wanted) open(nothing, openLater)
  }
  const retire = (old: Decoders): void => {
    retired.add(old)
    old.retire(() => void retired.delete(old))
  }
  /** The old thread goes on until the new one is ready; one replacement at a time. */
  const replace = (old: Decoders): void => {
    if (current.size > wanted || ![...current].every((decoders) => decoders.isReady())) return
    open(() => {
      if (current.delete(old)) retire(old)
    }, openMissing)
  }
  /** For so many callers: those that are missing and not about to be tried again. */
  const need = (callers: number): void => {
    wanted = Math.max(wanted, Math.min(most, Math.ceil(callers / decodersOfThread)))
    while (!closed && current.size + pending.size < wanted) open(nothing, openLater)
    share = Math.min(decodersOfThread, Math.ceil(callers / wanted))
    for (const decoders of current) decoders.expect(share)
  }
  /** Nobody speaks. */
  const letGo = (): void => {
    wanted = 1
    const gone = [...current, ...retired]
    current.clear()
    retired.clear()
    ending = Promise.all([ending, ...gone.map((decoders) => decoders.close())])
  }
  const close = async (): Promise<void> => {
    closed = true
    for (const cancel of pending) cancel()
    letGo()
    await ending
  }
  /** The thread with the most decoders that nobody uses; undefined when all are in use. */
  const next = (): Decoders | undefined =>
    [...current].filter((decoders) => decoders.free() > 0).sort((one, other) => other.free() - one.free())[0]
  return { close, next, start: open, need, letGo }
}

function nothing(): void {
  // Nobody waits for this thread.
}

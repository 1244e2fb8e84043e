/**
 * Owns the pool of hearing threads: gives every utterance a recogniser while it is spoken, lets utterances wait when all are taken, replaces
 * threads that died, got stuck or hold too many grammars. What is lost on the way comes back as not understood; it never throws.
 */
import type { Cancel, Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import { createDictator } from './dictation.ts'
import { openEar, type Ear } from './ear.ts'
import type { Grammar } from './grammar.ts'
import type { HeardWords } from './hearing-messages.ts'
import { createUtterance, type LiveUtterance, type Utterance } from './utterance.ts'

export type Hearing = {
  /** `gain` brings the voice to the level that the recogniser likes. `onPartial` gets the words so far. */
  listen(grammar: Grammar, gain: number, onPartial: (words: readonly string[]) => void): Utterance
  /** Any words, of a whole utterance; the caller gives the buffer away. Null: not understood, or not in time. Never rejects. */
  dictate(sound: Int16Array<ArrayBuffer>, gain: number): Promise<HeardWords | null>
  /** Idempotent. */
  close(): Promise<void>
}

type Deps = {
  readonly clock: Clock
  readonly log: Log
  readonly threads: number
  /** Recognisers per thread: 8 MB and 50 ms at the start each. */
  readonly seats?: number
  readonly entry?: URL
  readonly dictationEntry?: URL
}

const defaultSeats = 4
const maxWaiting = 64
/** A thread that could not be started is tried again after this, ms. */
const restartAfter = 1000

/** Resolves when all threads are ready; rejects when one of them cannot start. */
export async function createHearing(deps: Deps): Promise<Hearing> {
  const waiting = new Set<LiveUtterance>()
  const ears = createEars(deps, () => seatWaiting())
  const seated = new Map<LiveUtterance, Ear>()
  let closed = false
  let lastId = 0

  const seat = (utterance: LiveUtterance, ear: Ear): void => {
    seated.set(utterance, ear)
    ear.seat(utterance)
  }
  const seatWaiting = (): void => {
    for (const utterance of waiting) {
      const ear = ears.free()
      if (ear === undefined) return
      waiting.delete(utterance)
      seat(utterance, ear)
    }
  }
  const onSettled = (utterance: LiveUtterance): void => {
    waiting.delete(utterance)
    seated.get(utterance)?.leave(utterance)
    seated.delete(utterance)
    seatWaiting()
  }

  const starts = Array.from(
    { length: deps.threads },
    () => new Promise<void>((ready, failed) => ears.open(ready, failed)),
  )
  try {
    await Promise.all(starts)
  } catch (error) {
    await ears.close()
    throw new Error('the recogniser could not be started', { cause: error })
  }
  const dictator = createDictator({ ...deps, entry: deps.dictationEntry })
  return {
    dictate: dictator.take,
    listen(grammar, gain, onPartial) {
      const utterance = createUtterance({ id: ++lastId, grammar, gain, clock: deps.clock, onPartial, onSettled })
      const ear = ears.free()
      if (ear !== undefined) seat(utterance, ear)
      else if (waiting.size < maxWaiting && !closed) waiting.add(utterance)
      else utterance.settle(null)
      return utterance
    },
    async close() {
      closed = true
      for (const utterance of waiting) utterance.settle(null)
      await Promise.all([ears.close(), dictator.close()])
    },
  }
}

/** As many ears as asked for, whatever happens to the single one. */
function createEars({ clock, log, threads, seats = defaultSeats, entry }: Deps, onFree: () => void) {
  const ears = new Set<Ear>()
  const retired = new Set<Ear>()
  const pending = new Set<Cancel>()
  let closed = false

  const open = (onReady: () => void, onFailed: (cause: unknown) => void): void => {
    if (closed) return
    const ear = openEar({
      clock,
      seats,
      entry: entry ?? new URL('./hearing-thread.ts', import.meta.url),
      onReady() {
        onReady()
        onFree()
      },
      onLost(lost, cause) {
        const counted = ears.delete(lost)
        log.error('a hearing thread was lost', { error: cause })
        if (!counted) return
        if (lost.isReady()) open(nothing, openLater)
        else onFailed(cause)
      },
      onFull: replace,
    })
    ears.add(ear)
  }
  const openLater = (): void => {
    const cancel = clock.after(restartAfter, () => {
      pending.delete(cancel)
      open(nothing, openLater)
    })
    pending.add(cancel)
  }
  /** The old one goes on until the new one is ready; one replacement at a time. */
  const replace = (old: Ear): void => {
    if (ears.size > threads || ![...ears].every((ear) => ear.isReady())) return
    open(() => {
      ears.delete(old)
      retired.add(old)
      old.retire(() => void retired.delete(old))
    }, nothing)
  }
  const close = async (): Promise<void> => {
    closed = true
    for (const cancel of pending) cancel()
    await Promise.all([...ears, ...retired].map((ear) => ear.close()))
  }

  const free = (): Ear | undefined =>
    [...ears].filter((ear) => ear.freeSeats() > 0).sort((one, other) => other.freeSeats() - one.freeSeats())[0]
  return { close, free, open }
}

function nothing(): void {
  // Nobody waits for this thread.
}

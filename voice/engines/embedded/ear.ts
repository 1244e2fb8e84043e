/** Owns one hearing thread and the utterances that have a seat in it. */
import type { Clock } from '../../../model/clock.ts'
import type { HearingReply, HearingRequest } from './hearing-messages.ts'
import { startThread } from './thread.ts'
import type { LiveUtterance } from './utterance.ts'

export type Ear = {
  /** How many more utterances it takes now. */
  freeSeats(): number
  seat(utterance: LiveUtterance): void
  leave(utterance: LiveUtterance): void
  isReady(): boolean
  /** Takes nothing new, closes when it is empty and says so. */
  retire(onClosed: () => void): void
  close(): Promise<void>
}

type Deps = {
  readonly clock: Clock
  readonly entry: URL
  readonly seats: number
  onReady(ear: Ear): void
  /** Its utterances have been settled as not understood. */
  onLost(ear: Ear, cause: unknown): void
  /** It holds as many grammars as it should. */
  onFull(ear: Ear): void
}

/** Address space of one thread's recognisers; only what they touch is really used. */
const heapBytes = 256 * 1024 * 1024
/** The recogniser cannot forget a grammar, and each takes about 700 kB: three times as many would fit, for those that come while the next thread starts. */
const maxGrammars = 100

export function openEar({ clock, entry, seats, onReady, onLost, onFull }: Deps): Ear {
  const live = new Map<number, LiveUtterance>()
  let onRetired: () => void = () => undefined
  let state: 'starting' | 'ready' | 'retiring' | 'closed' = 'starting'

  const onReply = (reply: HearingReply): void => {
    if (reply.type === 'ready') {
      state = 'ready'
      return onReady(ear)
    }
    const utterance = live.get(reply.utterance)
    if (reply.type === 'partial') utterance?.partial(reply.words)
    if (reply.type !== 'final') return
    utterance?.settle(reply.heard)
    if (reply.compiled >= maxGrammars && state === 'ready') onFull(ear)
  }
  const thread = startThread<HearingRequest, HearingReply>({
    entry,
    settings: { heapBytes, seats },
    clock,
    onReply,
    onLost(cause) {
      onLost(ear, cause)
      state = 'closed'
      for (const utterance of live.values()) utterance.settle(null)
    },
  })
  const close = async (): Promise<void> => {
    state = 'closed'
    for (const utterance of live.values()) utterance.settle(null)
    await thread.close()
  }
  const closeIfEmpty = (): void => {
    if (state !== 'retiring' || live.size > 0) return
    void close()
    onRetired()
  }
  const ear: Ear = {
    freeSeats: () => (state === 'ready' ? seats - live.size : 0),
    seat(utterance) {
      live.set(utterance.id, utterance)
      utterance.seat(thread)
    },
    leave(utterance) {
      live.delete(utterance.id)
      closeIfEmpty()
    },
    isReady: () => state === 'ready',
    retire(onClosed) {
      state = 'retiring'
      onRetired = onClosed
      closeIfEmpty()
    },
    close,
  }
  return ear
}

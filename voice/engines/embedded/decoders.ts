/** Owns the decoders of one recognition thread, and which utterance each of them is busy with. */
import type { Clock } from '../../../model/clock.ts'
import type { RecognitionReply, RecognitionRequest } from './recognition-messages.ts'
import { startThread } from './thread.ts'
import type { LiveUtterance } from './utterance.ts'

export type Decoders = {
  /** How many more utterances it takes now. */
  free(): number
  /** So many of its callers may speak at once. */
  expect(callers: number): void
  assign(utterance: LiveUtterance): void
  release(utterance: LiveUtterance): void
  isReady(): boolean
  /** Takes nothing new, closes when it is empty and says so. */
  retire(onClosed: () => void): void
  close(): Promise<void>
}

type Deps = {
  readonly clock: Clock
  readonly entry: URL
  readonly size: number
  onReady(decoders: Decoders): void
  /** Its utterances have been settled as not understood. */
  onLost(decoders: Decoders, cause: unknown): void
  /** It could not hear one of its utterances: that one is settled as not understood, the others go on. Told once. */
  onFailing(decoders: Decoders, cause: unknown): void
  /** It holds as many grammars as it should. */
  onFull(decoders: Decoders): void
}

/** The recogniser cannot forget a grammar, and each takes about 700 kB: three times as many would fit, for those that come while the next thread starts. */
const maxGrammars = 100

export function openDecoders({ clock, entry, size, onReady, onLost, onFailing, onFull }: Deps): Decoders {
  const live = new Map<number, LiveUtterance>()
  let expected = 0
  let onRetired: () => void = () => undefined
  let state: 'starting' | 'ready' | 'retiring' | 'closed' = 'starting'

  const onReply = (reply: RecognitionReply): void => {
    if (reply.type === 'ready') {
      state = 'ready'
      return onReady(decoders)
    }
    const utterance = live.get(reply.utterance)
    if (reply.type === 'failed') {
      // First, so that it takes nobody who waits.
      if (state === 'ready') onFailing(decoders, new Error(reply.details))
      return utterance?.settle(null)
    }
    if (reply.type === 'partial') utterance?.partial(reply.words)
    if (reply.type !== 'final') return
    utterance?.settle(reply.heard)
    if (reply.compiled >= maxGrammars && state === 'ready') onFull(decoders)
  }
  const thread = startThread<RecognitionRequest, RecognitionReply>({
    entry,
    settings: { decoders: size },
    clock,
    onReply,
    onLost(cause) {
      onLost(decoders, cause)
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
  const decoders: Decoders = {
    free: () => (state === 'ready' ? size - live.size : 0),
    expect(callers) {
      if (callers === expected) return
      expected = callers
      thread.tell({ type: 'callers', callers })
    },
    assign(utterance) {
      live.set(utterance.id, utterance)
      utterance.assign(thread)
    },
    release(utterance) {
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
  return decoders
}

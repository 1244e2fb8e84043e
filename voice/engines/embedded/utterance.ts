/** Owns one utterance on its way through a recognition thread: sound that comes before it has a decoder, its end, and the one result. */
import type { Cancel, Clock } from '../../../model/clock.ts'
import type { Grammar } from './grammar.ts'
import type { RecognitionRequest, HeardWords } from './recognition-messages.ts'
import type { Thread } from './thread.ts'

/** As the side of the call sees it. */
export type Utterance = {
  /** 16 kHz samples; the caller gives the buffer away. */
  feed(samples: Int16Array<ArrayBuffer>): void
  /** No more sound. Null when nothing can be said about it. Never rejects. */
  end(): Promise<HeardWords | null>
  /** The result is not wanted any more. Idempotent. */
  drop(): void
}

/** As the thread's side sees it. */
export type LiveUtterance = Utterance & {
  readonly id: number
  /** Gives it a decoder of the thread: all sound it has goes there, and all that comes. */
  assign(thread: Thread<RecognitionRequest>): void
  partial(words: readonly string[]): void
  settle(heard: HeardWords | null): void
}

type Deps = {
  readonly id: number
  readonly grammar: Grammar
  readonly gain: number
  readonly clock: Clock
  onPartial(words: readonly string[]): void
  onSettled(utterance: LiveUtterance): void
}

const maxSamples = 20 * 16000
/** From the end of speech to the result, waiting for a decoder included. */
const answerWithin = 5000

export function createUtterance({ id, grammar, gain, clock, onPartial, onSettled }: Deps): LiveUtterance {
  const result = Promise.withResolvers<HeardWords | null>()
  let early: Int16Array<ArrayBuffer>[] = []
  let thread: Thread<RecognitionRequest> | null = null
  let samples = 0
  let ended = false
  let settled = false
  let deadline: Cancel | null = null

  const send = (chunk: Int16Array<ArrayBuffer>): void =>
    thread?.ask({ type: 'sound', utterance: id, samples: chunk }, [chunk.buffer])

  const utterance: LiveUtterance = {
    id,
    assign(assigned) {
      thread = assigned
      thread.ask({ type: 'begin', utterance: id, grammar, gain })
      for (const chunk of early.splice(0)) send(chunk)
      if (ended) thread.ask({ type: 'end', utterance: id })
    },
    partial(words) {
      if (!settled) onPartial(words)
    },
    settle(heard) {
      if (settled) return
      settled = true
      deadline?.()
      early = []
      result.resolve(heard)
      onSettled(utterance)
    },
    feed(chunk) {
      samples += chunk.length
      if (settled || ended || samples > maxSamples) return
      if (thread) send(chunk)
      else early.push(chunk)
    },
    end() {
      if (settled || ended) return result.promise
      ended = true
      deadline = clock.after(answerWithin, () => utterance.drop())
      thread?.ask({ type: 'end', utterance: id })
      return result.promise
    },
    drop() {
      if (settled) return
      thread?.tell({ type: 'drop', utterance: id })
      utterance.settle(null)
    },
  }
  return utterance
}

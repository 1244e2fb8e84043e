/** Owns when the SIP messages of a call are handed over to be kept: a moment after its end, when the last answers have come. */
import type { Cancel, Clock } from '../model/clock.ts'
import type { CallId } from '../model/ids.ts'
import type { Telephony } from '../model/telephony.ts'
import type { MessageTrail } from './message-trail.ts'

export type CallLadder = {
  began(callId: CallId, sipCallId: string): void
  ended(callId: CallId): void
  /** What waits is handed over now. */
  close(): void
}

type Deps = {
  readonly trail: Pick<MessageTrail, 'keep' | 'take'>
  readonly telephony: Pick<Telephony, 'ladder'>
  readonly clock: Pick<Clock, 'after'>
}

/** Ms for the answer to a BYE. */
const lastAnswers = 2_000

export function createCallLadder({ trail, telephony, clock }: Deps): CallLadder {
  const waiting = new Map<CallId, Cancel>()
  const handOver = (callId: CallId): void => {
    waiting.delete(callId)
    telephony.ladder?.(callId, trail.take(callId))
  }
  return {
    began: trail.keep,
    ended(callId) {
      waiting.get(callId)?.()
      waiting.set(
        callId,
        clock.after(lastAnswers, () => handOver(callId)),
      )
    },
    close() {
      for (const [callId, cancel] of waiting) {
        cancel()
        handOver(callId)
      }
    },
  }
}

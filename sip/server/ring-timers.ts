/** Owns how long an INVITE may wait for its final answer. RFC 3261 §13.3.1. */
import type { Cancel, Clock } from '../../model/clock.ts'
import type { SipRequest } from './message/message.ts'
import { secondsOf } from './message/numbered-fields.ts'

export type RingTimers = {
  /** The app has said something. */
  heard(): void
  /** Repeats it every minute: proxies between forget an INVITE that says nothing for long. */
  ring(again: () => void): void
  stop(): void
}

/** Ms. An app that says nothing at all; an app that rings for ever; §13.3.1.1 for how often it says so. */
const silence = 64_000
const longestRinging = 590_000
const ringAgain = 60_000

type Deps = {
  readonly clock: Clock
  readonly invite: SipRequest
  readonly silent: () => void
  readonly tooLong: () => void
}

export function createRingTimers({ clock, invite, silent, tooLong }: Deps): RingTimers {
  const cancelSilence = clock.after(silence, silent)
  const cancelLongest = clock.after(lifeOf(invite), tooLong)
  let cancelRing: Cancel = () => undefined

  function ring(again: () => void): void {
    cancelRing()
    cancelRing = clock.after(ringAgain, () => {
      again()
      ring(again)
    })
  }

  return {
    heard: cancelSilence,
    ring,
    stop() {
      cancelSilence()
      cancelLongest()
      cancelRing()
    },
  }
}

/** A caller may say for how long it asks. */
function lifeOf(invite: SipRequest): number {
  const seconds = secondsOf(invite, 'Expires')
  return Math.min(seconds ? seconds * 1000 : longestRinging, longestRinging)
}

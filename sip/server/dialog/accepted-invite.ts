/** Owns repeating our 2xx to an INVITE until its ACK comes. RFC 3261 §13.3.1.4. */
import type { Cancel, Clock } from '../../../model/clock.ts'

/** Ms: RFC 3261 §17.1.1.1. */
export type Timing = { readonly t1: number; readonly t2: number }

export type AcceptedInvite = {
  /** True the first time. */
  acknowledged(): boolean
  readonly isAcknowledged: () => boolean
  stop(): void
}

type Deps = {
  readonly clock: Clock
  readonly timing: Timing
  /** The 2xx once more; over TCP as well, for the way may have a part in UDP. */
  readonly sendAgain: () => void
  /** 64*T1 are over. */
  readonly lost: () => void
}

export function createAcceptedInvite({ clock, timing, sendAgain, lost }: Deps): AcceptedInvite {
  let acknowledged = false
  let cancelAgain: Cancel
  const cancelLost = clock.after(64 * timing.t1, () => {
    stop()
    lost()
  })
  wait(timing.t1)

  function wait(ms: number): void {
    cancelAgain = clock.after(ms, () => {
      sendAgain()
      wait(Math.min(2 * ms, timing.t2))
    })
  }

  function stop(): void {
    cancelAgain()
    cancelLost()
  }

  return {
    isAcknowledged: () => acknowledged,
    acknowledged() {
      if (acknowledged) return false
      acknowledged = true
      stop()
      return true
    },
    stop,
  }
}

/**
 * Owns the watch over a media thread that may stand still: an endless loop, a wait that nothing ends. It looks at a number that the thread counts up,
 * and counts its own looks in vain and not the time, so that a process that was stopped as a whole, or a main thread that was busy, blames nobody.
 */
import type { Cancel, Clock } from '../model/clock.ts'

const lookEvery = 1_000
/** After so many looks in vain no line is opened on the thread, and it is given up: what its callers have not heard by then is a lost call. */
const silentAfter = 2
const givenUpAfter = 5

export type BeatWatch = {
  begin(): void
  /** At the last looks nothing had changed. */
  isSilent(): boolean
  /** Idempotent. */
  close(): void
}

/** `stoodStill` is called once. */
export function watchBeat(clock: Pick<Clock, 'after'>, count: () => number, stoodStill: () => void): BeatWatch {
  let seen = 0
  let looksInVain = 0
  let isClosed = false
  let cancel: Cancel = () => undefined
  const look = (): void => {
    const current = count()
    looksInVain = current === seen ? looksInVain + 1 : 0
    seen = current
    if (looksInVain >= givenUpAfter) return stoodStill()
    lookSoon()
  }
  const lookSoon = (): void => {
    if (!isClosed) cancel = clock.after(lookEvery, look)
  }
  return {
    begin() {
      seen = count()
      lookSoon()
    },
    isSilent: () => looksInVain >= silentAfter,
    close() {
      isClosed = true
      cancel()
    },
  }
}

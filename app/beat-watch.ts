/**
 * Owns the watch over a media thread that may stand still: an endless loop, a wait that nothing ends. It asks the thread at each
 * look to count a number up, and counts its looks in vain and not the time, so that a process that was stopped as a whole, or a main thread that was busy,
 * blames nobody. A thread at rest wakes up for that and for nothing else.
 */
import { within, type Cancel, type Clock } from '../model/clock.ts'

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

type Watched = {
  /** How often the thread has counted. */
  count(): number
  /** It counts once more, if it lives. */
  ask(): void
}

/** `stoodStill` is called once. */
export function watchBeat(
  clock: Pick<Clock, 'after' | 'within'>,
  { count, ask }: Watched,
  stoodStill: () => void,
): BeatWatch {
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
    if (isClosed) return
    ask()
    cancel = within(clock, lookEvery, look)
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

/**
 * Owns when packets of a length that is no whole number of ticks go out: each as long after the one before as that one lasts, to half a tick. Sound
 * comes every 20 ms, so of packets of 30 ms every second one is whole too early, and of packets of 10 ms two are whole at once.
 */
import { frameMs } from '../../model/frame.ts'

export type EvenPace = {
  /** A packet of `ms` is whole at the time `at` of a tick; sent now, or half a tick later. */
  readonly put: (send: () => void, at: number, ms: number) => void
  /** Half a tick has passed. */
  readonly halfway: () => void
  /** What waits is sent now: something else follows. */
  readonly flush: () => void
}

const halfTick = frameMs / 2

export function createEvenPace(): EvenPace {
  let waiting: (() => void)[] = []
  /** When the next packet is due. */
  let due = -Infinity

  const flush = () => {
    if (waiting.length === 0) return
    const sends = waiting
    waiting = []
    for (const send of sends) send()
  }
  return {
    put(send, at, ms) {
      // A tick whose half was left out, or a line that stood still: nothing is held for longer than half a tick.
      const begins = due > at + halfTick || due < at ? at : due
      due = begins + ms
      if (begins > at) waiting.push(send)
      else {
        flush()
        send()
      }
    },
    halfway: flush,
    flush,
  }
}

/** Owns a clock that goes like the real one and can be moved on by a test: whoever waits for minutes has waited then. */
import type { Clock } from '../../model/clock.ts'

export type LeapingClock = Clock & {
  /** Runs, in order, what becomes due on the way. */
  leap(ms: number): void
}

type Timer = { readonly at: number; readonly action: () => void; cancel: () => void }

export function createLeapingClock(real: Clock): LeapingClock {
  let ahead = 0
  const now = () => real.now() + ahead
  const timers = new Set<Timer>()
  const run = (timer: Timer) => {
    timer.cancel()
    if (timers.delete(timer)) timer.action()
  }
  const arm = (timer: Timer) => (timer.cancel = real.after(Math.max(0, timer.at - now()), () => run(timer)))
  const nextDue = (until: number) => [...timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]
  return {
    now,
    after(ms, action) {
      const timer: Timer = { at: now() + ms, action, cancel: () => undefined }
      timers.add(timer)
      arm(timer)
      return () => {
        timer.cancel()
        timers.delete(timer)
      }
    },
    leap(ms) {
      const until = now() + ms
      for (let timer = nextDue(until); timer; timer = nextDue(until)) {
        ahead += Math.max(0, timer.at - now())
        run(timer)
      }
      ahead += Math.max(0, until - now())
      for (const timer of timers) {
        timer.cancel()
        arm(timer)
      }
    },
  }
}

/** Owns a clock that moves when the test moves it. */
import type { Clock } from '../../model/clock.ts'

export type HandClock = Clock & {
  /** Moves the time on and runs, in order, every timer that becomes due. */
  advance(ms: number): void
  pending(): number
}

export function createHandClock(start = 1_750_000_000_000): HandClock {
  let now = start
  const timers = new Set<{ at: number; action: () => void }>()
  const nextDue = (until: number) => [...timers].filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0]
  return {
    now: () => now,
    after(ms, action) {
      const timer = { at: now + ms, action }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    advance(ms) {
      const until = now + ms
      for (let timer = nextDue(until); timer; timer = nextDue(until)) {
        timers.delete(timer)
        now = Math.max(now, timer.at)
        timer.action()
      }
      now = until
    },
    pending: () => timers.size,
  }
}

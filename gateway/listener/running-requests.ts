/** Owns the count of requests that are being answered, so that closing can wait for them, for a while. */
import type { Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'

export function createRunningRequests(clock: Clock) {
  let running = 0
  let whenIdle: (() => void) | null = null

  async function track(answering: Promise<void>): Promise<void> {
    running++
    try {
      await answering
    } finally {
      running--
      if (running === 0) whenIdle?.()
    }
  }

  /** Resolves when nothing runs, at the latest after `graceMs`. */
  async function idle(graceMs: number): Promise<void> {
    if (running === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    whenIdle = resolve
    await deadline(clock, graceMs, promise, goOn)
  }

  return { track, idle }
}

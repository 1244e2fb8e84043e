/**
 * Owns the real clock. Its timers never keep the process alive by themselves: what must be finished is awaited by its owner. What need not be on the moment
 * shares one beat a second, so that a process at rest wakes up once for all of it: on many machines waking up costs more than what is done then.
 */
import type { Cancel, Clock } from '../model/clock.ts'

const beatEvery = 1_000

const after: Clock['after'] = (ms, action) => {
  const timer = setTimeout(action, ms).unref()
  return () => clearTimeout(timer)
}

export const systemClock: Clock = { now: () => Date.now(), after, within: createBeat(after) }

/** Ms that never jump. */
export const now = (): number => performance.now()

/** It beats while something waits for it. */
export function createBeat(timer: Clock['after']): Clock['after'] {
  const waiting = new Set<{ readonly due: number; readonly action: () => void }>()
  let beats = 0
  let isBeating = false

  const beat = (): void => {
    beats += 1
    isBeating = waiting.size > 0
    // Before what is done, which may take a while, or throw.
    if (isBeating) timer(beatEvery, beat)
    for (const one of waiting) {
      if (one.due > beats || !waiting.delete(one)) continue
      one.action()
    }
  }
  return (ms, action): Cancel => {
    // Never later than asked: what is to come sooner than a beat may be cannot wait for one.
    if (ms < beatEvery) return timer(ms, action)
    const one = { due: beats + Math.floor(ms / beatEvery), action }
    waiting.add(one)
    if (!isBeating) {
      isBeating = true
      timer(beatEvery, beat)
    }
    return () => void waiting.delete(one)
  }
}

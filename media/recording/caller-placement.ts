/**
 * Owns where the caller's sound lies on a recording's timeline: by its RTP timestamp, so that jitter and bursts do not move it, tied to
 * the time of arrival so that a drifting clock, a pause or a jump of more than 100 ms does not carry it away. Pure.
 */
import { recordingRateHz } from './track.ts'

export type CallerPlacement = {
  /** Position of the sound in samples, null when it must be left out. `nowAt` and `oldest`, before which nothing is placed, are positions too. */
  readonly place: (timestamp: number, length: number, nowAt: number, oldest: number) => number | null
}

const tolerated = recordingRateHz / 10
/** Sound that came in one burst may lie ahead of its time up to here. */
const maxAhead = recordingRateHz
/** Placements over which a steady drift is told from a passing delay: one second. */
const observed = 50

export function createCallerPlacement(clockRateHz: number): CallerPlacement {
  let lastTimestamp: number | null = null
  /** Where the last timestamp lies. */
  let line = 0
  let end = 0
  let seen = 0
  let earliest = Infinity
  let latest = -Infinity

  const observe = (offset: number) => {
    earliest = Math.min(earliest, offset)
    latest = Math.max(latest, offset)
    if (++seen < observed) return
    // Even the quickest was late, or even the slowest was early: that is drift.
    if (latest < -tolerated) line -= latest
    if (earliest > tolerated) line -= earliest
    seen = 0
    earliest = Infinity
    latest = -Infinity
  }

  return {
    place(timestamp, length, nowAt, oldest) {
      if (lastTimestamp === null) line = nowAt
      // Signed 32-bit difference: the timestamp wraps.
      else line += (((timestamp - lastTimestamp) | 0) * recordingRateHz) / clockRateHz
      lastTimestamp = timestamp
      const jumped = Math.abs(line - end) > 1 && line > nowAt + tolerated
      if (line < oldest || jumped) line = Math.max(nowAt, Math.min(end, nowAt + maxAhead))
      observe(line - nowAt)
      if (line > nowAt + maxAhead) return null
      end = line + length
      return Math.round(line)
    },
  }
}

/** Owns the time on the caller's line against the provider's, which counts only the sound that reached it. */
import { frameMs } from '../../../model/frame.ts'

export type LineClock = {
  /** 20 ms have passed; `isTaken`: the provider got their sound. */
  frame(isTaken: boolean): void
  now(): number
  /** Time on the line of a time on the provider's buffer; never after now. */
  lineMs(bufferMs: number): number
}

/** Places where sound was lost; beyond them the last one stands for all that follow. */
const maxGaps = 64

export function createLineClock(): LineClock {
  const gaps: { at: number; lost: number }[] = []
  let taken = 0
  let lost = 0

  const now = (): number => taken + lost
  return {
    frame(isTaken) {
      if (isTaken) {
        taken += frameMs
        return
      }
      lost += frameMs
      const last = gaps.at(-1)
      if (last && (last.at === taken || gaps.length >= maxGaps)) last.lost = lost
      else gaps.push({ at: taken, lost })
    },
    now,
    lineMs: (bufferMs) => Math.min(now(), bufferMs + (gaps.findLast(({ at }) => at <= bufferMs)?.lost ?? 0)),
  }
}

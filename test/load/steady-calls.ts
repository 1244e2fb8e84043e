/** Owns calls by telephone at a steady rate, whatever becomes of those before: set up, held for a moment, torn down. */
import { setTimeout as pause } from 'node:timers/promises'
import type { RawSipCaller } from '../../tools/callers/raw-sip-caller.ts'

export type SteadyCalls = {
  readonly ended: () => number
  readonly failed: () => number
  /** From INVITE to 200, ms, of those that came about. */
  readonly answeredMs: readonly number[]
  /** No more of them; resolves when none is left. */
  end(): Promise<void>
}

/** Ms that a call lasts. */
const heldMs = 300
/** Nobody listens on that port. */
const nowhere = 1_999

export function placeSteadily(caller: RawSipCaller, perSecond: number): SteadyCalls {
  const underWay = new Set<Promise<void>>()
  const answeredMs: number[] = []
  let [begun, ended, failed] = [0, 0, 0]
  const one = async (): Promise<void> => {
    const call = await caller.call(nowhere)
    answeredMs.push(call.answeredMs)
    await pause(heldMs)
    await call.hangUp()
    ended++
  }
  const began = performance.now()
  const timer = setInterval(() => {
    for (; begun < ((performance.now() - began) * perSecond) / 1_000; begun++) {
      const work: Promise<void> = one()
        .catch(() => void failed++)
        .finally(() => underWay.delete(work))
      underWay.add(work)
    }
  }, 5)
  return {
    ended: () => ended,
    failed: () => failed,
    answeredMs,
    async end() {
      clearInterval(timer)
      await Promise.all(underWay)
    },
  }
}

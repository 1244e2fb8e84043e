/**
 * Owns the voice of a supervisor who speaks in the agent's place: a short queue of what came, from which each tick takes 20 ms, and the suspicion that
 * nothing comes any more. docs/supervision.md.
 */
import { samplesOf, samplesPerFrame, type Frame } from '../../model/frame.ts'
import { supervisorSound } from '../../model/supervision.ts'

export type StandIn = {
  isOn(): boolean
  set(isOn: boolean): void
  push(frame: Frame): void
  /** 20 ms; null: there are none now. */
  next(): Int16Array | null
  tick(): void
}

const frameBytes = samplesPerFrame(supervisorSound) * 2
/** Frames: what waits at first, and when the oldest are left out. */
const [cushion, mostWaiting] = [3, 12]
/** Ms without a frame. */
export const lostAfter = 5_000

/** `lost` is told again every few seconds: what a leg tells comes once at most. */
export function createStandIn(now: () => number, lost: () => void): StandIn {
  const waiting: Int16Array[] = []
  let isOn = false
  let isFlowing = false
  let cameAt = 0

  return {
    isOn: () => isOn,
    set(on) {
      if (on === isOn) return
      isOn = on
      isFlowing = false
      waiting.length = 0
      cameAt = now()
    },
    push({ payload }) {
      if (!isOn || payload.length !== frameBytes) return
      cameAt = now()
      waiting.push(samplesOf(payload))
      if (waiting.length > mostWaiting) waiting.splice(0, waiting.length - cushion)
    },
    next() {
      isFlowing = isFlowing ? waiting.length > 0 : waiting.length >= cushion
      return (isFlowing && waiting.shift()) || null
    },
    tick() {
      if (!isOn || now() - cameAt < lostAfter) return
      cameAt = now()
      lost()
    },
  }
}

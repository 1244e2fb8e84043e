/** Owns how much of its time a media thread works: its event loop tells, and the sleep between its slots, which that takes for work. */
import { readGauges } from './media-gauges.ts'

/** Ms since the thread began. */
export type Loop = { readonly active: number; readonly idle: number }

/** Of a Worker. */
type Measured = { readonly performance: { readonly eventLoopUtilization: () => Loop } }

export function loopOf({ performance: measured }: Measured, gauges: SharedArrayBuffer): () => Loop {
  return () => {
    const { active, idle } = measured.eventLoopUtilization()
    const slept = Math.min(active, readGauges(gauges).slept)
    return { active: active - slept, idle: idle + slept }
  }
}

/** The result answers the part of the time since it was last asked, 0–1. */
export function busyMeterOf(loop: () => Loop): () => number {
  let before: Loop | null = null
  return () => {
    const current = loop()
    const last = before ?? current
    before = current
    const active = Math.max(0, current.active - last.active)
    const all = active + Math.max(0, current.idle - last.idle)
    return all === 0 ? 0 : active / all
  }
}

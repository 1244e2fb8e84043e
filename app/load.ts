/** Owns the wiring of the gate before new calls: what it measures of this process, and whether it is there at all. */
import { performance } from 'node:perf_hooks'
import { createCommitWatch, type CommitWatch } from '../actors/node/commit-watch.ts'
import { createLoadGate } from '../actors/node/load-gate.ts'
import { createSetUps } from '../actors/node/set-ups.ts'
import { openGate, type LoadGate, type SetUps } from '../model/load-gate.ts'
import { now } from './clock.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'
import type { MediaSide } from './media-side.ts'

export type Load = {
  readonly gate: LoadGate
  /** With and without a gate: nobody is refused who does not wait for seconds. */
  readonly setUps: SetUps
  readonly commits: CommitWatch
  /** The media are opened after what begins calls. */
  watch(media: MediaSide): void
}

/** Until the media are there. */
const noCalls = { calls: 0, fresh: 0 }

/** Everything may begin. */
export const unwatchedLoad = (clock: Core['clock']): Load => ({
  gate: openGate,
  setUps: createSetUps({ clock, now }),
  commits: createCommitWatch(now),
  watch: () => undefined,
})

export function openLoad({ clock, log, telemetry }: Core, config: Config, closing: AsyncDisposableStack): Load {
  if (!config.loadGate) return unwatchedLoad(clock)
  const commits = createCommitWatch(now)
  let media: MediaSide | null = null
  const gate = createLoadGate({
    now,
    clock,
    media: { beats: () => media?.beats() ?? [], calls: () => media?.count() ?? noCalls },
    busy: busiest(busyMeter(), () => media?.busy() ?? 0),
    commits,
    log,
    telemetry,
  })
  closing.defer(() => gate.close())
  return { gate, setUps: createSetUps({ clock, now }), commits, watch: (opened) => void (media = opened) }
}

/** Each is asked each time. */
const busiest =
  (one: () => number, other: () => number): (() => number) =>
  () =>
    Math.max(one(), other())

/** Time without work is time in which the loop waits for events; one that waits for a core has work. */
export function busyMeter(): () => number {
  let before = performance.eventLoopUtilization()
  return () => {
    const current = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(current, before)
    before = current
    return utilization
  }
}

/**
 * Owns the gate before the calls of this node: reads the measures four times a second, and once a second at rest, asks the policy (load-policy.ts), and tells
 * of what was refused. One per process, because a thread carries the calls of its process and no others.
 */
import { within, type Cancel, type Clock } from '../../model/clock.ts'
import {
  loadRefusalOf,
  type Beginning,
  type LoadGate,
  type LoadReason,
  type LoadRefusal,
} from '../../model/load-gate.ts'
import type { Log } from '../../model/log.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import { createLoadPolicy } from './load-policy.ts'
import type { CommitWatch } from './commit-watch.ts'

/** What the media of this process tells of itself. */
export type MediaLoad = {
  /** Of each beat that a call's sound waits for, since it began: the worst of them counts. */
  readonly beats: () => readonly Beat[]
  /** Legs: `fresh` ones have been made in the last seconds. */
  readonly calls: () => { readonly calls: number; readonly fresh: number }
}

type Beat = { readonly ticks: number; readonly late: number; readonly skipped: number }

type Deps = {
  /** Ms that never jump. */
  readonly now: () => number
  readonly clock: Pick<Clock, 'after' | 'within'>
  readonly media: MediaLoad
  /** Part of the time since it was last asked in which the thread was at work, 0–1. */
  readonly busy: () => number
  readonly commits: Pick<CommitWatch, 'read'>
  readonly log: Log
  readonly telemetry?: Telemetry
}

export type NodeLoadGate = LoadGate & {
  /** Idempotent. */
  close(): void
}

const readEvery = 250
/** While there is no call, and none begins. */
const readAtRest = 1_000
/** After the last refusal so much later nothing is refused any more. */
const quietFor = 5_000

export function createLoadGate(deps: Deps): NodeLoadGate {
  const policy = createLoadPolicy()
  const refusals = createRefusals(deps)
  const look = createLook(deps)
  let cancel: Cancel = () => undefined
  let isAtRest = false

  const read = (): void => {
    const reading = look()
    policy.read(reading)
    refusals.quiet()
    isAtRest = reading.calls + reading.fresh === 0 && !policy.isClosed() && refusals.areOver()
  }
  const poll = (): void => {
    read()
    readSoon()
  }
  const readSoon = (): void => {
    cancel = isAtRest ? within(deps.clock, readAtRest, poll) : deps.clock.after(readEvery, poll)
  }
  readSoon()
  const took = (beginning: Beginning, count: number): void => {
    policy.took(beginning, count)
    if (!isAtRest) return
    isAtRest = false
    cancel()
    readSoon()
  }

  /** A thread that was blocked comes to its sockets before its timers now and then. */
  const ask = (beginning: Beginning, isPromised: boolean): LoadRefusal | null => {
    if (look.age() > 2 * readEvery) read()
    const reason = policy.refusal(isPromised)
    if (reason === null) return null
    // A caller may be known from before, and is told otherwise by who looks for the number.
    return reason === 'database' && beginning === 'phone_call' ? null : refusals.add(beginning, reason)
  }
  const admit = (beginning: Beginning, isPromised: boolean): LoadRefusal | null => {
    const refusal = ask(beginning, isPromised)
    if (refusal === null) took(beginning, 1)
    return refusal
  }
  return {
    refusal: (beginning) => ask(beginning, false),
    admit: (beginning) => admit(beginning, false),
    admitPromised: (beginning) => admit(beginning, true),
    writing() {
      const reason = policy.refusal(true)
      return reason === 'commits' || reason === 'database' ? refusals.add('phone_call', reason) : null
    },
    giveBack: (beginning) => took(beginning, -1),
    room: (beginning) => policy.room(beginning),
    began: (beginning, count) => took(beginning, count),
    newCalls() {
      if (policy.isClosed()) return 'refused'
      return policy.refusal(false) === null ? 'taken' : 'limited'
    },
    close: () => cancel(),
  }
}

function createLook({ now, media, busy, commits }: Deps) {
  let at = now()
  let before = media.beats()
  const look = () => {
    const beats = media.beats()
    const { medianMs, stuckMs } = commits.read()
    const reading = {
      elapsedMs: Math.max(1, now() - at),
      late: beats.map((beat, index) => lateSince(before[index], beat)),
      busy: busy(),
      commitMs: medianMs,
      stuckMs,
      ...media.calls(),
    }
    at = now()
    before = beats
    return reading
  }
  return Object.assign(look, { age: () => now() - at })
}

/** Part of its slots, 0–1; null: none was due. */
function lateSince(before: Beat = { ticks: 0, late: 0, skipped: 0 }, { ticks, late, skipped }: Beat): number | null {
  const due = ticks - before.ticks + skipped - before.skipped
  return due <= 0 ? null : (late - before.late + skipped - before.skipped) / due
}

/** One line when refusals begin and one when they are over, however many there were. */
function createRefusals({ now, log, telemetry = noTelemetry }: Deps) {
  let count = 0
  let since = 0
  let last = -Infinity
  return {
    add(beginning: Beginning, reason: LoadReason): LoadRefusal {
      last = now()
      if (count === 0) {
        since = last
        log.warn('new calls are refused: this node has no room for them', { reason, beginning })
      }
      count++
      telemetry.count('load.refused', { beginning, reason })
      return loadRefusalOf(reason)
    },
    quiet() {
      if (count === 0 || now() - last < quietFor) return
      log.warn('new calls are taken again', { refused: count, ms: Math.round(last - since) })
      count = 0
    },
    areOver: () => count === 0,
  }
}

/**
 * Owns when a node begins new calls, by how its running ones fare. Pure: readings in, verdict out; time comes with the readings.
 *
 * Three things are measured: how much of the ticker's slots were late, how much of the time the thread was at work, and how long commits took.
 * Calls begin out of a purse of work (ms of the thread). It fills by what the thread has left up to `busyWanted`, slower while sound or commits
 * come late, so that the rate falls gradually as a node fills. When a limit is passed all the same, nothing begins until every measure is back
 * below its lower mark, and then slowly at first. All this protects calls that talk. Where hardly any do, nobody is hurt by who begins, and a slow
 * node is slow for another reason than its calls: it refuses only when nothing could be heard on it, or very many begin at once.
 */
import type { Beginning, LoadReason } from '../../model/load-gate.ts'

/** What happened since the last one. */
export type LoadReading = {
  readonly elapsedMs: number
  /**
   * Of each beat that calls wait for, always in the same order: part of its slots that were run late or left out, 0–1; null: none was due. The one
   * that fares worst counts, over a while and not in each reading: of many beats one has always just been late.
   */
  readonly late: readonly (number | null)[]
  /** Part of the time in which the thread was at work or waited for a core, 0–1. */
  readonly busy: number
  /** Of the commits that ended, the median; null: none did. */
  readonly commitMs: number | null
  /** How long the oldest commit has been under way, or commits have failed. */
  readonly stuckMs: number
  /** That have had a leg here for a while. */
  readonly calls: number
  /** That have just got one. */
  readonly fresh: number
}

export type LoadPolicy = {
  read(reading: LoadReading): void
  /** Null: it may begin. `isPromised`: however fast others begin. */
  refusal(isPromised: boolean): LoadReason | null
  took(beginning: Beginning, count: number): void
  room(beginning: Beginning): number
  isClosed(): boolean
}

type Marks = { readonly low: number; readonly high: number }

/** Parts of the slots. At 1 % a caller hears nothing of it. */
export const lateMarks: Marks = { low: 0.01, high: 0.03 }
/** Between these new calls begin the slower the later sound comes: so that it does not come as late as that. */
export const latePace: Marks = { low: 0.005, high: lateMarks.high }
/** Parts of the time. The ticker's own lateness stays at 1 ms up to 0.82 and grows tenfold to 0.96. */
export const busyMarks: Marks = { low: 0.75, high: 0.88 }
export const busyWanted = 0.7
/** Ms. A step takes 5 to 20; a turn of a conversation waits for one or two. */
export const commitMarks: Marks = { low: 200, high: 1_000 }
export const stuckLimit = 2_000
/** Fewer calls are not what makes a node slow. */
export const fewCalls = 8
/** At once, on a node with hardly any call: so many placed in one moment took 1.5 s of the thread. */
export const maxFresh = 150
const inaudible = { late: 0.5, busy: 0.9, commitMs: 2_000 } as const

/** Of the thread, ms, measured; what they really cost shows in the next readings. */
const costs: Readonly<Record<Beginning, number>> = { web_session: 5, web_call: 25, phone_call: 6 }

/** Ms over which measures are averaged. */
const memory = { late: 2_000, busy: 1_000, commit: 2_000 } as const
/** One stall is no overload, however long it was: more than this counts as this. */
const counted = { late: 0.1, commitMs: 4_000 } as const
/** Ms of work: what may begin at once on a node at rest. */
const fullPurse = 850
/** Ms. */
const leastClosed = 1_000
/** Ms of work a second after nothing began; twice as much with every second. */
const firstPace = 12
const fullPace = 1_000
/** Of what is missing to `busyWanted`, the part by which the pace grows. */
const gain = 0.5

export function createLoadPolicy(): LoadPolicy {
  const measured = { late: 0, lateAtAll: 0, busy: 0, commitMs: 0, stuckMs: 0 }
  const beats: { late: number; lateAtAll: number }[] = []
  let calls = 0
  /** And those that began since the last reading. */
  let fresh = 0
  /** Work of what began, ms since the last reading, and as part of the time. */
  let spent = 0
  let beginning = 0
  let purse = fullPurse
  let slowStart = fullPace
  let closedFor: LoadReason | null = null
  /** Ms since a measure was beyond its mark. */
  let closedMs = 0

  const isFew = (): boolean => calls < fewCalls
  const roomOfFew = (): number => (isFew() && slowStart >= fullPace ? Math.max(0, maxFresh - fresh) : 0)
  const measure = (reading: LoadReading): void => {
    const { elapsedMs, busy, commitMs } = reading
    const over = (ms: number): number => 1 - Math.exp(-elapsedMs / ms)
    beats.length = reading.late.length
    for (const [index, part] of reading.late.entries()) {
      const beat = (beats[index] ??= { late: 0, lateAtAll: 0 })
      const late = part ?? 0
      beat.late += (Math.min(late, counted.late) - beat.late) * over(memory.late)
      beat.lateAtAll += (late - beat.lateAtAll) * over(memory.late)
    }
    measured.late = Math.max(0, ...beats.map(({ late }) => late))
    measured.lateAtAll = Math.max(0, ...beats.map(({ lateAtAll }) => lateAtAll))
    measured.busy += (busy - measured.busy) * over(memory.busy)
    if (commitMs !== null)
      measured.commitMs += (Math.min(commitMs, counted.commitMs) - measured.commitMs) * over(memory.commit)
    measured.stuckMs = reading.stuckMs
    beginning += (spent / Math.max(1, elapsedMs) - beginning) * over(memory.busy)
    spent = 0
    calls = reading.calls
    fresh = reading.fresh
  }
  const fill = (elapsedMs: number): void => {
    slowStart = Math.min(fullPace, slowStart * 2 ** (elapsedMs / 1_000))
    const earned = Math.min(fullPurse, (Math.min(slowStart, paceOf(measured, beginning)) * elapsedMs) / 1_000)
    // Of what was earned between two readings twice as much may begin, however full the node is: calls come unevenly.
    purse = Math.min(Math.max(purseOf(measured.busy, slowStart), 2 * earned), purse + earned)
  }
  const close = (reason: LoadReason): void => {
    closedFor = reason
    closedMs = 0
    slowStart = firstPace
    purse = 0
  }

  return {
    read(reading) {
      measure(reading)
      const reason = isFew() ? faultOfFew(measured, calls) : faultOf(measured)
      if (reason !== null) return close(reason)
      closedMs += reading.elapsedMs
      if (closedFor !== null && (closedMs < leastClosed || !hasRecovered(measured, isFew()))) return
      closedFor = null
      fill(reading.elapsedMs)
    },
    refusal(isPromised) {
      if (closedFor !== null) return closedFor
      return isPromised || purse > 0 || roomOfFew() > 0 ? null : 'pace'
    },
    took(what, count) {
      spent += costs[what] * count
      purse = Math.min(fullPurse, purse - costs[what] * count)
      if (what !== 'web_session') fresh = Math.max(0, fresh + count)
    },
    room(what) {
      if (closedFor !== null) return 0
      return Math.max(0, roomOfFew(), Math.ceil(purse / costs[what]))
    },
    isClosed: () => closedFor !== null,
  }
}

type Measured = {
  readonly late: number
  readonly lateAtAll: number
  readonly busy: number
  readonly commitMs: number
  readonly stuckMs: number
}

function faultOf({ late, busy, commitMs, stuckMs }: Measured): LoadReason | null {
  if (late >= lateMarks.high) return 'late'
  if (busy >= busyMarks.high) return 'busy'
  if (stuckMs >= stuckLimit) return 'database'
  return commitMs >= commitMarks.high ? 'commits' : null
}

function faultOfFew({ lateAtAll, busy, commitMs, stuckMs }: Measured, calls: number): LoadReason | null {
  if (calls > 0 && lateAtAll >= inaudible.late && busy >= inaudible.busy) return 'late'
  if (stuckMs >= stuckLimit) return 'database'
  return commitMs >= inaudible.commitMs ? 'commits' : null
}

function hasRecovered({ late, lateAtAll, busy, commitMs, stuckMs }: Measured, isFew: boolean): boolean {
  if (stuckMs >= stuckLimit / 2) return false
  if (isFew) return lateAtAll < inaudible.late / 2 && commitMs < inaudible.commitMs / 2
  return late < lateMarks.low && busy < busyMarks.low && commitMs < commitMarks.low
}

/** Ms of work a second: what beginnings take now, and a part of what is left beside them. */
function paceOf({ late, busy, commitMs }: Measured, beginning: number): number {
  const left = Math.max(0, beginning + gain * (busyWanted - busy))
  return fullPace * left * partBelow(late, latePace) * partBelow(commitMs, commitMarks)
}

/** Ms of work that may begin at once. */
const purseOf = (busy: number, slowStart: number): number =>
  Math.min(fullPurse * Math.max(0, 1 - busy / busyWanted) ** 3 + costs.web_call, slowStart)

/** 1 below the lower mark, 0 from the higher one on. */
const partBelow = (value: number, { low, high }: Marks): number =>
  Math.min(1, Math.max(0, (high - value) / (high - low)))

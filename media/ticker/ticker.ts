/**
 * Owns the beat of a media thread: one timer for all legs. 20 ms are cut into four slots of 5 ms, and each leg has its slot, so that
 * the work is spread. The beat lies on a fixed grid and catches up after a delay; a timer per leg would drift and lose packets.
 */
import type { Cancel } from '../../model/clock.ts'
import { frameMs } from '../../model/frame.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import type { Lateness, LatenessTotals } from './lateness.ts'
import { createObservedLateness } from './observed-lateness.ts'

/**
 * `at` is when the tick was due: 20 ms, or a whole multiple after a gap, later than the last one. `lateMs` is how much later its slot was run.
 * Who throws leaves the beat.
 */
type OnTick = (at: number, lateMs: number) => void

export type Ticker = {
  /** `halfway` is called 10 ms after each tick. The result leaves again and is idempotent. */
  readonly join: (onTick: OnTick, halfway?: OnTick) => () => void
  readonly lateness: () => Lateness
  readonly totals: () => LatenessTotals
  /** Somebody has joined and not left. */
  readonly isBeating: () => boolean
  /** Idempotent; nobody is called after it. */
  readonly close: () => void
}

export type TickerDeps = {
  /** Milliseconds that never jump, with fractions: performance.now. */
  readonly now: () => number
  readonly after: (ms: number, action: () => void) => Cancel
  readonly telemetry?: Telemetry
  /** A member threw, and is called no more. Without it the thread is told. */
  readonly failed?: (error: unknown) => void
}

const slots = 4
const slotMs = frameMs / slots
/** Further behind than this, what was missed is left out: a burst would only flood the receivers. */
const maxBehindMs = 200

export function createTicker({ now, after, telemetry = noTelemetry, failed = rethrow }: TickerDeps): Ticker {
  const members = createMembers()
  const meter = createObservedLateness(telemetry)
  const grid = createGrid()
  let stopTimer: Cancel | null = null
  let running = false
  let closed = false

  const runSlot = () => {
    const { slot, at } = grid.next()
    const current = members.of(slot)
    const halfway = members.halfwayAt(slot)
    if (current.size === 0 && halfway.size === 0) return
    const time = now()
    const lateMs = time - at
    meter.add(lateMs, time)
    // An iterator of a set would make an object for each.
    const run = (action: OnTick): void => action(at, lateMs)
    current.forEach(run)
    halfway.forEach(run)
  }

  const arm = () => {
    stopTimer?.()
    stopTimer = after(Math.max(0, grid.due() - now()), wake)
  }

  // Runs what is due now and not what becomes due meanwhile: an overloaded thread must still get to its sockets.
  const wake = () => {
    const until = now()
    if (until - grid.due() > maxBehindMs) meter.skip(grid.skipTo(until), until)
    try {
      while (running && grid.due() <= until) runSlot()
    } finally {
      if (running) arm()
    }
  }

  const stop = () => {
    running = false
    stopTimer?.()
    stopTimer = null
    meter.tell()
  }

  return {
    join(onTick, halfway) {
      if (closed) return () => {}
      const guarded =
        (action: OnTick): OnTick =>
        (at, lateMs) => {
          try {
            action(at, lateMs)
          } catch (error) {
            leaveBeat()
            failed(error)
          }
        }
      const leave = members.add(guarded(onTick), halfway && guarded(halfway))
      const leaveBeat = (): void => {
        leave()
        if (members.isEmpty()) stop()
      }
      if (!running) {
        running = true
        grid.startAt(now() + slotMs)
        arm()
      }
      return leaveBeat
    },
    lateness: () => meter.read(now()),
    totals: meter.totals,
    isBeating: () => running,
    close() {
      closed = true
      stop()
    },
  }
}

/** The line of slots in time. */
function createGrid() {
  let slot = 0
  let due = 0
  const pass = (count: number) => {
    slot += count
    due += count * slotMs
  }
  return {
    due: () => due,
    startAt: (time: number) => void (due = time),
    next() {
      const current = { slot, at: due }
      pass(1)
      return current
    },
    /** Answers how many slots were left out. */
    skipTo(time: number): number {
      const count = Math.floor((time - due) / slotMs)
      pass(count)
      return count
    },
  }
}

function createMembers() {
  const sets = Array.from({ length: slots }, () => new Set<OnTick>())
  const halves = Array.from({ length: slots }, () => new Set<OnTick>())
  const addTo = (set: Set<OnTick>, onTick: OnTick) => {
    set.add(onTick)
    return () => void set.delete(onTick)
  }
  return {
    of: (slot: number): ReadonlySet<OnTick> => sets[slot % slots]!,
    halfwayAt: (slot: number): ReadonlySet<OnTick> => halves[slot % slots]!,
    isEmpty: () => sets.every((set) => set.size === 0),
    /** Each is a function of its own. Into the emptiest slot; the result takes it out again. */
    add(onTick: OnTick, halfway?: OnTick): () => void {
      const emptiest = sets.reduce((best, candidate, slot) => (candidate.size < sets[best]!.size ? slot : best), 0)
      const leave = addTo(sets[emptiest]!, onTick)
      const leaveHalf = halfway && addTo(halves[(emptiest + slots / 2) % slots]!, halfway)
      return () => {
        leave()
        leaveHalf?.()
      }
    },
  }
}

function rethrow(error: unknown): never {
  throw error
}

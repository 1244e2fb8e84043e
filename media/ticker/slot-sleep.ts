/**
 * Owns how a thread that carries nothing but sound waits for its beat: asleep from slot to slot, woken by nothing in between. A wake-up costs as much as
 * what is done with the datagram that brings it, and of 100 calls up to 5,000 come in a second, of slots 200. What came meanwhile (datagrams, messages, files,
 * timers) is taken in one turn of the event loop, right before its slot is run, at most `longestSleep` later than it would have been.
 *
 * Never on the main thread, which others wait for. Nothing sleeps while nobody waits for a slot.
 */
import type { Cancel } from '../../model/clock.ts'

export type SlotSleep = {
  /** As a timer, to a fraction of a ms. One wait at a time: a new one is in the place of the one before. */
  readonly after: (ms: number, action: () => void) => Cancel
  /** In the turn of the next slot, before that is run; within `longestSleep` where nobody waits for one. */
  readonly beforeSlot: (action: () => void) => Cancel
  /** When nothing more has come to be done, or a slot was run: at the latest before the thread sleeps. */
  readonly afterTurn: (action: () => void) => void
}

type Deps = {
  /** Milliseconds that never jump, with fractions. */
  readonly now: () => number
  /** For when no slot is waited for. */
  readonly later: (ms: number, action: () => void) => Cancel
  /** Told after each sleep, as the event loop counts its waits, until the thread has a core again: it does not see these. */
  readonly slept: (ms: number) => void
  /** In the next turn of the event loop, behind all that has come until then; it does not wait for anything to come. */
  readonly nextTurn?: (action: () => void) => Cancel
  /** Holds up the whole thread. */
  readonly sleep?: (ms: number) => void
}

const longestSleep = 5
/** A turn that took longer than this had something to do, and may have left some of it to the next: of one socket libuv takes 32 datagrams in a turn. */
const emptyTurn = 0.1

export function createSlotSleep(deps: Deps): SlotSleep {
  const { now, slept, nextTurn = nextTurnOfLoop, sleep = createSleep() } = deps
  const early = createEarly(deps.later)
  let waiting: { readonly due: number; readonly action: () => void } | null = null
  let turnBegan = 0
  let cancelTurn: Cancel | null = null
  let isRunning = false
  const late: (() => void)[] = []

  const goRound = (): void => {
    turnBegan = now()
    cancelTurn = nextTurn(look)
  }
  const look = (): void => {
    cancelTurn = null
    if (waiting === null) return
    const time = now()
    if (time >= waiting.due) return run(waiting.action)
    const wasEmpty = time - turnBegan <= emptyTurn
    if (wasEmpty && late.length > 0) runLate()
    else if (wasEmpty) sleepUntil(waiting.due, time)
    goRound()
  }
  const sleepUntil = (due: number, time: number): void => {
    sleep(Math.min(due - time, longestSleep))
    slept(now() - time)
  }
  const run = (action: () => void): void => {
    waiting = null
    isRunning = true
    try {
      early.run()
      action()
    } finally {
      isRunning = false
      runLate()
      if (waiting === null) early.waitNoMore()
    }
  }
  const runLate = (): void => {
    for (const action of late.splice(0)) action()
  }

  return {
    after(ms, action) {
      const own = { due: now() + ms, action }
      waiting = own
      early.waitForSlot()
      if (cancelTurn === null) goRound()
      return () => {
        if (waiting !== own) return
        waiting = null
        cancelTurn?.()
        cancelTurn = null
        runLate()
        early.waitNoMore()
      }
    },
    beforeSlot: early.add,
    afterTurn(action) {
      late.push(action)
      if (waiting === null && !isRunning) nextTurn(runLate)
    },
  }
}

/** What is to be done before the next slot: there may be none for a long while, and then a timer brings it. */
function createEarly(later: Deps['later']) {
  /** With their timers. */
  let actions = new Map<() => void, Cancel | null>()
  let isSlotDue = false

  const byTimer = (act: () => void): Cancel =>
    later(longestSleep, () => {
      if (actions.delete(act)) act()
    })
  return {
    add(action: () => void): Cancel {
      const act = (): void => action()
      actions.set(act, isSlotDue ? null : byTimer(act))
      return () => {
        actions.get(act)?.()
        actions.delete(act)
      }
    },
    run(): void {
      const due = actions
      actions = new Map()
      for (const [act, cancelTimer] of due) {
        cancelTimer?.()
        act()
      }
    },
    waitForSlot: () => void (isSlotDue = true),
    waitNoMore(): void {
      isSlotDue = false
      for (const [act, cancelTimer] of actions) if (cancelTimer === null) actions.set(act, byTimer(act))
    },
  }
}

/** While it is asked for, the event loop looks for what has come and waits for nothing. */
function nextTurnOfLoop(action: () => void): Cancel {
  const immediate = setImmediate(action)
  return () => clearImmediate(immediate)
}

function createSleep(): (ms: number) => void {
  const neverWoken = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  return (ms) => void Atomics.wait(neverWoken, 0, 0, ms)
}

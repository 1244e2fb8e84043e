/**
 * Owns how many calls this node sets up at a time. Each set-up is many small pieces of work, and between two beats of the sound of running calls the
 * thread does one piece of every set-up that is under way: so few of them are, and the others wait their turn, in the order in which they came.
 * Who would wait too long, or behind too many, is refused at once, while somebody else may still take the call. A crowd that comes in one moment
 * is taken: it is gone in a few seconds. More than are set up, for as long as they come, would only make each other wait.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import { loadRefusalOf, type LoadRefusal, type SetUpTurn, type SetUps } from '../../model/load-gate.ts'

export const mostSetUps = 8
/** A burst that is set up within the patience of a caller's network. */
export const mostWaiting = 300
/** Ms after which a set-up counts no more: what it waits for then (a bus that is away) is no work of this thread. */
export const longestSetUp = 5_000
/** Ms. Carriers try another way when they have waited for more than a few seconds. */
export const patience = 4_000
/** Ms from when the first has to wait: who comes then belongs to a crowd. */
export const oneMoment = 250
/** Ms. Who comes after it and may expect to wait for longer is refused; so long nobody wonders that it does not ring. */
export const longestExpected = 2_000
/** Of the intervals in which set-ups begin, about so many are averaged: they begin in clusters, as the commits of several end together. */
const averagedOver = 2 * mostSetUps
/** Ms. One stall is no slowness, however long it was: more than this counts as this. */
const longestCounted = 250

type Waiting = { begin(): void; readonly cancel: Cancel }

type Deps = {
  readonly clock: Pick<Clock, 'after'>
  /** Ms that never jump. */
  readonly now: () => number
}

export function createSetUps({ clock, now }: Deps): SetUps {
  const pace = createPace(now)
  const waiting = new Set<Waiting>()
  let underWay = 0
  /** Of those that wait. Browsers and dials, which wait as long as it takes, take no room of theirs. */
  let patient = 0

  const begin = (): SetUpTurn => {
    underWay++
    let isDone = false
    const done = (): void => {
      if (isDone) return
      isDone = true
      cancel()
      underWay--
      beginNext()
    }
    const cancel = clock.after(longestSetUp, done)
    return { done }
  }
  const beginNext = (): void => {
    const [next] = waiting
    if (!next || underWay >= mostSetUps) return
    waiting.delete(next)
    next.cancel()
    pace.began()
    next.begin()
    if (waiting.size === 0) pace.nobodyWaits()
  }
  const hasRoom = (): boolean => {
    if (patient < mostSetUps || pace.isOneMoment()) return patient < mostWaiting
    return patient < mostWaiting && patient * pace.interval() < longestExpected
  }
  const wait = (within: number | null): Promise<SetUpTurn | LoadRefusal> => {
    const { promise, resolve } = Promise.withResolvers<SetUpTurn | LoadRefusal>()
    const giveUp = (): void => {
      waiting.delete(waiter)
      if (waiting.size === 0) pace.nobodyWaits()
      patient--
      resolve(loadRefusalOf('pace'))
    }
    const cancelWait = within === null ? null : clock.after(within, giveUp)
    if (cancelWait) patient++
    const cancel = (): void => {
      cancelWait?.()
      if (cancelWait) patient--
    }
    const waiter = { begin: () => resolve(begin()), cancel }
    if (waiting.size === 0) pace.firstWaits()
    waiting.add(waiter)
    return promise
  }
  return {
    async turn() {
      if (underWay < mostSetUps) return begin()
      return hasRoom() ? wait(patience) : loadRefusalOf('pace')
    },
    async inTurn(work) {
      const turn = underWay < mostSetUps ? begin() : await wait(null)
      try {
        return await work()
      } finally {
        if ('done' in turn) turn.done()
      }
    },
  }
}

/** How fast those that wait begin. */
function createPace(now: () => number) {
  /** Ms between two beginnings while others wait; 0 until it is known. */
  let interval = 0
  let waitedSince: number | null = null
  let last = 0
  return {
    firstWaits() {
      waitedSince = last = now()
    },
    nobodyWaits: () => void (waitedSince = null),
    began() {
      const at = now()
      interval += (Math.min(at - last, longestCounted) - interval) / averagedOver
      last = at
    },
    isOneMoment: () => waitedSince === null || now() - waitedSince <= oneMoment,
    interval: () => interval,
  }
}

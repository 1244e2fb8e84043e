/**
 * Owns how many calls this node sets up at a time. Each set-up is many small pieces of work, and between two beats of the sound of running calls the
 * thread does one piece of every set-up that is under way: so few of them are, and the others wait their turn, in the order in which they came.
 * Who would wait too long, or behind too many, is refused at once, while somebody else may still take the call.
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

type Waiting = { begin(): void; readonly cancel: Cancel }

export function createSetUps({ clock }: { readonly clock: Pick<Clock, 'after'> }): SetUps {
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
    next.begin()
  }
  const wait = (within: number | null): Promise<SetUpTurn | LoadRefusal> => {
    const { promise, resolve } = Promise.withResolvers<SetUpTurn | LoadRefusal>()
    const giveUp = (): void => {
      waiting.delete(waiter)
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
    waiting.add(waiter)
    return promise
  }
  return {
    async turn() {
      if (underWay < mostSetUps) return begin()
      return patient < mostWaiting ? wait(patience) : loadRefusalOf('pace')
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

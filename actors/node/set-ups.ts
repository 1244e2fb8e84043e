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
/** Ms. Carriers try another way when they have waited for more than a few seconds. */
export const patience = 4_000

type Waiting = { begin(): void; readonly cancel: Cancel }

export function createSetUps({ clock }: { readonly clock: Pick<Clock, 'after'> }): SetUps {
  const waiting = new Set<Waiting>()
  let underWay = 0

  const begin = (): SetUpTurn => {
    underWay++
    let isDone = false
    return {
      done() {
        if (isDone) return
        isDone = true
        underWay--
        beginNext()
      },
    }
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
      resolve(loadRefusalOf('pace'))
    }
    const cancel = within === null ? () => undefined : clock.after(within, giveUp)
    const waiter = { begin: () => resolve(begin()), cancel }
    waiting.add(waiter)
    return promise
  }
  return {
    async turn() {
      if (underWay < mostSetUps) return begin()
      return waiting.size < mostWaiting ? wait(patience) : loadRefusalOf('pace')
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

/**
 * Owns the turns of what lines and legs begin and end with. Many calls may come in one moment, and the beat of those that run goes before: a little of
 * that work is done in each turn of the event loop, in the order in which it came, and the rest waits for the next ones.
 */

/** Done now where nothing waits, else in its turn. `work` does not throw. What waits is bounded by who asks: a line, a leg, its end. */
export type InTurn = (work: () => void) => void

type Deps = {
  /** Ms, with fractions. */
  readonly now: () => number
  /** Behind whatever is due meanwhile, timers and sockets: setImmediate. */
  readonly later: (action: () => void) => void
}

/** Ms of a turn: a slot of the beat has 5, and 10 ms are late. */
const mostOfTurn = 2

export function createInTurn({ now, later }: Deps): InTurn {
  const waiting: (() => void)[] = []
  let spent = 0
  let isTurnNoted = false

  const perform = (work: () => void): void => {
    const began = now()
    work()
    spent += now() - began
  }
  const awaitNext = (): void => {
    if (isTurnNoted) return
    isTurnNoted = true
    later(next)
  }
  const next = (): void => {
    isTurnNoted = false
    spent = 0
    for (let work = waiting.shift(); work; work = spent < mostOfTurn ? waiting.shift() : undefined) perform(work)
    if (spent > 0) awaitNext()
  }
  return (work) => {
    awaitNext()
    if (waiting.length > 0 || spent >= mostOfTurn) waiting.push(work)
    else perform(work)
  }
}

/** For who has nothing to wait for. */
export const atOnce: InTurn = (work) => work()

/**
 * Owns the question whether a server that keeps its connection still carries anything: it is asked ten times a second, and one that has not answered
 * for a second has stopped. Looks in vain are counted and not the time, so that a process that was stopped itself, or was busy, blames nobody.
 */
import type { Cancel, Clock } from '../../model/clock.ts'

const askEvery = 100
const stoppedAfter = 10

type Deps = {
  readonly clock: Clock
  /** Resolves when the server has answered. One at a time. */
  readonly beat: () => Promise<unknown>
  /** Told of each change. */
  readonly stopped: (isStopped: boolean) => void
}

export function createBusPulse({ clock, beat, stopped }: Deps) {
  let heardAt = performance.now()
  let cancel: Cancel | null = null
  let looksInVain = 0
  let isStopped = false
  /** Of the answer that is waited for; null: none is. */
  let asked: object | null = null

  const ask = async (): Promise<void> => {
    const question = {}
    asked = question
    const isAnswered = await beat().then(
      () => true,
      () => false,
    )
    // One of a connection that is gone since.
    if (asked !== question) return
    asked = null
    if (isAnswered) heard()
  }
  const heard = (): void => {
    heardAt = performance.now()
    looksInVain = 0
    if (!isStopped) return
    isStopped = false
    stopped(false)
  }
  const look = (): void => {
    cancel = clock.after(askEvery, look)
    if (!asked) return void ask()
    looksInVain++
    if (looksInVain !== stoppedAfter) return
    isStopped = true
    stopped(true)
  }

  return {
    isStopped: () => isStopped,
    /** Ms, see NodeBus. */
    quietFor: () => performance.now() - heardAt,
    /** Something came from the server, which may come before the answer. */
    heard,
    /** A connection is there. */
    begin() {
      heardAt = performance.now()
      cancel ??= clock.after(askEvery, look)
    },
    /** It is gone: nobody is asked before there is another. */
    rest() {
      cancel?.()
      cancel = null
      asked = null
      looksInVain = 0
      isStopped = false
    },
  }
}

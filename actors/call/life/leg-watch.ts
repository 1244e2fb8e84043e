/**
 * Owns the suspicion that a call's leg is gone, or told something that its actor did not hear: events come at most once, and a process that is
 * killed says nothing. Whoever waits for a leg asks it every few seconds. A bus that is away says nothing of the leg: what was counted before begins anew
 * when it is back.
 */
import type { Bus } from '../../../model/bus.ts'
import { pause, type Cancel, type Clock } from '../../../model/clock.ts'
import type { NodePeers } from '../../node/node-beats.ts'
import type { CallFact } from '../call-event.ts'
import { legFactOf } from './dial.ts'
import type { CallEnd } from './performer-deps.ts'
import type { CallState } from '../machine/step.ts'

export type LegWatch = {
  /** The call has come to this state. */
  state(state: CallState): void
  /** Idempotent. */
  close(): void
}

const askEvery = 5_000
/** So many times in a row without a leg, or without its answer: the bus of a leg may break for a moment. */
const gone = 3
const silent = 5
/** So often for a leg that has not been seen yet: a voice session is tried and an edge asked before it is made. */
const unmade = 12

/** Of a node that falls silent: it is known to be dead when it has not renewed its lease. */
const suspectFor = 4_000
const suspectEvery = 400

type Deps = {
  readonly bus: Bus
  readonly clock: Clock
  /** Absent: there are no other nodes. */
  readonly peers?: NodePeers
  /** Is a node that is silent dead, by its lease too? */
  readonly hasFallen?: () => Promise<boolean>
}

type Found = Awaited<ReturnType<typeof legFactOf>>

export function createLegWatch(deps: Deps, end: CallEnd): LegWatch {
  let current: CallState | null = null
  let cancel: Cancel | null = null
  let isClosed = false
  const judge = createJudgement()

  // An unreadable answer counts as none.
  const find = (): Promise<Found> => legFactOf(deps.bus, end).catch(() => 'silent' as const)
  const ask = async (): Promise<void> => {
    const found = await find()
    cancel = null
    if (isClosed || !current?.leg) return
    if (found !== 'none' && found !== 'silent' && found !== 'away') end.legSeen?.()
    const fact = judge(found, current)
    if (fact) end.post(fact)
    askLater()
  }
  const askLater = (): void => {
    cancel ??= deps.clock.after(askEvery, () => void ask())
  }
  const isHeld = (): boolean => !isClosed && current?.leg === 'held'
  let isSuspected = false
  /** Some node is silent; was it that of the leg? */
  const suspect = async (): Promise<void> => {
    if (isSuspected) return
    isSuspected = true
    for (let waited = 0; waited < suspectFor && isHeld() && (await find()) === 'none'; waited += suspectEvery) {
      if (await deps.hasFallen?.().catch(() => false)) {
        // Its telephone may have been asked over meanwhile.
        if (isHeld() && (await find()) === 'none') end.post(lost('the leg of the call is gone', true))
        break
      }
      await pause(deps.clock, suspectEvery)
    }
    isSuspected = false
  }
  const watching = deps.peers?.watch({ silence: () => void suspect(), link: () => undefined })
  return {
    state(state) {
      current = state
      if (state.leg && !isClosed) askLater()
    },
    close() {
      isClosed = true
      watching?.close()
      cancel?.()
    },
  }
}

/** What an answer, or one more without, means for a call in its state. */
function createJudgement(): (found: Found, state: CallState) => CallFact | null {
  let [wasSeen, missed, waited] = [false, 0, 0]
  return (found, state) => {
    if (found === 'away') {
      ;[missed, waited] = [0, 0]
      return null
    }
    if (found === 'none') {
      missed += 1
      const limit = state.leg === 'held' || state.progress === 'ringing' || wasSeen ? gone : unmade
      return missed < limit ? null : lost('the leg of the call is gone', true)
    }
    if (found === 'silent') {
      waited += 1
      return waited < silent ? null : lost('the leg of the call does not answer')
    }
    ;[wasSeen, missed, waited] = [true, 0, 0]
    return found && isNews(found, state) ? found : null
  }
}

function isNews({ type }: CallFact, { progress, context }: CallState): boolean {
  if (type === 'ringing') return progress === 'queued'
  return type !== 'leg_connected' || context.answeredAt === null
}

const lost = (details: string, gone = false): CallFact => ({
  type: 'leg_disconnected',
  cause: 'failed',
  details,
  ...(gone && { gone, awaited: true }),
})

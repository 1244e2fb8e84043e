/**
 * Owns the suspicion that a call's leg is gone, or told something that its actor did not hear: events come at most once, and a process that is
 * killed says nothing. Whoever waits for a leg asks it every few seconds.
 */
import type { Bus } from '../../../model/bus.ts'
import type { Cancel, Clock } from '../../../model/clock.ts'
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

type Found = Awaited<ReturnType<typeof legFactOf>>

export function createLegWatch(deps: { readonly bus: Bus; readonly clock: Clock }, end: CallEnd): LegWatch {
  let current: CallState | null = null
  let cancel: Cancel | null = null
  let isClosed = false
  const judge = createJudgement()

  const ask = async (): Promise<void> => {
    const found = await legFactOf(deps.bus, end).catch(() => 'silent' as const) // An unreadable answer counts as none.
    cancel = null
    if (isClosed || !current?.leg) return
    if (found !== 'none' && found !== 'silent') end.legSeen?.()
    const fact = judge(found, current)
    if (fact) end.post(fact)
    askLater()
  }
  const askLater = (): void => {
    cancel ??= deps.clock.after(askEvery, () => void ask())
  }
  return {
    state(state) {
      current = state
      if (state.leg && !isClosed) askLater()
    },
    close() {
      isClosed = true
      cancel?.()
    },
  }
}

/** What an answer, or one more without, means for a call in its state. */
function createJudgement(): (found: Found, state: CallState) => CallFact | null {
  let [wasSeen, missed, waited] = [false, 0, 0]
  return (found, state) => {
    if (found === 'none') {
      missed += 1
      const limit = state.leg === 'held' || state.progress === 'ringing' || wasSeen ? gone : unmade
      return missed < limit ? null : lost('the leg of the call is gone')
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

const lost = (details: string): CallFact => ({ type: 'leg_disconnected', cause: 'failed', details })

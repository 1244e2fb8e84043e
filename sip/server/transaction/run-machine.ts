/** Owns one machine that runs: its state and its timers. What the machine wants done beyond timers, the owner does. */
import type { Cancel, Clock } from '../../../model/clock.ts'
import type { Action, Step, Timer, Way } from './machine.ts'

export type Deed = Exclude<Action, { do: 'start' | 'stop' }>

export type RunOptions<State, Event, Subject> = {
  readonly way: Way
  readonly clock: Clock
  begin(way: Way): Step<State>
  step(state: State, event: Event, way: Way): Step<State>
  /** `subject`: the message the event is about; null for a timer. */
  perform(deed: Deed, subject: Subject | null): void
  /** Once, after the last deed. */
  ended(): void
  /** Errors of whoever is told end here. */
  guarded(action: () => void): void
}

export type Run<Event, Subject> = {
  stateName(): string
  feed(event: Event, subject: Subject | null): void
  /** Idempotent; nothing is done and nobody is told. */
  stop(): void
}

export function createRun<State extends { readonly name: string }, Event, Subject>(
  options: RunOptions<State, Event | { readonly type: 'timer'; readonly timer: Timer }, Subject>,
): Run<Event, Subject> {
  const { way, clock, perform } = options
  const timers = new Map<Timer, Cancel>()
  let over = false
  const first = options.begin(way)
  let state = first.state

  function startTimer(timer: Timer, ms: number): void {
    timers.get(timer)?.()
    const due = (): void => {
      timers.delete(timer)
      options.guarded(() => take(options.step(state, { type: 'timer', timer }, way), null))
    }
    timers.set(timer, clock.after(ms, due))
  }

  function stopTimer(timer: Timer): void {
    timers.get(timer)?.()
    timers.delete(timer)
  }

  function stop(): void {
    over = true
    for (const cancel of timers.values()) cancel()
    timers.clear()
  }

  function act(action: Action, subject: Subject | null): void {
    if (action.do === 'start') startTimer(action.timer, action.ms)
    else if (action.do === 'stop') stopTimer(action.timer)
    else perform(action, subject)
  }

  /** The state changes first: whoever is told may feed the next event at once. */
  function take(step: Step<State>, subject: Subject | null): void {
    state = step.state
    const ends = state.name === 'terminated'
    if (ends) stop()
    try {
      for (const action of step.actions) act(action, subject)
    } finally {
      if (ends) options.ended()
    }
  }

  take(first, null)
  return {
    stateName: () => state.name,
    feed(event, subject) {
      if (!over) take(options.step(state, event, way), subject)
    },
    stop,
  }
}

/** Owns one machine that runs: its state and its timers. What the machine wants done beyond timers, the owner does. */
import type { Cancel, Clock } from '../../model/clock.ts'

/** What any machine may want done. */
export type TimerAction<Timer> =
  /** Replaces a running timer of the same name. */
  { readonly do: 'start'; readonly timer: Timer; readonly ms: number } | { readonly do: 'stop'; readonly timer: Timer }

type Named = { readonly name: string }
type Step<State, Deed, Timer> = { readonly state: State; readonly actions: readonly (Deed | TimerAction<Timer>)[] }

export type RunOptions<State, Event, Deed, Timer, Subject> = {
  readonly clock: Clock
  /** Nobody is told of anything while the run is being made. */
  readonly first: Step<State, never, Timer>
  step(state: State, event: Event | { readonly type: 'timer'; readonly timer: Timer }): Step<State, Deed, Timer>
  /** `subject`: the message the event is about; null for a timer. */
  perform(deed: Deed, subject: Subject | null): void
  /** Once, after the last deed of the step that led to `terminated`. */
  ended(): void
  /** Errors of whoever is told end here. */
  guarded(action: () => void): void
}

export type Run<Event, Subject, State extends Named = Named> = {
  state(): State
  feed(event: Event, subject: Subject | null): void
  /** Idempotent; nothing is done and nobody is told. */
  stop(): void
}

/** A state named `terminated` is the last: no timer runs any more. */
export function createRun<State extends Named, Event, Deed extends { readonly do: string }, Timer, Subject>(
  options: RunOptions<State, Event, Deed, Timer, Subject>,
): Run<Event, Subject, State> {
  const timers = new Map<Timer, Cancel>()
  let isStopped = false
  let { state } = options.first

  function startTimer(timer: Timer, ms: number): void {
    timers.get(timer)?.()
    const due = (): void => {
      timers.delete(timer)
      options.guarded(() => take(options.step(state, { type: 'timer', timer }), null))
    }
    timers.set(timer, options.clock.after(ms, due))
  }

  function stopTimer(timer: Timer): void {
    timers.get(timer)?.()
    timers.delete(timer)
  }

  function stopTimers(): void {
    for (const cancel of timers.values()) cancel()
    timers.clear()
  }

  function act(action: Deed | TimerAction<Timer>, subject: Subject | null): void {
    if (!isOfTimer(action)) return options.perform(action, subject)
    if (action.do === 'stop') return stopTimer(action.timer)
    // Whoever was told by an action before this one may have ended it all.
    if (state.name !== 'terminated' && !isStopped) startTimer(action.timer, action.ms)
  }

  /** The state changes first: whoever is told may feed the next event at once. */
  function take(step: Step<State, Deed, Timer>, subject: Subject | null): void {
    const ends = step.state.name === 'terminated' && state.name !== 'terminated'
    state = step.state
    if (ends) stopTimers()
    try {
      for (const action of step.actions) act(action, subject)
    } finally {
      if (ends) options.ended()
    }
  }

  for (const action of options.first.actions) act(action, null)
  return {
    state: () => state,
    feed(event, subject) {
      if (!isStopped) take(options.step(state, event), subject)
    },
    stop() {
      isStopped = true
      stopTimers()
    },
  }
}

const isOfTimer = <Timer>(action: { readonly do: string } | TimerAction<Timer>): action is TimerAction<Timer> =>
  action.do === 'start' || action.do === 'stop'

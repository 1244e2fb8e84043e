/**
 * Owns what a call of this actor has used and no fact has told yet: engines that it wraps tell it what their providers count, and facts of the talk take
 * it along.
 */
import { supervisorSource } from '../../model/supervision.ts'
import { addUsage, noUsage, type CallUsage } from '../../model/usage.ts'
import type { AttendConfig, AttendEvent, EngineEvent, VoiceEngine } from '../../model/voice-engine.ts'
import type { CallFact } from '../call/call-event.ts'

export type UsageMeter = {
  /** The same engine. What its provider counts stays here. */
  metered(engine: VoiceEngine): VoiceEngine
  /** The fact as it is to be told: a turn has with it all that was used up to it. */
  withUsage(fact: CallFact): CallFact
  /** What is left, as a fact; null: nothing. */
  rest(): CallFact | null
}

export function createUsageMeter(): UsageMeter {
  let untold: CallUsage = noUsage
  const add = (used: Partial<CallUsage>): void => void (untold = addUsage(untold, { ...noUsage, ...used }))
  /** Passes on all but what is counted here. */
  const counting =
    <Event extends EngineEvent>({ name }: VoiceEngine, emit: (event: Event) => void) =>
    (event: Event): void => {
      if (event.type !== 'used') return emit(event)
      const { model, units } = event
      add({ engines: [{ engine: name, model: model.slice(0, 200), units }] })
    }
  const take = (): CallUsage => {
    const taken = untold
    untold = noUsage
    return taken
  }
  return {
    metered: (engine) => ({
      ...engine,
      get hears() {
        return engine.hears
      },
      get speaks() {
        return engine.speaks
      },
      close: () => engine.close(),
      open: (config, emit) => engine.open(config, counting(engine, emit)),
      ...(engine.attend && {
        attend: (config: AttendConfig, emit: (event: AttendEvent) => void) =>
          engine.attend!(config, counting(engine, emit)),
      }),
    }),
    withUsage(fact) {
      if (fact.type === 'tool_called') add({ toolCalls: 1 })
      if (fact.type !== 'turn_committed') return fact
      const { role, from, to, source } = fact.turn
      const ms = Math.max(0, to - from)
      // What a person says no engine has spoken.
      if (source !== supervisorSource) add(role === 'user' ? { speechInMs: ms } : { speechOutMs: ms })
      return { ...fact, usage: take() }
    },
    rest() {
      const usage = take()
      return usage === noUsage ? null : { type: 'used', usage }
    },
  }
}

/** Owns what is written of a step of a call, and how that is kept as text while the database cannot be reached: its rows are made when it is written. */
import type { Json } from '../../model/json.ts'
import type { CallStep, Tenure } from '../../store/write-steps.ts'
import type { CallFact, Effect } from './call-event.ts'
import type { Step } from './machine/step.ts'
import { readsOf, recordEffects } from './record-effects.ts'

export type KeptStep = Pick<CallStep, 'tenure' | 'next' | 'logged'>

export function toCallStep({ tenure, next, logged }: KeptStep): CallStep {
  // Of this program, or of one before it: the machine replays them too.
  const effects = logged.effects as readonly Effect[]
  return {
    tenure,
    next,
    logged,
    reads: readsOf(effects),
    rowsOf: (facts) => recordEffects(facts, effects, logged.at),
  }
}

/** What of a step is stored: snapshot, log and everything that must not be lost. */
export function storedStep(
  tenure: Tenure,
  { fact, next, now, snapshot }: { fact: CallFact; next: Step; now: number; snapshot: Json },
): CallStep {
  const { waitsIn, finished } = next.state
  return toCallStep({
    tenure,
    next: { snapshot, dormant: waitsIn !== null, finished },
    logged: { event: fact as Json, effects: next.effects as Json, ignored: next.ignored, at: now },
  })
}

export const textOfStep = ({ tenure, next, logged }: KeptStep): string =>
  JSON.stringify({ tenure, next, logged } satisfies Record<string, unknown>)

/** As this program wrote it. */
export const stepOfText = (text: string): KeptStep =>
  JSON.parse(text) as KeptStep & { readonly next: { snapshot: Json } }

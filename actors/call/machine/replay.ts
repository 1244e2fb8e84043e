/** Owns replay: runs the log of a call through the machine again. Same facts, same times: the effects must be the same, or the machine is not pure. */
import type { Json } from '../../../model/json.ts'
import type { CallBirth, CallFact, Effect } from '../call-event.ts'
import { beginCall, step, type Step } from './step.ts'

export type LoggedFact = {
  readonly seq: number
  readonly at: number
  readonly event: Json
  readonly effects: Json
  readonly ignored: boolean
}

export type Difference = {
  readonly seq: number
  readonly fact: CallFact
  readonly logged: readonly Effect[]
  readonly replayed: readonly Effect[]
}

export type Replay = {
  readonly facts: number
  readonly effects: number
  readonly ignored: number
  readonly differences: readonly Difference[]
}

/** `log` is complete and in order of seq, beginning with `created`. Throws when it does not. */
export function replay(log: readonly LoggedFact[]): Replay {
  const [birth, ...rest] = log
  const replaying = beginReplay(birth)
  const differences = [...replaying.begun, ...rest.flatMap(replaying.take)]
  const effects = log.reduce((count, logged) => count + effectsOf(logged), 0)
  return { facts: log.length, effects, ignored: log.filter((logged) => logged.ignored).length, differences }
}

/** A step after the other, for who does not hold the log. Throws when it does not begin with `created`. */
export function beginReplay(birth: LoggedFact | undefined) {
  const created = birth?.event as ({ type: 'created' } & CallBirth) | undefined
  if (!birth || created?.type !== 'created') throw new Error('the log of a call begins with its creation')
  const { type: _, ...born } = created
  let last = beginCall(born, birth.at)
  return {
    begun: differenceOf(birth, last),
    /** The next of the log. */
    take(logged: LoggedFact): Difference[] {
      last = step(last.state.persisted, logged.event as CallFact, logged.at)
      return differenceOf(logged, last)
    },
  }
}

export const effectsOf = ({ effects }: LoggedFact): number => (effects as Json[]).length

function differenceOf(logged: LoggedFact, replayed: Step): Difference[] {
  const same = sorted(logged.effects) === sorted(replayed.effects as Json) && logged.ignored === replayed.ignored
  if (same) return []
  const fact = logged.event as CallFact
  return [{ seq: logged.seq, fact, logged: logged.effects as Effect[], replayed: replayed.effects }]
}

/** jsonb keeps no order of keys: compare without it. */
const sorted = (json: Json): string =>
  JSON.stringify(json, (_, value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )

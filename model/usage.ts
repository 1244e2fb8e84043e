/**
 * Owns what a call uses: speech, tools, and what its engines' providers count. Facts of a call carry what came since the fact before; the sum is the
 * call's. Pure.
 */
import { z } from 'zod'

/** Tokens; of `transcribedMs` milliseconds, of `characters` what was given to be spoken. */
export const UsageUnit = z.enum([
  'textIn',
  'textInCached',
  'audioIn',
  'audioInCached',
  'textOut',
  'audioOut',
  'transcribedMs',
  'characters',
])
export type UsageUnit = z.infer<typeof UsageUnit>

export type UsedUnits = Readonly<Partial<Record<UsageUnit, number>>>

export type EngineUsage = { readonly engine: string; readonly model: string; readonly units: UsedUnits }

/** Under this name stands what read the finished talk. */
export const extractionEngine = 'extraction'

export type CallUsage = {
  /** Of what was said and understood, and of what was heard of the agent. */
  readonly speechInMs: number
  readonly speechOutMs: number
  readonly toolCalls: number
  readonly engines: readonly EngineUsage[]
}

export const noUsage: CallUsage = { speechInMs: 0, speechOutMs: 0, toolCalls: 0, engines: [] }

/** Of one call; a provider that answers with ever new names of models fills no snapshot. */
const maxModels = 16

export function addUsage(a: CallUsage, b: CallUsage): CallUsage {
  return {
    speechInMs: a.speechInMs + b.speechInMs,
    speechOutMs: a.speechOutMs + b.speechOutMs,
    toolCalls: a.toolCalls + b.toolCalls,
    engines: addEngines(a.engines, b.engines),
  }
}

export const addEngines = (a: readonly EngineUsage[], b: readonly EngineUsage[]): readonly EngineUsage[] =>
  b.reduce(withEngine, a)

function withEngine(engines: readonly EngineUsage[], used: EngineUsage): readonly EngineUsage[] {
  const place = engines.findIndex(({ engine, model }) => engine === used.engine && model === used.model)
  if (place < 0) return engines.length < maxModels ? [...engines, used] : engines
  const units = { ...engines[place]?.units }
  for (const [unit, amount] of unitsOf(used.units)) units[unit] = (units[unit] ?? 0) + amount
  return engines.with(place, { ...used, units })
}

/** Those that were used. */
export const unitsOf = (units: UsedUnits): [UsageUnit, number][] =>
  UsageUnit.options.flatMap((unit): [UsageUnit, number][] => {
    const amount = units[unit] ?? 0
    return amount > 0 ? [[unit, amount]] : []
  })

/** A number of a provider's, which may be anything: whole, from 0 on. */
export const countOf = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) ? Math.min(Math.max(0, Math.round(value)), 1_000_000_000) : 0

/** Owns what came of simulated callers, as `npm run simulate` gives it to an account and answers show it. docs/contract/rest.md "Simulations". */
import { z } from 'zod'
import { toIso } from './clock.ts'
import { Instant, msOf } from './instant.ts'
import { flawOf } from './json.ts'
import { pageOf, Paging } from './paging.ts'

/** Of one set of results. Who has more leaves out, runs that passed first. */
export const mostSimulatedScenarios = 200
export const mostSimulatedRuns = 500
export const mostFaults = 20
export const mostFaultText = 1_000

const textOf = (most: number) =>
  z
    .string()
    .max(most)
    .refine((text) => flawOf(text) === null, 'must not contain the character U+0000')
const name = textOf(200).min(1)
const count = z.number().int().nonnegative().max(1_000_000)
const ms = z.number().nonnegative().max(86_400_000)

const SimulatedScenario = z
  .strictObject({
    name,
    runs: count,
    passed: count,
    passAll: z.array(z.number().min(0).max(1)).max(20),
  })
  .refine(({ runs, passed }) => passed <= runs, { path: ['passed'], error: 'must not be more than runs' })

const SimulatedMeasure = z.strictObject({
  name,
  value: z.number().min(-1e9).max(1e9).optional(),
  events: count,
  reason: textOf(500).optional(),
})

const SimulationFault = z.strictObject({
  field: name,
  wanted: textOf(mostFaultText),
  got: textOf(mostFaultText),
  atMs: ms.optional(),
})

const SimulatedRun = z.strictObject({
  scenario: name,
  seed: count,
  passed: z.boolean(),
  callId: z.uuid().optional(),
  faults: z.array(SimulationFault).max(mostFaults),
})

const outcome = {
  ranAt: Instant,
  target: textOf(500),
}
const content = {
  seeds: z.array(count).max(mostSimulatedRuns),
  scenarios: z.array(SimulatedScenario).max(mostSimulatedScenarios),
  measures: z.array(SimulatedMeasure).max(40),
  runs: z.array(SimulatedRun).max(mostSimulatedRuns),
}

export const SimulationRequest = z.strictObject({ ...outcome, ...content })
export type SimulationRequest = z.infer<typeof SimulationRequest>

const summary = {
  id: z.string(),
  ranAt: z.string(),
  target: z.string(),
  runCount: z.number().int(),
  passedCount: z.number().int(),
}
export const SimulationSummary = z.object(summary)
export type SimulationSummary = z.infer<typeof SimulationSummary>
export const Simulation = z.object({ ...summary, ...content })
export type Simulation = z.infer<typeof Simulation>
export const SimulationPage = pageOf(SimulationSummary)
export const SimulationQuery = Paging
export type SimulationQuery = z.infer<typeof SimulationQuery>

export type SimulationContent = Omit<SimulationRequest, keyof typeof outcome>

/** As it is stored. */
export type SimulationFacts = Omit<SimulationSummary, 'ranAt'> & { readonly ranAt: number }

export const factsOfRequest = ({ ranAt, target, scenarios }: SimulationRequest): Omit<SimulationFacts, 'id'> => ({
  ranAt: msOf(ranAt),
  target,
  runCount: scenarios.reduce((sum, { runs }) => sum + runs, 0),
  passedCount: scenarios.reduce((sum, { passed }) => sum + passed, 0),
})

export const toSimulationSummary = ({ ranAt, ...facts }: SimulationFacts): SimulationSummary => ({
  ...facts,
  ranAt: toIso(ranAt),
})

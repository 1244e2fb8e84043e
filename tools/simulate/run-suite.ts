/** Owns a suite: each scenario with each seed, some calls at once, and what came of each run. */
import { frameMs } from '../../model/frame.ts'
import type { CallerLeg } from './caller-leg.ts'
import { judgeCall, type Fault } from './judge-call.ts'
import { measuresOf, type Measures } from './measures.ts'
import type { ReadScenario } from './read-scenario.ts'
import { runCall, type CallFacts, type Stage } from './run-call.ts'

export type Run = {
  readonly scenario: string
  readonly file: string
  readonly seed: number
  readonly passed: boolean
  /** Null: there was no call. */
  readonly callId: string | null
  readonly faults: readonly Fault[]
  readonly measures: Measures | null
  readonly track: CallerLeg['track'] | null
  readonly transcript: readonly { readonly speaker: string; readonly text: string }[]
}

export type SuiteWish = {
  readonly scenarios: readonly ReadScenario[]
  /** Seeds of each scenario. */
  readonly seeds: readonly number[]
  readonly atOnce: number
  /** Told as runs end. */
  ended(run: Run): void
}

/** In the order of scenarios and seeds, without those that were not over when the signal came. */
export async function runSuite(stage: Stage, { scenarios, seeds, atOnce, ended }: SuiteWish): Promise<Run[]> {
  const wanted = scenarios.flatMap((read) => seeds.map((seed) => ({ read, seed })))
  const runs: (Run | undefined)[] = []
  let next = 0
  const take = async (): Promise<void> => {
    while (next < wanted.length && !stage.signal.aborted) {
      const place = next++
      const { read, seed } = wanted[place]!
      const run = await runOnce(stage, read, seed)
      // A call that we ended says nothing of the agent.
      if (stage.signal.aborted) return
      runs[place] = run
      ended(run)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, take))
  return runs.filter((run) => run !== undefined)
}

async function runOnce(stage: Stage, read: ReadScenario, seed: number): Promise<Run> {
  const { scenario, file } = read
  const named = { scenario: scenario.name, file, seed }
  try {
    const facts = await runCall(stage, read, seed)
    const measures = measuresOf(facts.track, toolTicksOf(facts))
    const faults = judgeCall(facts, scenario.expect, measures)
    const { callId, track } = facts
    const transcript = facts.transcript.map(({ speaker, text }) => ({ speaker, text }))
    return { ...named, passed: faults.length === 0, callId, faults, measures, track, transcript }
  } catch (error) {
    const got = error instanceof Error ? error.message : String(error)
    const faults = [{ field: 'line', wanted: 'a call', got, atMs: null }]
    return { ...named, passed: false, callId: null, faults, measures: null, track: null, transcript: [] }
  }
}

const toolTicksOf = ({ tools, began }: CallFacts): number[] | null =>
  tools && tools.map(({ at }) => Math.round((at - began) / frameMs))

/** Owns how results come into the account that was called, where its console shows them: what is too much is left out, runs that passed first. */
import {
  mostFaults,
  mostFaultText,
  mostSimulatedRuns,
  mostSimulatedScenarios,
  type SimulationRequest,
} from '../../model/simulation.ts'
import type { Deployment } from './deployment.ts'
import { measureNames } from './scenario.ts'
import type { Results } from './results.ts'

/** Of the JSON; the service takes a mebibyte. */
const mostBytes = 900_000
const mostPassAll = 20

/** What to say of it. Never throws: the results are in the folder all the same. */
export async function keepInDeployment(
  { ask, url }: Pick<Deployment, 'ask' | 'url'>,
  results: Results,
): Promise<string> {
  try {
    await ask('POST', '/simulations', simulationOf(results))
    return `Kept for the console: ${new URL('/console/simulations', url).href}`
  } catch (error) {
    return `The deployment does not keep them: ${error instanceof Error ? error.message : String(error)}`
  }
}

export function simulationOf({ at, url, seeds, scenarios, measures, runs }: Results): SimulationRequest {
  const told = runs
    .toSorted((a, b) => Number(a.passed) - Number(b.passed))
    .slice(0, mostSimulatedRuns)
    .map(runOf)
  const request = {
    ranAt: at,
    target: cut(url, 500),
    seeds: seeds.slice(0, mostSimulatedRuns),
    scenarios: scenarios.slice(0, mostSimulatedScenarios).map(({ name, passAll, ...counts }) => ({
      ...counts,
      name: cut(name, 200),
      passAll: passAll.slice(0, mostPassAll),
    })),
    measures: measureNames.map((name) => {
      const { value, events, reason } = measures[name]
      return { name, events, ...(value !== null && { value }), ...(reason !== null && { reason: cut(reason, 500) }) }
    }),
    runs: told,
  }
  let size = bytesOf(request)
  while (size > mostBytes) size -= bytesOf(told.pop()) + 1
  return request
}

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '')

const runOf = ({ scenario, seed, passed, callId, faults }: Results['runs'][number]) => ({
  scenario: cut(scenario, 200),
  seed,
  passed,
  ...(callId !== null && { callId }),
  faults: faults.slice(0, mostFaults).map(({ field, wanted, got, atMs }) => ({
    field: cut(field, 200),
    wanted: cut(wanted, mostFaultText),
    got: cut(got, mostFaultText),
    ...(atMs !== null && { atMs: Math.max(0, atMs) }),
  })),
})

const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text)

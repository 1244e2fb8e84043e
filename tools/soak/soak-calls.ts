/** Owns the calls of a soak: callers that come and go one after the other in several lines, by browser and by telephone, some to the end and some who leave. */
import { pause } from '../../model/clock.ts'
import { systemClock as clock } from '../../app/clock.ts'
import { parseScenario, type ReadScenario } from '../simulate/read-scenario.ts'
import { runCall, type Stage } from '../simulate/run-call.ts'

export type SoakCalls = {
  /** Calls that came to their end, and those that did not, with why. */
  counts(): { readonly done: number; readonly failed: readonly string[] }
  /** No further call begins; resolves when those that run are over and processed. */
  stop(): Promise<void>
}

const turns = {
  declines: ['  - hear: book a table', '    say: no thank you'],
  leaves: ['  - hear: book a table', '    hangUp: true'],
  isCutShort: ['  - silence: 1500', '  - hangUp: true', '    unasked: true'],
  presses: ['  - hear: book a table', "    keys: '2'"],
} as const

const scenarios: readonly ReadScenario[] = (['web', 'sip'] as const).flatMap((line) =>
  Object.entries(turns).map(([name, lines]) => {
    const text = ['simulation: 1', `name: ${line} ${name}`, `line: ${line}`, 'turns:', ...lines].join('\n')
    return { file: 'soak', folder: '.', scenario: parseScenario(text, 'soak') }
  }),
)

/** Between a line's calls, ms. */
const gap = 200
const failuresKept = 20

export function startSoakCalls(
  stage: Stage,
  { atOnce, seed }: { readonly atOnce: number; readonly seed: number },
): SoakCalls {
  const stopped = new AbortController()
  const failed: string[] = []
  let [done, next] = [0, 0]
  const line = async (): Promise<void> => {
    while (!stopped.signal.aborted && !stage.signal.aborted) {
      const number = next++
      const read = scenarios[number % scenarios.length]!
      try {
        await runCall(stage, read, seed + number)
        done++
      } catch (error) {
        failed.push(`${read.scenario.name}: ${error instanceof Error ? error.message : String(error)}`)
        failed.splice(failuresKept)
      }
      await pause(clock, gap, stopped.signal)
    }
  }
  const lines = Array.from({ length: atOnce }, line)
  return {
    counts: () => ({ done, failed }),
    async stop() {
      stopped.abort()
      await Promise.all(lines)
    },
  }
}

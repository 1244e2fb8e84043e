/** Owns one run: a cluster of its own, the callers, and the rounds of one seed, one after the other. */
import path from 'node:path'
import type { Counts } from '../cluster/topology.ts'
import { delayFileOf, stepFileOf } from './faults.ts'
import { openStage } from './open-stage.ts'
import { linesWith } from './outside.ts'
import { planOf, type FaultName } from './plan.ts'
import { costText, tableOf, unjudgedText, violationText } from './report.ts'
import { runRound, type RoundReport } from './round.ts'

export type RunWish = {
  readonly seed: number
  readonly faults: readonly FaultName[]
  readonly counts: Counts
  readonly calls: number
  readonly turns: number
  readonly slack: number
  /** Of the cluster: its database and its log files stay. */
  readonly folder: string
  /** Ms by performance.now after which no further round begins. */
  readonly until: number
  print(text: string): void
}

const inFront = ['stepped-clock.ts', 'slow-disk.ts'].map((name) => path.join(import.meta.dirname, name))
const shownLines = 6

/** What each round has shown, when all is ended and closed. */
export async function runSeed(wish: RunWish): Promise<readonly RoundReport[]> {
  const { seed, folder, print } = wish
  await using closing = new AsyncDisposableStack()
  const { turns, calls, slack } = wish
  const settings = (name: string) => ({
    CLOCK_STEP_FILE: stepFileOf(path.join(folder, name)),
    DISK_DELAY_FILE: delayFileOf(path.join(folder, name)),
  })
  const nodeArgs = inFront.flatMap((file) => ['--import', file])
  const stage = await openStage({ ...wish, settings, nodeArgs }, closing)
  const reports: RoundReport[] = []
  let usualSilence: number | null = null
  for (const round of planOf(seed, wish.faults)) {
    if (performance.now() > wish.until) break
    print(`  ${round.fault} …`)
    const deps = { ...stage, calls, turns, slack, usualSilence }
    const report = await runRound(deps, round)
    usualSilence ??= report.usualSilence
    reports.push(report)
    for (const violation of report.violations) {
      const { callId } = violation
      const lines = callId === null ? [] : await linesWith(stage.cluster.processes, callId, shownLines)
      print(violationText(round.fault, violation, lines))
    }
  }
  print(
    `\nseed ${seed}; a caller waits ${Math.round(usualSilence ?? 0)} ms at most without a fault\n${tableOf(reports)}\n${costText(reports)}\n${unjudgedText(reports)}`,
  )
  return reports
}

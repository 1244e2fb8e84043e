/** Owns one run: a cluster of its own, the callers, and the rounds of one seed, one after the other. */
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { systemClock as clock } from '../../app/clock.ts'
import { connect } from '../../store/sql.ts'
import { openCluster } from '../cluster/open-cluster.ts'
import type { Counts } from '../cluster/topology.ts'
import { openCallers } from './callers.ts'
import { delayFileOf, stepFileOf } from './faults.ts'
import { linesWith } from './outside.ts'
import { planOf, type FaultName } from './plan.ts'
import { createRandom } from './random.ts'
import { costText, tableOf, violationText } from './report.ts'
import { runRound, type RoundReport } from './round.ts'
import { openTenant } from './tenant.ts'
import { openTold } from './told.ts'
import { createUdpShaper } from './udp-shaper.ts'

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
const closeWithin = 20_000
const shownLines = 6

/** What is looked for may not wait for room: a gate that refuses calls is another test's. */
const settings = {
  LOAD_GATE: 'off',
  LOG_LEVEL: 'info',
  RATE_LIMIT_PER_ADDRESS: '0',
  RATE_LIMIT_PER_ACCOUNT: '0',
  BAN_AFTER: '0',
}

/** What each round has shown, when all is ended and closed. */
export async function runSeed(wish: RunWish): Promise<readonly RoundReport[]> {
  const { seed, folder, print } = wish
  await using closing = new AsyncDisposableStack()
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const shaper = createUdpShaper({ random: createRandom(seed), clock })
  const callers = await openCallers({ shaper })
  closing.defer(() => callers.close())
  const told = await openTold()
  closing.defer(() => told.close())
  const cluster = await openCluster({
    folder,
    counts: wish.counts,
    settings: (name) => ({
      ...settings,
      CLOCK_STEP_FILE: stepFileOf(path.join(folder, name)),
      DISK_DELAY_FILE: delayFileOf(path.join(folder, name)),
    }),
    nodeArgs: inFront.flatMap((file) => ['--import', file]),
    tell: (text) => print(`  ${text}`),
  })
  closing.defer(() => cluster.close(closeWithin))
  // Beside the service, and not by its way: so that what it holds can be seen.
  const sql = connect({ server: { url: cluster.postgres.url }, applicationName: 'parley chaos', maxConnections: 2 })
  closing.defer(() => sql.end({ timeout: 1 }))
  const { turns, calls, slack } = wish
  const { APP_SECRET: appSecret } = cluster.settings
  const tenant = await openTenant({ sql, appSecret, turns, phonePort: callers.phonePort, told })
  const reports: RoundReport[] = []
  let usualSilence: number | null = null
  for (const round of planOf(seed, wish.faults)) {
    if (performance.now() > wish.until) break
    print(`  ${round.fault} …`)
    const deps = { cluster, callers, shaper, tenant, told, sql, calls, turns, slack, usualSilence }
    const report = await runRound(deps, round)
    usualSilence ??= report.usualSilence
    reports.push(report)
    for (const violation of report.violations) {
      const { callId } = violation
      const lines = callId === null ? [] : await linesWith(cluster.processes, callId, shownLines)
      print(violationText(round.fault, violation, lines))
    }
  }
  print(
    `\nseed ${seed}; a caller waits ${Math.round(usualSilence ?? 0)} ms at most without a fault\n${tableOf(reports)}\n${costText(reports)}\n`,
  )
  return reports
}

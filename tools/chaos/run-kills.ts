/** Owns a run of kill cycles: calls come and go, process after process is killed, and in the end every call is counted. Nothing of it is a matter of time. */
import { setTimeout as pause } from 'node:timers/promises'
import { processesIn } from '../cluster/postgres-processes.ts'
import type { Counts } from '../cluster/topology.ts'
import { createKillCycles } from './kill-cycles.ts'
import { endsOf, violationsOfCount, type Violation } from './judge.ts'
import { leakedPorts, settled, socketsOf } from './leftovers.ts'
import { openStage, type Stage } from './open-stage.ts'
import { countPending, linesWith, readCalls, type KnownCall } from './outside.ts'
import { createRandom } from './random.ts'
import { killsText, violationText, type KillsReport } from './report.ts'
import { openTraffic, type PassedCall } from './traffic.ts'

export type KillsWish = {
  readonly seed: number
  readonly kills: number
  readonly counts: Counts
  readonly calls: number
  readonly turns: number
  readonly folder: string
  /** Ms by performance.now after which nobody is killed any more. */
  readonly until: number
  print(text: string): void
}

/** Ms from one kill to the next on the average. */
const killEvery = 2_000
const tellEvery = 5
/** Ms. A browser whose gateway was killed before it had joined holds a token for two minutes. */
const settlesWithin = 150_000
const shownViolations = 20
const shownLines = 12

export async function runKills(wish: KillsWish): Promise<KillsReport> {
  const { seed, print, until } = wish
  await using closing = new AsyncDisposableStack()
  const stage = await openStage(wish, closing)
  const { cluster, sql, tenant, told } = stage
  const { processes } = cluster
  const random = createRandom(seed)
  const before = socketsOf(processes)
  const began = Date.now()
  const cycles = createKillCycles({ sql, processes, random })
  const traffic = openTraffic({ ...stage, ...wish, processes, isUp: cycles.isUp, random: createRandom(seed + 1) })
  await pause(killEvery)
  while (cycles.kills.length < wish.kills && performance.now() < until) {
    const next = performance.now() + killEvery * (0.5 + random.next())
    await cycles.next()
    const done = cycles.kills.length
    if (done % tellEvery === 0) print(await progressText(stage, { done, of: wish.kills, began, traffic }))
    await pause(Math.max(0, next - performance.now()))
  }
  const flaws = [...(await cycles.whole())]
  print(`  ${cycles.kills.length} kills; the calls of now come to their end …`)
  await traffic.close()
  const pending = await settled(sql, tenant.accountId, settlesWithin)
  if (pending !== null) flaws.push({ invariant: 'rows', callId: null, text: pending })
  const rows = await readCalls(sql, tenant.accountId, began - 1_000)
  const violations = [
    ...flaws,
    ...rows.flatMap((row) => violationsOfCount(row, told.of(row.id))),
    ...unknownOf(traffic.passed, rows),
    ...(await leftovers(stage)),
    ...(await leakedPorts(processes, before)),
  ]
  for (const violation of violations.slice(0, shownViolations)) {
    const { callId } = violation
    const lines = callId === null ? [] : await linesWith(processes, callId, shownLines)
    print(violationText('kills', violation, lines))
  }
  const again = rows.reduce((sum, { id }) => sum + told.of(id).again, 0)
  const [passed, unplaced] = [traffic.passed.length, traffic.unplaced()]
  const report = { kills: cycles.kills, violations, ends: endsOf(rows), passed, unplaced, again }
  print(killsText(report))
  return report
}

type Progress = {
  readonly done: number
  readonly of: number
  readonly began: number
  readonly traffic: { talking(): number; readonly passed: readonly PassedCall[] }
}

async function progressText({ sql, tenant, told }: Stage, { done, of, began, traffic }: Progress): Promise<string> {
  const [rows, pending] = await Promise.all([
    readCalls(sql, tenant.accountId, began - 1_000),
    countPending(sql, tenant.accountId),
  ])
  const over = rows.filter(({ finished }) => finished)
  const doubled = rows.filter(({ id }) => told.of(id).events.filter(({ type }) => type === 'call.ended').length > 1)
  const seconds = Math.round((Date.now() - began) / 1_000)
  return `  ${done}/${of} kills in ${seconds} s: ${traffic.talking()} calls talk, ${over.length} are over, ${pending.calls} under way; ${doubled.length} ended twice`
}

/** A line that was answered is a call of the service. */
function unknownOf(passed: readonly PassedCall[], rows: readonly KnownCall[]): Violation[] {
  const known = (call: PassedCall): boolean =>
    rows.some(({ id, fromNumber }) => (call.callId === null ? fromNumber === call.number : id === call.callId))
  return passed
    .filter((call) => !known(call))
    .map(({ way, number }) => ({
      invariant: 'rows',
      callId: null,
      text: `${way} ${number}: the service has no row of it`,
    }))
}

/** Of calls that are over nothing is due that is not done (a token expires in its time), and each process of the service is there once. */
async function leftovers({ sql, tenant, cluster }: Stage): Promise<Violation[]> {
  const [left] = await sql<{ jobs: number; dialogs: number }[]>`
    select (select count(*)::int from jobs where account_id = ${tenant.accountId} and run_at < now() - interval '10 s') as jobs,
      (select count(*)::int from sip_dialogs join calls on calls.id = call_id where account_id = ${tenant.accountId}) as dialogs`
  const found = cluster.processes.map(({ name, folder }) => ({ name, count: processesIn(folder).length }))
  const text = `${left?.jobs} jobs and ${left?.dialogs} lines of calls that are over`
  return [
    ...(left && left.jobs + left.dialogs > 0 ? [{ invariant: 'rows', callId: null, text } as const] : []),
    ...found
      .filter(({ count }) => count !== 1)
      .map(
        ({ name, count }) =>
          ({ invariant: 'processes', callId: null, text: `${name} is there ${count} times` }) as const,
      ),
  ]
}

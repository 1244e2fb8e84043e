/**
 * Owns one round: calls are placed and talk, a fault strikes and is mended, all calls come to their end, and what was seen is judged. Everything
 * that waits is bounded; the cluster is whole again when it is over.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Cluster, ServiceProcess } from '../cluster/open-cluster.ts'
import type { Sql } from '../../store/sql.ts'
import type { Caller, Callers } from './callers.ts'
import { longestTalk, toolCallsOf } from './conversation.ts'
import { strike, type Blow } from './faults.ts'
import {
  extraSilenceOf,
  lostOf,
  usualSilenceOf,
  violationsOf,
  type SeenCall,
  type SeenRound,
  type Violation,
} from './judge.ts'
import { costOf, cpuByRole } from './cost.ts'
import { endOf, type End } from './end-of-call.ts'
import { leakedPorts, settled, socketsOf } from './leftovers.ts'
import { watchMachine, type MachineReport } from './machine.ts'
import { readCalls, type KnownCall } from './outside.ts'
import type { PlannedRound } from './plan.ts'
import type { Tenant } from './tenant.ts'
import type { Told } from './told.ts'
import type { UdpShaper } from './udp-shaper.ts'

export type RoundDeps = {
  readonly cluster: Cluster
  readonly callers: Callers
  readonly shaper: UdpShaper
  readonly tenant: Tenant
  readonly told: Told
  readonly sql: Sql
  readonly calls: number
  readonly turns: number
  /** Ms that the measure of silence may be off. */
  readonly slack: number
  /** Ms that callers wait at most without a fault; null: this round tells it. */
  readonly usualSilence: number | null
}

export type RoundReport = MachineReport & {
  readonly round: PlannedRound
  readonly whom: string
  readonly calls: readonly SeenCall[]
  readonly violations: readonly Violation[]
  /** Longest silences of its calls, ms, beyond what is usual. */
  readonly extra: readonly number[]
  readonly usualSilence: number
  readonly lost: number
  readonly said: number
  /** Deliveries that came again under their id. */
  readonly again: number
  /** CPU of a call that talks for a second, ms, by what takes it. */
  readonly cpu: Readonly<Record<string, number>>
}

/** Beyond a talk's length and the fault's. */
const patience = 45_000
const firstHeardWithin = 15_000
const attempts = 3

export async function runRound(deps: RoundDeps, round: PlannedRound): Promise<RoundReport> {
  const { cluster, shaper, turns, told } = deps
  const machine = watchMachine()
  const began = Date.now()
  const before = socketsOf(cluster.processes)
  const { placed, failed } = await placeAll(deps, round)
  const cost = costOf(cpuByRole(cluster))
  await pause(round.after)
  const [struckAt, struckOn] = [performance.now(), Date.now()]
  const blow = await strike(cluster, shaper, round)
  // A process that drains is back when its calls have ended: nobody waits for it here.
  const mended = pause(round.lasts).then(() => blow.mend())
  mended.catch(() => undefined)
  const talkTime = longestTalk(turns) + round.lasts
  const deadline = performance.now() + talkTime + patience
  const ends = await Promise.all(placed.map((caller) => endOf(caller, deadline, deadline + 2 * talkTime)))
  const cpu = cost.perCallSecond(
    cpuByRole(cluster),
    ends.map((end) => end?.at ?? deadline),
  )
  for (const caller of placed) caller.talk.stop()
  const flaws: Violation[] = failed.map((text) => ({ invariant: 'placed', callId: null, text }))
  await mended.catch((error: Error) => flaws.push({ invariant: 'processes', callId: null, text: error.message }))
  flaws.push(...(await wholeAgain(cluster, blow)))
  const pending = await settled(deps.sql, deps.tenant.accountId)
  if (pending !== null) flaws.push({ invariant: 'rows', callId: null, text: pending })
  const rows = await readCalls(deps.sql, deps.tenant.accountId, began - 1_000)
  const calls = placed.map((caller, index) => seenOf(caller, { end: ends[index] ?? null, rows, told }))
  flaws.push(...orphansOf(rows, calls))
  await Promise.all(placed.map((caller) => caller.hangUp().catch(() => undefined)))
  flaws.push(...(await leakedPorts(cluster.processes, before)))
  const { ownDelay, stolen } = machine()
  const usualSilence = deps.usualSilence ?? usualSilenceOf(calls)
  const struck = blow.ended.length > 0 ? blow.ended.map(({ name }) => name) : [blow.whom]
  const seen: SeenRound = {
    kind: round.kind,
    struck,
    struckAt,
    struckOn,
    usualSilence,
    holds: holdsOf(cluster, round),
    slack: deps.slack,
    stolen,
    toolCalls: toolCallsOf(turns),
  }
  return {
    round,
    whom: blow.whom,
    calls,
    violations: [...flaws, ...calls.flatMap((call) => violationsOf(call, seen))],
    extra: calls.map((call) => extraSilenceOf(call, usualSilence)),
    usualSilence,
    lost: calls.reduce((sum, call) => sum + lostOf(call), 0),
    said: calls.reduce((sum, call) => sum + call.said.length, 0),
    again: calls.reduce((sum, call) => sum + call.told.again, 0),
    cpu,
    ownDelay,
    stolen,
  }
}

/** Ms. Where some processes have lines and others run calls. */
function holdsOf({ processes }: Pick<Cluster, 'processes'>, { kind, lasts }: PlannedRound): number {
  const isSplit = processes.some(({ roles }) => /gateway|sip/.test(roles) && !roles.includes('actors'))
  return isSplit && kind.holdsSplit !== undefined ? lasts + kind.holdsSplit : 0
}

/** One after the other, and each talks when this resolves. */
async function placeAll({ cluster, callers, tenant, calls }: RoundDeps, round: PlannedRound) {
  const of = (role: string): ServiceProcess[] => cluster.processes.filter(({ roles }) => roles.includes(role))
  const edges = of('sip').flatMap((one) => (one.sipPort === null ? [] : [{ ...one, sipPort: one.sipPort }]))
  const [gateways, apis] = [of('gateway'), of('api')]
  const turn = <One>(all: readonly One[], index: number): One => {
    const one = all[(index + (round.seed % 7)) % all.length]
    if (one === undefined) throw new Error('the cluster has no process for such a call')
    return one
  }
  const placing: Promise<Caller | string>[] = []
  for (let index = 0; index < calls; index++) {
    const api = turn(apis, index)
    const nth = Math.floor(index / 3)
    const place = (): Promise<Caller> => {
      if (index % 3 === 0) return callers.callByPhone(turn(edges, nth))
      if (index % 3 === 1) return callers.callByBrowser(api, fromOn(gateways, turn(gateways, nth)), tenant)
      return callers.beCalled(api, tenant)
    }
    placing.push(placeAgain(place).catch((error: Error) => `call ${index + 1}: ${error.message}`))
    await pause(round.apart)
  }
  const outcomes = await Promise.all(placing)
  const placed = outcomes.filter((one) => typeof one !== 'string')
  const failed = outcomes.filter((one) => typeof one === 'string')
  await Promise.race([Promise.all(placed.map(({ talk }) => talk.heard)), pause(firstHeardWithin)])
  return { placed, failed }
}

/** This one, and then the others. */
const fromOn = <One>(all: readonly One[], first: One): [One, ...One[]] => [
  first,
  ...all.filter((other) => other !== first),
]

/** People try again as well; nothing has struck yet. */
async function placeAgain(place: () => Promise<Caller>): Promise<Caller> {
  for (let attempt = 1; ; attempt++)
    try {
      return await place()
    } catch (error) {
      if (attempt === attempts) throw error
    }
}

function seenOf(
  caller: Caller,
  { end, rows, told }: { end: End | null; rows: readonly KnownCall[]; told: Told },
): SeenCall {
  const { way, number, edge, callId, talk } = caller
  const row = rows.find(({ id, fromNumber }) => (callId === null ? fromNumber === number : id === callId)) ?? null
  return {
    way,
    number,
    edge,
    said: talk.said,
    // The last one is that of the end: what stands behind a talk that was whole is no waiting.
    silences: end === null ? talk.silences() : talk.silences().slice(0, -1),
    endedAt: end?.at ?? null,
    how: end?.how ?? 'it never ended',
    wasTold: caller.wasTold(),
    row,
    told: told.of(row?.id ?? callId ?? ''),
  }
}

/** Calls of the round that nobody of ours has placed. */
function orphansOf(rows: readonly KnownCall[], calls: readonly SeenCall[]): Violation[] {
  const ours = new Set(calls.map(({ row }) => row?.id))
  return rows
    .filter(({ id, outcome }) => !ours.has(id) && outcome === null)
    .map(({ id }) => ({ invariant: 'rows', callId: id, text: 'a call that nobody is on' }) as const)
}

/** Whoever ended by the blow is back, and nobody else has ended. */
async function wholeAgain({ processes }: Cluster, { ended }: Blow): Promise<Violation[]> {
  const flaws: Violation[] = []
  for (const one of processes) {
    const child = one.child()
    if (!child?.isOver()) continue
    if (!ended.includes(one))
      flaws.push({ invariant: 'processes', callId: null, text: `${one.name} ended by itself: ${await child.ended}` })
    await one.start()
  }
  return flaws
}

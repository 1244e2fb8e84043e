/**
 * Owns how many calls a second are set up and torn down: by the whole service, and by its SIP edge alone, which says what of it the protocol costs.
 * Short rounds at rising rates find where it breaks, and a long one proves the rate just below.
 */
import { holdMs, runSipp, type SippRound } from './sipp-load.ts'
import { quantile } from './table.ts'

export type RatedProcess = {
  readonly name: string
  readonly port: number
  readonly called: string
  readonly calling: string
  /** The first rate that is tried. */
  readonly from: number
  /** Ms so far: of the process, and of Postgres where it has one. */
  readCpu(): Promise<Cpu>
  /** Resolves when no call is left. */
  settled(): Promise<void>
  /** Before each proof, for who does not notice by itself that the callers of a failed round are gone. */
  renew?(): Promise<void>
}

export type Cpu = { readonly own: number; readonly postgres: number | null }
type Round = SippRound & { readonly cpuMs: Cpu }

const searchSeconds = 3
const proofSeconds = 10
const rise = 1.5
const maxSteps = 8
const maxProofs = 5
/** A proof that fails is tried again at this part of its rate. */
const stepBack = 0.7
/** Of the calls: what the machine around makes late is not the service that is behind. */
const maxRepeated = 0.01
/** Whoever is behind answers later and later, and a short round ends before it repeats anything. */
const maxAnswerMs = 300
/** Of the time in which the calls were to be placed: beyond it they were not placed at that rate. */
const maxOverrun = 0.15

/** `cells` are a row of the table, `placed` the calls that the process has had of it. */
export async function measureCallRate(one: RatedProcess): Promise<{ cells: Record<string, string>; placed: number }> {
  const { rounds, proved } = await search(one)
  const beyond = rounds
    .filter((round) => !isSustained(round) && round.rate > (proved?.rate ?? 0))
    .toSorted((first, second) => first.rate - second.rate)[0]
  return { cells: toCells(one.name, proved, beyond), placed: rounds.reduce((sum, { calls }) => sum + calls, 0) }
}

async function search(one: RatedProcess): Promise<{ rounds: Round[]; proved: Round | null }> {
  const rounds: Round[] = []
  const runAt = async (rate: number, seconds: number): Promise<Round> => {
    const before = await one.readCpu()
    const round = await runSipp(rate, seconds, one)
    await one.settled()
    const after = await one.readCpu()
    rounds.push({ ...round, cpuMs: difference(before, after) })
    return rounds.at(-1) as Round
  }
  let good = 0
  for (let [step, rate] = [0, one.from]; step < maxSteps; step++, rate = Math.round(rate * rise)) {
    // Whatever else the machine does spoils a round now and then, but hardly two.
    if (!isSustained(await runAt(rate, searchSeconds)) && !isSustained(await runAt(rate, searchSeconds))) break
    good = rate
  }
  for (let [proof, rate] = [0, good]; proof < maxProofs && rate > 0; proof++, rate = Math.round(rate * stepBack)) {
    await one.renew?.()
    const round = await runAt(rate, proofSeconds)
    if (isSustained(round)) return { rounds, proved: round }
  }
  return { rounds, proved: null }
}

const difference = (before: Cpu, after: Cpu): Cpu => ({
  own: after.own - before.own,
  postgres: after.postgres === null ? null : after.postgres - (before.postgres ?? 0),
})

const isSustained = (round: Round): boolean => faultOf(round) === null

/** Null: it kept up. */
function faultOf({ rate, calls, failed, retransmissions, answeredMs, ms }: SippRound): string | null {
  if (failed > 0) return `${failed} of ${calls} failed`
  if (retransmissions > calls * maxRepeated) return `${retransmissions} retransmissions in ${calls} calls`
  const p95 = quantile(answeredMs, 0.95)
  if (p95 > maxAnswerMs) return `p95 ${p95.toFixed(0)} ms to the answer`
  const wantedMs = (calls / rate) * 1000 + holdMs
  return ms > wantedMs * (1 + maxOverrun) ? `${(ms - wantedMs).toFixed(0)} ms behind at the end` : null
}

function toCells(name: string, proved: Round | null, beyond: Round | undefined): Record<string, string> {
  const perCall = (ms: number | null): string => (ms === null || !proved ? '-' : (ms / proved.calls).toFixed(1))
  const answered = proved?.answeredMs ?? []
  return {
    'set up and torn down': name,
    'calls/s': String(proved?.rate ?? 'none'),
    'CPU ms per call': perCall(proved?.cpuMs.own ?? null),
    'and of Postgres': perCall(proved?.cpuMs.postgres ?? null),
    'INVITE to 200 p50/p95 ms': `${quantile(answered, 0.5).toFixed(0)} / ${quantile(answered, 0.95).toFixed(0)}`,
    'not any more': beyond ? `${beyond.rate}/s: ${faultOf(beyond)}` : '-',
  }
}

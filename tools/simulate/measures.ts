/**
 * Owns the measures of turn-taking: the eight of τ-voice, and dead air, recovery and the latency of turns beside them. All are computed from the leg's own
 * clock of 20 ms: what the caller really sent, and what really arrived. A value that is missing has a reason. docs/simulate.md "Measures". Pure.
 */
import { frameMs } from '../../model/frame.ts'
import { loud } from '../callers/line-sound.ts'
import { gapWithinSpeech, type Mark, type Track } from './caller-leg.ts'
import type { MeasureName } from './scenario.ts'

export type Measure = {
  /** Ms, a share from 0 to 1, or a count; null: see `reason`. */
  readonly value: number | null
  /** Of how many events. */
  readonly events: number
  readonly reason: string | null
  /** What it was made of, so that runs can be put together. */
  readonly samples: readonly number[]
}

export type Measures = {
  readonly values: Readonly<Record<MeasureName, Measure>>
  readonly firstAudioMs: number | null
  readonly longestResponseMs: number | null
}

/** By ticks; `to` is behind the last one. */
export type Stretch = { readonly from: number; readonly to: number }

/** As the benchmark has them, ms. */
const yieldsWithin = 2_000
const cutWithin = 1_000
const answersWithin = 2_000
const longSilence = 3_000
const ticksOf = (ms: number): number => ms / frameMs
const msOf = (ticks: number): number => ticks * frameMs

/** `toolTicks`: when tools were called; null: nobody told. */
export function measuresOf(track: Track, toolTicks: readonly number[] | null): Measures {
  const agent = speechOf(track.agent)
  const turns = track.marks.filter(({ kind }) => kind === 'say' || kind === 'interrupt' || kind === 'keys')
  const responses = turns
    .map((turn, place) => responseTo(turn, turns[place + 1], agent))
    .filter((found) => found !== null)
  const answered = responses.flatMap(({ after }) => (after === null ? [] : [after]))
  const yields = yieldsOf(track.marks, agent)
  const silences = deadAirOf(track, agent)
  const withTool = (isWith: boolean): number[] =>
    responses.flatMap(({ turn, after }) =>
      after !== null && hasTool(turn, after, toolTicks ?? []) === isWith ? [after] : [],
    )
  const noTools = toolTicks === null ? 'nobody told which tools were called' : 'no such turn was answered'
  const first = agent[0]
  return {
    firstAudioMs: first ? msOf(first.from) : null,
    longestResponseMs: answered.length === 0 ? null : Math.max(...answered),
    values: {
      responseLatency: meanOf(answered, 'no turn of the caller was answered'),
      responseRate: meanOf(
        responses.map(({ after }) => (after === null ? 0 : 1)),
        'no turn of the caller ended with the agent silent',
      ),
      yieldLatency: meanOf(
        yields.flatMap(({ silentAfter }) => (silentAfter === null ? [] : [silentAfter])),
        'the agent never fell silent for an interruption',
      ),
      yieldRate: meanOf(
        yields.map(({ silentAfter }) => (silentAfter !== null && silentAfter <= yieldsWithin ? 1 : 0)),
        'the caller did not interrupt',
      ),
      agentInterruptions: meanOf(
        turns.map((turn) => agent.filter(({ from }) => from > turn.from && from < turn.to).length),
        'the caller had no turn',
      ),
      backchannelsIgnored: ignoredOf(track.marks, agent, 'backchannel'),
      ticsIgnored: ignoredOf(track.marks, agent, 'cough'),
      asidesIgnored: ignoredOf(track.marks, agent, 'aside'),
      deadAirTotal: sumOf(silences),
      deadAirLongest: {
        ...sumOf(silences),
        value: silences.length === 0 ? 0 : Math.max(...silences),
      },
      deadAirOver3s: { ...sumOf(silences), value: silences.filter((ms) => ms > longSilence).length },
      recovery: meanOf(
        yields.flatMap(({ speaksAgainAfter }) => (speaksAgainAfter === null ? [] : [speaksAgainAfter])),
        'the agent did not speak again after an interruption',
      ),
      latencyWithTool: meanOf(withTool(true), noTools),
      latencyWithoutTool: meanOf(withTool(false), toolTicks === null ? noTools : 'no such turn was answered'),
    },
  }
}

/** Where somebody speaks: gaps of up to 400 ms are within it. */
export function speechOf(levels: readonly number[]): Stretch[] {
  const found: { from: number; to: number }[] = []
  for (const [tick, level] of levels.entries()) {
    if (level < loud) continue
    const last = found.at(-1)
    if (last && tick - last.to < ticksOf(gapWithinSpeech)) last.to = tick + 1
    else found.push({ from: tick, to: tick + 1 })
  }
  return found
}

const during = (stretches: readonly Stretch[], tick: number): Stretch | undefined =>
  stretches.find(({ from, to }) => from <= tick && tick < to)

type Response = { readonly turn: Mark; readonly after: number | null }

/** Null: the agent was speaking when the turn ended. `after` null: the caller spoke again first, or nothing came. */
function responseTo(turn: Mark, next: Mark | undefined, agent: readonly Stretch[]): Response | null {
  if (during(agent, turn.to)) return null
  const answer = agent.find(({ from }) => from >= turn.to)
  const isFirst = answer !== undefined && (next === undefined || answer.from <= next.from)
  return { turn, after: isFirst ? msOf(answer.from - turn.to) : null }
}

const hasTool = ({ to }: Mark, after: number, toolTicks: readonly number[]): boolean =>
  toolTicks.some((tick) => tick >= to && tick <= to + ticksOf(after))

/** Of each interruption that met an agent who spoke. */
function yieldsOf(marks: readonly Mark[], agent: readonly Stretch[]) {
  return marks.flatMap((mark) => {
    const cut = mark.kind === 'interrupt' ? during(agent, mark.from) : undefined
    if (!cut) return []
    const again = agent.find(({ from }) => from >= mark.to && from >= cut.to)
    return [{ silentAfter: msOf(cut.to - mark.from), speaksAgainAfter: again ? msOf(again.from - mark.to) : null }]
  })
}

/** Share of what was no turn and was taken for none. While the agent speaks: it is not silent within 1 s; while it is silent: it says nothing within 2 s. */
function ignoredOf(marks: readonly Mark[], agent: readonly Stretch[], kind: Mark['kind']): Measure {
  const events = marks.filter((mark) => mark.kind === kind)
  const ignored = events.map((mark) => {
    const spoken = during(agent, mark.from)
    if (spoken) return spoken.to - mark.from > ticksOf(cutWithin) ? 1 : 0
    return agent.some(({ from }) => from > mark.from && from <= mark.from + ticksOf(answersWithin)) ? 0 : 1
  })
  return meanOf(ignored, `there was no ${kind}`)
}

/** Ms of each stretch between two sounds in which neither spoke. What is said to others, and coughs, is no talk, but somebody is heard. */
function deadAirOf({ marks, agent: levels }: Track, agent: readonly Stretch[]): number[] {
  const heard = [...agent, ...marks.filter(({ kind }) => kind !== 'keys')].toSorted((a, b) => a.from - b.from)
  const silences: number[] = []
  let end = heard[0]?.to ?? levels.length
  for (const { from, to } of heard) {
    if (from > end) silences.push(msOf(from - end))
    end = Math.max(end, to)
  }
  return silences
}

const none = (reason: string): Measure => ({ value: null, events: 0, reason, samples: [] })

export function meanOf(samples: readonly number[], reason: string): Measure {
  if (samples.length === 0) return none(reason)
  const sum = samples.reduce((total, sample) => total + sample, 0)
  return { value: sum / samples.length, events: samples.length, reason: null, samples }
}

const sumOf = (samples: readonly number[]): Measure => ({
  value: samples.reduce((total, sample) => total + sample, 0),
  events: samples.length,
  reason: null,
  samples,
})

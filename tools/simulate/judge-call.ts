/** Owns what must be so of a call, against what is known of it: each expectation held or not, and where not. Facts only, nobody's opinion. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { frameMs } from '../../model/frame.ts'
import type { Measures } from './measures.ts'
import { fits } from './pattern.ts'
import type { CallFacts } from './run-call.ts'
import type { Expectation, MeasureName } from './scenario.ts'

export type Fault = {
  /** The field of the scenario: `expect.dimensions.seating`, `turns.2`. */
  readonly field: string
  readonly wanted: string
  readonly got: string
  /** Of the leg's clock, where it is of a moment. */
  readonly atMs: number | null
}

type Found = Omit<Fault, 'field' | 'atMs'> | null

/** Everything that was not as it should be; none: the run passed. */
export function judgeCall(facts: CallFacts, expect: Expectation, measures: Measures): Fault[] {
  const { call } = facts
  const faults: Fault[] = []
  const look = (field: string, found: Found): void =>
    void (found && faults.push({ field: `expect.${field}`, ...found, atMs: null }))
  if (facts.stuck) {
    const { turn, wanted, heard, tick } = facts.stuck
    const got = heard.length === 0 ? 'the agent said nothing' : `the agent said: ${heard.join(' | ')}`
    faults.push({ field: `turns.${turn - 1}`, wanted: `waited for ${wanted}`, got, atMs: tick * frameMs })
  }
  if (expect.outcome) look('outcome', different(expect.outcome, call.outcome))
  if (expect.endedBy) look('endedBy', different(expect.endedBy, call.endedBy))
  if (expect.nextAction) look('nextAction', different(expect.nextAction, call.nextAction))
  if (expect.nextActionData) look('nextActionData', different(expect.nextActionData, call.nextActionData))
  for (const [key, value] of Object.entries(expect.dimensions ?? {}))
    look(`dimensions.${key}`, different(value, call.dimensions?.[key]))
  for (const [place, found] of transcriptFaults(facts, expect)) look(`transcript.${place}`, found)
  for (const pattern of expect.neverSaid ?? []) look('neverSaid', saidAll(facts, pattern))
  for (const [place, found] of toolFaults(facts, expect)) look(`tools${place}`, found)
  for (const [place, found] of webhookFaults(facts, expect)) look(`webhooks${place}`, found)
  for (const [name, found] of timingFaults(facts, expect, measures)) look(`timing.${name}`, found)
  for (const [name, found] of measureFaults(expect, measures)) look(`measures.${name}`, found)
  return faults
}

const shown = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value))

const different = (wanted: unknown, got: unknown): Found =>
  isDeepStrictEqual(wanted, got) ? null : { wanted: shown(wanted), got: shown(got) }

/** Each is looked for behind the one before it; one that is missing is told with what stands there. */
function transcriptFaults({ transcript }: CallFacts, { transcript: wanted = [] }: Expectation): [number, Found][] {
  let from = 0
  return wanted.flatMap((segment, place): [number, Found][] => {
    const [speaker, pattern] = 'agent' in segment ? ['agent', segment.agent] : ['user', segment.caller]
    const at = transcript.findIndex(
      (said, index) => index >= from && said.speaker === speaker && fits(pattern, said.text),
    )
    if (at >= 0) {
      from = at + 1
      return []
    }
    const there = transcript.slice(from).find((said) => said.speaker === speaker)
    const who = speaker === 'agent' ? 'the agent' : 'the caller'
    return [[place, { wanted: `${who}: “${pattern}”`, got: there ? `${who}: “${there.text}”` : `no more of ${who}` }]]
  })
}

function saidAll({ transcript }: CallFacts, pattern: string): Found {
  const said = transcript.find(({ speaker, text }) => speaker === 'agent' && fits(pattern, text))
  return said ? { wanted: `never “${pattern}”`, got: `“${said.text}”` } : null
}

function toolFaults({ tools }: CallFacts, { tools: wanted }: Expectation): [string, Found][] {
  if (!wanted) return []
  if (!tools) return [['', { wanted: 'calls of tools', got: notTold }]]
  const names = ({ name }: { readonly name: string }): string => name
  if (wanted.length !== tools.length || wanted.some(({ name }, index) => !isNamed(tools[index]?.name ?? '', name)))
    return [['', { wanted: wanted.map(names).join(', ') || 'none', got: tools.map(names).join(', ') || 'none' }]]
  return wanted.flatMap(({ arguments: values = {} }, index) =>
    Object.entries(values).flatMap(([name, value]): [string, Found][] => {
      const given = tools[index]?.arguments as Readonly<Record<string, unknown>> | undefined
      return [[`.${index}.arguments.${name}`, different(value, given?.[name])]]
    }),
  )
}

const notTold = 'not known: this deployment cannot tell us its events'
/** An external tool is called by its own name, or with its provider in front. */
const isNamed = (got: string, wanted: string): boolean => got === wanted || got.endsWith(`__${wanted}`)

function webhookFaults({ events }: CallFacts, { webhooks: wanted }: Expectation): [string, Found][] {
  if (!wanted) return []
  if (!events) return [['', { wanted: 'events', got: notTold }]]
  const told = events.map(({ type, data }) =>
    type === 'call.status_update' ? `${type} ${String(data['status'])}` : type,
  )
  let from = 0
  return wanted.flatMap((name, place): [string, Found][] => {
    const at = told.findIndex((text, index) => index >= from && (text === name || text.split(' ')[0] === name))
    if (at >= 0) {
      from = at + 1
      return []
    }
    return [[`.${place}`, { wanted: name, got: `after ${from} of: ${told.join(', ') || 'none'}` }]]
  })
}

function timingFaults(facts: CallFacts, { timing = {} }: Expectation, measures: Measures): [string, Found][] {
  const over = (ms: number | null | undefined, most: number | undefined): Found => {
    if (most === undefined || (typeof ms === 'number' && ms <= most)) return null
    return { wanted: `${most} ms at most`, got: typeof ms === 'number' ? `${Math.round(ms)} ms` : 'nothing' }
  }
  const { duration } = facts.call
  return [
    ['answerWithin', over(facts.answeredIn, timing.answerWithin)],
    ['firstAudioWithin', over(measures.firstAudioMs, timing.firstAudioWithin)],
    ['turnWithin', measures.longestResponseMs === null ? null : over(measures.longestResponseMs, timing.turnWithin)],
    ['callWithin', over(duration === undefined ? null : duration * 1000, timing.callWithin)],
  ]
}

function measureFaults({ measures: wanted = {} }: Expectation, { values }: Measures): [string, Found][] {
  return Object.entries(wanted).map(([name, bound]): [string, Found] => {
    const { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY } = bound
    const { value, reason } = values[name as MeasureName]
    if (value !== null && value >= atLeast && value <= atMost) return [name, null]
    const asked = [
      ...(bound.atLeast === undefined ? [] : [`at least ${bound.atLeast}`]),
      ...(bound.atMost === undefined ? [] : [`at most ${bound.atMost}`]),
    ]
    return [name, { wanted: asked.join(', '), got: value === null ? `no value: ${reason}` : String(value) }]
  })
}

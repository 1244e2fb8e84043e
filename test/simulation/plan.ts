/** Owns what a seed means: which nodes and calls there are and what goes wrong. A plan can be made smaller, thing by thing, while it still fails. */
import { createRandom, type Random } from '../fake/random.ts'
import type { Callee } from './simulated-edge.ts'

export type PlannedCall = Callee & {
  readonly index: number
  readonly kind: 'web' | 'inbound' | 'outbound'
  /** Ms of the world. */
  readonly at: number
  /** Ms from its creation; null: at once. Of outbound calls. */
  readonly scheduledIn: number | null
  /** Somebody ends it by the API so many ms after its creation; null: nobody. */
  readonly endedIn: number | null
}

/** `step`: before the so-manieth thing that happens in that node, or in those that take its place. `at`: ms of the world. */
export type Fault =
  | { readonly kind: 'crash'; readonly node: number; readonly step: number; readonly downFor: number }
  | { readonly kind: 'stop'; readonly node: number; readonly step: number; readonly downFor: number }
  | { readonly kind: 'freeze'; readonly node: number; readonly step: number; readonly ms: number }
  | { readonly kind: 'leap'; readonly node: number; readonly step: number; readonly ms: number }
  | { readonly kind: 'cutDatabase'; readonly node: number; readonly step: number }
  | { readonly kind: 'databaseAway'; readonly node: number; readonly step: number; readonly ms: number }
  | { readonly kind: 'loseCommits'; readonly node: number; readonly step: number; readonly ms: number }
  | { readonly kind: 'cutBus'; readonly node: number; readonly step: number; readonly ms: number }
  | {
      readonly kind: 'dropMessages'
      readonly node: number
      readonly step: number
      readonly ms: number
      readonly oneOf: number
    }
  | { readonly kind: 'edgeCrash'; readonly at: number; readonly downFor: number }
  | { readonly kind: 'databaseLeap'; readonly at: number; readonly ms: number }

export type Plan = {
  readonly seed: number
  readonly nodes: number
  /** Nodes hear of each other ten times a second, or know only each other's leases. */
  readonly hasBeats: boolean
  /** Calls at once. Null: as many as come. */
  readonly limits: { readonly account: number; readonly worker: number | null; readonly trunk: number | null }
  /** Ms that a message or a statement takes, mostly; and of so many one takes much longer. */
  readonly weather: { readonly usual: number; readonly slowOneOf: number; readonly slow: number }
  /** Of so many deliveries one fails at its first attempt; as many answers are lost. */
  readonly failsOneOf: number
  readonly calls: readonly PlannedCall[]
  readonly faults: readonly Fault[]
}

const digits = ['1', '2', '3', '4', '5', '6', '7', '8', '9'] as const

const between = (random: Random, least: number, most: number): number => least + random.below(most - least + 1)
const oneOf = (random: Random, times: number): boolean => random.below(times) === 0

/** What is pressed is drawn by itself, so that a seed's faults stay what they are. Whoever presses keys talks longer. */
function withKeys(random: Random, call: Spoken): PlannedCall {
  const count = random.below(4)
  const keys = Array.from({ length: count }, (_, index) => ({
    in: between(random, 300, 3_500),
    event:
      call.kind === 'web' && oneOf(random, 2)
        ? ({ type: 'typed', text: `typed ${index}` } as const)
        : ({ type: 'dtmf', digit: digits[index]! } as const),
  }))
  const lines = count === 0 ? call.lines : call.lines + between(random, 1, 2)
  return { ...call, lines, keys, keyPause: random.pick([100, 400]) }
}

type Spoken = Omit<PlannedCall, 'keys' | 'keyPause'>

function callOf(random: Random, index: number): Spoken {
  const kind = random.pick(['web', 'inbound', 'outbound', 'outbound'] as const)
  const lines = between(random, 1, 2)
  return {
    index,
    kind,
    at: random.below(3_000),
    lines,
    toolAt: oneOf(random, 2) ? random.below(lines) : null,
    patience: between(random, 6_000, 14_000),
    answers: kind === 'outbound' ? random.pick(['yes', 'yes', 'yes', 'busy', 'never'] as const) : 'yes',
    scheduledIn: kind === 'outbound' && oneOf(random, 4) ? between(random, 500, 4_000) : null,
    endedIn: oneOf(random, 8) ? random.below(6_000) : null,
  }
}

/** Steps of one node in a run without faults: most calls are under way then. */
const firstStep = 10
const lastStep = 420

function faultOf(random: Random, nodes: number): Fault {
  const at = { node: random.below(nodes), step: between(random, firstStep, lastStep) }
  const kind = random.pick([
    'crash',
    'crash',
    'crash',
    'stop',
    'freeze',
    'leap',
    'cutDatabase',
    'databaseAway',
    'loseCommits',
    'cutBus',
    'dropMessages',
    'databaseLeap',
    'edgeCrash',
  ] as const)
  switch (kind) {
    case 'crash':
    case 'stop':
      return { kind, ...at, downFor: between(random, 200, 7_000) }
    case 'freeze':
      return { kind, ...at, ms: between(random, 500, 9_000) }
    case 'leap':
      return { kind, ...at, ms: between(random, 500, 20_000) }
    case 'cutDatabase':
      return { kind, ...at }
    case 'databaseAway':
      return { kind, ...at, ms: between(random, 100, 6_000) }
    case 'loseCommits':
      return { kind, ...at, ms: between(random, 50, 600) }
    case 'cutBus':
      return { kind, ...at, ms: between(random, 200, 4_000) }
    case 'dropMessages':
      return { kind, ...at, ms: between(random, 500, 5_000), oneOf: between(random, 2, 6) }
    case 'edgeCrash':
      return { kind, at: random.below(12_000), downFor: between(random, 200, 4_000) }
    case 'databaseLeap':
      return { kind, at: random.below(12_000), ms: between(random, 1_000, 20_000) }
  }
}

/** Of ten seeds one has no faults at all: what fails there fails by its order alone. */
export function planOf(seed: number): Plan {
  const random = createRandom(Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995)
  const nodes = between(random, 2, 3)
  const pressing = createRandom(Math.imul(seed, 0x85ebca6b) ^ 0x27d4eb2f)
  const calls = Array.from({ length: between(random, 1, 4) }, (_, index) => callOf(random, index)).map((call) =>
    withKeys(pressing, call),
  )
  const limits = {
    account: between(random, 1, 4),
    worker: oneOf(random, 2) ? between(random, 1, 3) : null,
    trunk: oneOf(random, 2) ? between(random, 1, 3) : null,
  }
  const weather = {
    usual: random.pick([1, 3, 15]),
    slowOneOf: random.pick([20, 80, 1_000]),
    slow: random.pick([50, 400, 2_500]),
  }
  const count = oneOf(random, 10) ? 0 : between(random, 1, 4)
  const faults = Array.from({ length: count }, () => faultOf(random, nodes))
  const hasBeats = oneOf(random, 4)
  return { seed, nodes, hasBeats, limits, weather, failsOneOf: random.pick([3, 10, 1_000]), calls, faults }
}

/** One thing less each, the largest first. */
export function smallerPlans(plan: Plan): Plan[] {
  const without = <Of>(list: readonly Of[], index: number): Of[] => list.filter((_, at) => at !== index)
  const { calls, faults, weather } = plan
  return [
    ...(calls.length > 1 ? calls.map((_, index) => ({ ...plan, calls: without(calls, index) })) : []),
    ...faults.map((_, index) => ({ ...plan, faults: without(faults, index) })),
    ...(plan.nodes > 1
      ? [
          {
            ...plan,
            nodes: plan.nodes - 1,
            faults: faults.filter((one) => !('node' in one) || one.node < plan.nodes - 1),
          },
        ]
      : []),
    ...(plan.hasBeats ? [{ ...plan, hasBeats: false }] : []),
    ...(weather.slowOneOf < 1_000 ? [{ ...plan, weather: { ...weather, slowOneOf: 1_000 } }] : []),
    ...(plan.failsOneOf < 1_000 ? [{ ...plan, failsOneOf: 1_000 }] : []),
    ...calls.flatMap((call, index) =>
      call.keys.map((_, at) => ({ ...plan, calls: calls.with(index, { ...call, keys: without(call.keys, at) }) })),
    ),
    ...calls.flatMap((call, index) =>
      call.toolAt !== null || call.endedIn !== null || call.scheduledIn !== null
        ? [{ ...plan, calls: calls.with(index, { ...call, toolAt: null, endedIn: null, scheduledIn: null }) }]
        : [],
    ),
  ]
}

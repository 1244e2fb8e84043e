/** Owns the format of scenarios, version 1: who calls, what the line is like, what the caller does, and what must be so afterwards. docs/simulate.md. */
import { z } from 'zod'
import { ExternalTool } from '../../model/external-tool.ts'
import { Json, JsonObject } from '../../model/json.ts'
import { EndedBy, TerminalStatus } from '../../model/outcome.ts'
import { EventType } from '../../model/events.ts'
import { fliteVoices } from '../../voice/engines/embedded/flite.ts'
import { patternOf } from './pattern.ts'

export const formatVersion = 1

const Ms = (most: number) => z.number().int('must be a whole number of milliseconds').min(0).max(most)
const Words = z.string().trim().min(1).max(1_000)
/** Words that must be in a text, or an expression between slashes. */
const Pattern = z
  .string()
  .trim()
  .min(1)
  .max(1_000)
  .refine((text) => patternOf(text) !== null, { message: 'is no regular expression' })

/** `any`: which one the seed says. */
const Voice = z.enum(['any', ...fliteVoices])
const Factor = z.number().min(0.5).max(2)
const ofVoice = { voice: Voice.optional(), pitch: Factor.optional(), speed: Factor.optional() }

const Caller = z.strictObject({
  voice: Voice.default('any'),
  pitch: Factor.default(1),
  speed: Factor.default(1),
  /** What a telephone shows; else one of the range for examples, by the seed. */
  number: z
    .string()
    .regex(/^\+[1-9]\d{5,14}$/, 'must be a number such as +12025550142')
    .optional(),
  /** How long the agent must be silent before the caller takes the turn: from, to. The seed says which. */
  pause: z
    .tuple([Ms(10_000), Ms(10_000)])
    .default([350, 650])
    .refine(([from, to]) => from <= to, { message: 'must be from the shorter to the longer' }),
  /** How long the caller waits for what is to come. */
  patience: Ms(120_000).default(20_000),
  /** How often the caller says the same once more when asked again. */
  repeats: z.number().int().min(0).max(10).default(2),
  /** Played by a chat model, which is told this; then there are no turns. */
  role: Words.optional(),
})

const Level = z.number().min(-90).max(0)
const Surroundings = z.strictObject({
  /** dB below full scale. */
  noise: Level.optional(),
  babble: Level.optional(),
  /** The agent's own sound comes back. */
  echo: z.strictObject({ delay: Ms(1_000).default(120), level: Level.default(-30) }).optional(),
  /** Share of packets, each way. */
  loss: z.number().min(0).max(0.5).default(0),
  jitter: Ms(500).default(0),
})

const While = z.enum(['speaking', 'silent'])
/** WAV, beside the scenario: what is spoken in the place of a voice of ours. */
const SoundFile = z.string().min(1).max(500)
/** Of every turn. `hear`: what the agent must have said since the caller's turn before. */
const ofTurn = {
  hear: Pattern.optional(),
  /** How long the agent must have been silent; else the caller's `pause`. */
  after: Ms(60_000).optional(),
  /** Without waiting for the agent: whoever picks up a telephone says hello. */
  unasked: z.literal(true).optional(),
}
/** `again`: said once more when the agent says this once more; as `hear`, where it is not given. */
const ofAnswer = { again: Pattern.optional(), sound: SoundFile.optional(), ...ofVoice }
/** Over the agent, who must be speaking for so long. */
const ofOverlap = { after: Ms(60_000).default(800) }

const actions = {
  say: z.strictObject({ say: Words, ...ofTurn, ...ofAnswer }),
  interrupt: z.strictObject({ interrupt: Words, ...ofOverlap, ...ofAnswer }),
  backchannel: z.strictObject({ backchannel: Words, ...ofOverlap, sound: SoundFile.optional(), ...ofVoice }),
  cough: z.strictObject({ cough: z.literal(true), while: While.default('speaking'), ...ofOverlap }),
  aside: z.strictObject({
    aside: Words,
    while: While.default('speaking'),
    ...ofOverlap,
    sound: SoundFile.optional(),
    ...ofVoice,
  }),
  silence: z.strictObject({ silence: Ms(120_000), hear: Pattern.optional() }),
  keys: z.strictObject({
    keys: z.string().regex(/^[0-9A-D*#]{1,32}$/, 'must be digits, A to D, * and #'),
    ...ofTurn,
    again: Pattern.optional(),
  }),
  hangUp: z.strictObject({ hangUp: z.literal(true), ...ofTurn }),
} as const

export type Action = keyof typeof actions
export const actionNames = Object.keys(actions) as Action[]

/** Which schema is meant, its action says: what is wrong is told of that one alone. */
const Turn = z.unknown().transform((given, context) => {
  const keys = typeof given === 'object' && given !== null ? Object.keys(given) : []
  const named = actionNames.filter((name) => keys.includes(name))
  const [name] = named
  if (!name || named.length > 1) {
    context.addIssue({ code: 'custom', message: `must have exactly one of ${actionNames.join(', ')}` })
    return z.NEVER
  }
  const read = actions[name].safeParse(given)
  if (read.success) return read.data
  for (const issue of read.error.issues) context.addIssue(issue as never)
  return z.NEVER
})
export type Turn = z.infer<(typeof actions)[Action]>

const Bound = z.strictObject({ atLeast: z.number().optional(), atMost: z.number().optional() })
export const measureNames = [
  'responseLatency',
  'responseRate',
  'yieldLatency',
  'yieldRate',
  'agentInterruptions',
  'backchannelsIgnored',
  'ticsIgnored',
  'asidesIgnored',
  'deadAirTotal',
  'deadAirLongest',
  'deadAirOver3s',
  'recovery',
  'latencyWithTool',
  'latencyWithoutTool',
] as const
export type MeasureName = (typeof measureNames)[number]

const Expectation = z.strictObject({
  outcome: TerminalStatus.optional(),
  endedBy: EndedBy.optional(),
  nextAction: z.string().optional(),
  nextActionData: JsonObject.optional(),
  /** Those named; others may be there. */
  dimensions: JsonObject.optional(),
  /** In this order, others between them. */
  transcript: z
    .array(z.union([z.strictObject({ agent: Pattern }), z.strictObject({ caller: Pattern })]))
    .max(200)
    .optional(),
  neverSaid: z.array(Pattern).max(50).optional(),
  /** All calls of tools, in their order. Of the arguments those named. */
  tools: z
    .array(z.strictObject({ name: z.string(), arguments: JsonObject.optional() }))
    .max(100)
    .optional(),
  /** In this order, others between them: `call.ended`, or with a status `call.status_update in_progress`. */
  webhooks: z
    .array(
      z.string().refine((text) => (EventType.options as readonly string[]).includes(text.split(' ')[0] ?? ''), {
        message: `must begin with one of ${EventType.options.join(', ')}`,
      }),
    )
    .max(200)
    .optional(),
  timing: z
    .strictObject({
      /** From dialing, or asking for the call, to the answer. */
      answerWithin: Ms(600_000).optional(),
      /** From the answer to the first sound of the agent. */
      firstAudioWithin: Ms(600_000).optional(),
      /** Each answer to a turn of the caller. */
      turnWithin: Ms(600_000).optional(),
      /** From the answer to the end. */
      callWithin: Ms(600_000).optional(),
    })
    .optional(),
  measures: z.partialRecord(z.enum(measureNames), Bound).optional(),
})
export type Expectation = z.infer<typeof Expectation>

const ScenarioTool = z.strictObject({
  ...ExternalTool.pick({ name: true, description: true }).shape,
  inputSchema: JsonObject.optional(),
  /** What the tool answers. */
  result: Json,
})
export type ScenarioTool = z.infer<typeof ScenarioTool>

export const Scenario = z
  .strictObject({
    simulation: z.literal(formatVersion),
    name: Words,
    line: z.enum(['web', 'sip']).default('web'),
    /** `called`: the service calls the caller's telephone. */
    direction: z.enum(['calls', 'called']).default('calls'),
    /** Name or id; the first of the account when not given. */
    worker: Words.optional(),
    context: z.string().max(100_000).optional(),
    metadata: JsonObject.optional(),
    /** Of the caller's own, which answers them. Web calls only. */
    tools: z.array(ScenarioTool).max(20).optional(),
    caller: Caller.prefault({}),
    surroundings: Surroundings.prefault({}),
    turns: z.array(Turn).max(200).default([]),
    expect: Expectation.default({}),
  })
  .superRefine((scenario, context) => {
    const wrong = (path: string, message: string): void => context.addIssue({ code: 'custom', path: [path], message })
    const { line, direction, tools, turns, caller } = scenario
    if (direction === 'called' && line === 'web') wrong('direction', 'must be calls where the line is web')
    if (tools && line === 'sip') wrong('tools', 'must not be there where the line is sip')
    if (caller.role === undefined && turns.length === 0) wrong('turns', 'must be there for a caller without a role')
    if (caller.role !== undefined && turns.length > 0) wrong('turns', 'must not be there for a caller with a role')
  })
export type Scenario = z.infer<typeof Scenario>

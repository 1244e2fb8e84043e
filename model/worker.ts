/** Owns workers, the configured voice agents, and their configuration. docs/contract/rest.md "Worker configuration". */
import { z } from 'zod'
import { DisclosureText } from './disclosure.ts'
import { RecordingMode } from './leg.ts'
import { JsonObject } from './json.ts'
import { oneLine } from './one-line.ts'
import { schemaFlaws } from './schema-flaws.ts'

/** Each engine once. */
const maxFallbacks = 3

const Key = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,63}$/, 'must be lower-case letters, digits and _, starting with a letter')

export const Dimension = z.strictObject({
  key: Key,
  name: z.string().min(1).max(200),
  type: z.enum(['string', 'number', 'boolean', 'enum', 'date']),
  description: z.string().max(2000).optional(),
  options: z.array(z.string().min(1).max(200)).max(100).optional(),
  required: z.boolean().optional(),
})
export type Dimension = z.infer<typeof Dimension>

export const NextAction = z.strictObject({
  key: Key,
  name: z.string().min(1).max(200),
  description: z.string().max(2000).optional(),
  dataSchema: JsonObject.optional(),
})
export type NextAction = z.infer<typeof NextAction>

/** What all schemas of a worker may cost to look at: some tenths of a second at the most. */
const schemaSteps = 300_000

function checkSchemas(actions: readonly NextAction[], context: z.RefinementCtx): void {
  const budget = { steps: schemaSteps }
  for (const [at, { dataSchema }] of actions.entries())
    for (const { path, message } of dataSchema === undefined ? [] : schemaFlaws(dataSchema, budget))
      context.addIssue({ code: 'custom', path: [at, 'dataSchema', ...path], message })
}

export const LlmProvider = z.enum(['voice_provider_a', 'voice_provider_b', 'cascade', 'embedded'])
export type LlmProvider = z.infer<typeof LlmProvider>

/** What is stored on a worker and what a call.worker_request answer may override. Timeouts are seconds. Unknown keys are refused with their path. */
export const WorkerConfig = z.strictObject({
  voiceId: z.string().min(1).max(200).optional(),
  llmProvider: LlmProvider.optional(),
  /** Which engines take its place, in this order, when it cannot be had or is lost, also in the midst of a call. */
  fallbackProviders: z
    .array(LlmProvider)
    .max(maxFallbacks)
    .refine((providers) => new Set(providers).size === providers.length, 'must name each provider once')
    .optional(),
  llmTemperature: z.number().min(0).max(2).optional(),
  ringTimeout: z.number().min(1).max(300).optional(),
  firstSpeechTimeout: z.number().min(0).max(60).optional(),
  inboundStaticMessageEnabled: z.boolean().optional(),
  inboundStaticMessageText: z.string().max(2000).optional(),
  serviceDownRedirectEnabled: z.boolean().optional(),
  serviceDownRedirectNumber: z.string().max(32).refine(oneLine, 'must be one line').optional(),
  emailEnabled: z.boolean().optional(),
  /** Who is known by their number only may have changed what is stored about them (`person/update_caller`). Absent: they may not. */
  unverifiedCallerUpdatesEnabled: z.boolean().optional(),
  testModeEnabled: z.boolean().optional(),
  /** `interim`: call.transcript tells turns that may still change, too. */
  transcriptEvents: z.enum(['final', 'interim']).optional(),
  recordingChannelMode: RecordingMode.optional(),
  /** Absent: as the account has it, else true. */
  recordingEnabled: z.boolean().optional(),
  /** Said first, and to its end. */
  disclosureText: DisclosureText.optional(),
  dimensions: z.array(Dimension).max(100).optional(),
  nextActions: z.array(NextAction).max(100).superRefine(checkSchemas).optional(),
})
export type WorkerConfig = z.infer<typeof WorkerConfig>

export const workerConfigDefaults = {
  ringTimeout: 30,
  firstSpeechTimeout: 4,
  recordingChannelMode: 'mixed',
} as const satisfies WorkerConfig

type Settled = keyof typeof workerConfigDefaults
export type EffectiveConfig = Omit<WorkerConfig, Settled> & {
  [Key in Settled]: NonNullable<WorkerConfig[Key]>
}

/** What an account says for all of its workers; what a worker says goes first. */
export const accountDefaultsOf = ({ recordingEnabled }: Pick<WorkerConfig, 'recordingEnabled'>): WorkerConfig =>
  recordingEnabled === undefined ? {} : { recordingEnabled }

/** Later objects win key by key (a shallow merge); defaults stand behind all of them. */
export const effectiveConfigOf = (...layers: readonly WorkerConfig[]): EffectiveConfig =>
  Object.assign({}, workerConfigDefaults, ...layers) as EffectiveConfig

/** Owns workers, their effective configuration and their scripts as answers show them. docs/contract/rest.md "Workers" and "Worker configuration". */
import { z } from 'zod'
import type { AccountId, WorkerId } from './ids.ts'
import { Language } from './language.ts'
import { withoutNulls } from './without-nulls.ts'
import { PhoneNumber } from './phone-number.ts'
import { removable } from './removable.ts'
import { repeatedIn } from './repeated-names.ts'
import { effectiveConfigOf, WorkerConfig, type Dimension, type NextAction } from './worker.ts'

const WorkerType = z.strictObject({ id: z.string().min(1).max(100), name: z.string().min(1).max(200) })
export type WorkerType = z.infer<typeof WorkerType>

export const WorkerResource = z.object({
  id: z.string(),
  accountId: z.string(),
  name: z.string(),
  /** BCP 47. */
  language: z.string(),
  type: WorkerType.optional(),
  inboundPhoneNumber: z.string().optional(),
  outboundPhoneNumber: z.string().optional(),
  /** Additive, like the one below. */
  isActive: z.boolean(),
  maxConcurrentCalls: z.number().int().optional(),
})
export type WorkerResource = z.infer<typeof WorkerResource>

type Results = {
  readonly dimensions?: readonly Dimension[] | null | undefined
  readonly nextActions?: readonly NextAction[] | null | undefined
}

/**
 * By its key each is told apart, and an enum without options has no value that it could take. Asked of what is saved: what was stored before is
 * read on, and receivers of call.worker_request may send it back.
 */
function checkResults({ dimensions, nextActions }: Results, context: z.RefinementCtx): void {
  for (const [name, list] of Object.entries({ dimensions, nextActions }))
    for (const index of repeatedIn(list?.map(({ key }) => key) ?? []))
      context.addIssue({ code: 'custom', path: [name, index, 'key'], message: 'is the key of another one too' })
  for (const [index, { type, options = [] }] of dimensions?.entries() ?? [])
    if (type === 'enum' && options.length === 0)
      context.addIssue({
        code: 'custom',
        path: ['dimensions', index, 'options'],
        message: 'must name the values of an enum',
      })
}

/** Null takes a value away. */
const fields = {
  name: z.string().min(1).max(200),
  language: Language,
  type: WorkerType.nullable().optional(),
  inboundPhoneNumber: PhoneNumber.nullable().optional(),
  outboundPhoneNumber: PhoneNumber.nullable().optional(),
  isActive: z.boolean().optional(),
  maxConcurrentCalls: z.number().int().min(0).max(100_000).nullable().optional(),
  config: WorkerConfig.superRefine(checkResults).optional(),
}
export const WorkerRequest = z.strictObject(fields)
export type WorkerRequest = z.infer<typeof WorkerRequest>
const ConfigChange = z.strictObject(removable(WorkerConfig.shape)).superRefine(checkResults)
/** What is not named stays; `config` is merged key by key of its top level, null takes a key away. */
export const WorkerChange = z.strictObject({ ...fields, config: ConfigChange.optional() }).partial()
export type WorkerChange = z.infer<typeof WorkerChange>

/** What a call of this worker starts from, defaults filled in. Timeouts are seconds. */
export const WorkerConfigResource = z.object({
  workerId: z.string(),
  accountId: z.string(),
  language: z.string(),
  ...WorkerConfig.shape,
})
export type WorkerConfigResource = z.infer<typeof WorkerConfigResource>

export const OutboundCallScript = z.object({ id: z.string(), fileName: z.string() })
export type OutboundCallScript = z.infer<typeof OutboundCallScript>

export type WorkerFacts = {
  readonly id: WorkerId
  readonly accountId: AccountId
  readonly name: string
  readonly language: string
  readonly type: WorkerType | null
  readonly inboundPhoneNumber: string | null
  readonly outboundPhoneNumber: string | null
  readonly isActive: boolean
  /** Null: as many as the account may. */
  readonly maxConcurrentCalls: number | null
  readonly config: WorkerConfig
}

export function toWorker(worker: WorkerFacts): WorkerResource {
  const { id, accountId, name, language, isActive } = worker
  const { type, inboundPhoneNumber, outboundPhoneNumber, maxConcurrentCalls } = worker
  const optional = withoutNulls({ type, inboundPhoneNumber, outboundPhoneNumber, maxConcurrentCalls })
  return { id, accountId, name, language, isActive, ...optional }
}

/** `defaults`: what the account says for all of its workers. */
export function toWorkerConfig(
  { id, accountId, language, config }: WorkerFacts,
  defaults: WorkerConfig,
): WorkerConfigResource {
  return { ...effectiveConfigOf(defaults, config), workerId: id, accountId, language }
}

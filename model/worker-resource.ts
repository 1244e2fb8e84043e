/** Owns workers, their effective configuration and their scripts as answers show them. rest-api-and-webhooks.md, Worker. */
import { z } from 'zod'
import type { AccountId, WorkerId } from './ids.ts'
import { withoutNulls } from './without-nulls.ts'
import { effectiveConfigOf, WorkerConfig } from './worker.ts'

export const WorkerResource = z.object({
  id: z.string(),
  accountId: z.string(),
  name: z.string(),
  /** BCP 47. */
  language: z.string(),
  inboundPhoneNumber: z.string().optional(),
  outboundPhoneNumber: z.string().optional(),
})
export type WorkerResource = z.infer<typeof WorkerResource>

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
  readonly inboundPhoneNumber: string | null
  readonly outboundPhoneNumber: string | null
  readonly config: WorkerConfig
}

export function toWorker(worker: WorkerFacts): WorkerResource {
  const { id, accountId, name, language, inboundPhoneNumber, outboundPhoneNumber } = worker
  return { id, accountId, name, language, ...withoutNulls({ inboundPhoneNumber, outboundPhoneNumber }) }
}

export function toWorkerConfig({ id, accountId, language, config }: WorkerFacts): WorkerConfigResource {
  return { ...effectiveConfigOf(config), workerId: id, accountId, language }
}

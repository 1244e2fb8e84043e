/** Owns how long an account keeps what its calls leave, as its keys set it and answers show it. docs/contract/rest.md "Retention". */
import { z } from 'zod'

/** A century is for ever. */
export const RetentionDays = z.number().int().min(1).max(36_500)

/** Who got hold of a key must not be able to wipe what it did away. */
export const AuditLogDays = z.number().int().min(30).max(36_500)

const days = RetentionDays.nullable().optional()

/** What is not named stays; null: kept for ever. */
export const RetentionChange = z.strictObject({
  recordingDays: days,
  transcriptDays: days,
  callDays: days,
  auditLogDays: AuditLogDays.nullable().optional(),
})
export type RetentionChange = z.infer<typeof RetentionChange>

const count = z.number().int().nonnegative()

/** What was removed on a day, UTC. */
const RetentionReport = z.object({ day: z.string(), recordings: count, transcripts: count, calls: count })
export type RetentionReport = z.infer<typeof RetentionReport>

export const Retention = z.object({
  recordingDays: RetentionDays.optional(),
  transcriptDays: RetentionDays.optional(),
  callDays: RetentionDays.optional(),
  auditLogDays: AuditLogDays.optional(),
  /** Newest first, of the last 90 days on which anything was. */
  report: z.array(RetentionReport),
})
export type Retention = z.infer<typeof Retention>

/** Of an account: days, or null for ever. */
export type RetentionPolicy = {
  readonly recordingDays: number | null
  readonly transcriptDays: number | null
  readonly callDays: number | null
  readonly auditLogDays: number | null
}

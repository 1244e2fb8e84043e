/** Owns accounts as answers show them, and what an operator allows them. docs/contract/rest.md "Keys and accounts" and "Capacity". */
import { z } from 'zod'
import { toIso } from './clock.ts'
import { DestinationPrefix } from './destination.ts'
import type { AccountId } from './ids.ts'
import { PhoneNumber } from './phone-number.ts'
import { AuditLogDays, RetentionDays } from './retention.ts'

export const Account = z.object({
  id: z.string(),
  name: z.string(),
  slug: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type Account = z.infer<typeof Account>

export type AccountFacts = {
  readonly id: AccountId
  readonly name: string
  readonly slug: string
  readonly createdAt: number
  readonly updatedAt: number
}

export function toAccount({ id, name, slug, createdAt, updatedAt }: AccountFacts): Account {
  return { id, name, slug, createdAt: toIso(createdAt), updatedAt: toIso(updatedAt) }
}

/** What an account may do. The operator of the deployment sets it, no key does but what model/account-limits.ts lets owners change. */
export const AccountConfig = z.strictObject({
  /** Calls that may run at once; absent: as many as the deployment gives everybody. */
  maxConcurrentCalls: z.number().int().min(0).max(100_000).optional(),
  /** Outbound calls that may begin in one second; the others wait their turn. Absent: any number. */
  maxCallsPerSecond: z.number().min(0.001).max(1000).optional(),
  /** Minutes that outbound calls may talk in a day (UTC); running calls are not cut. Absent: any number. */
  dailyMinutes: z.number().int().min(0).max(10_000_000).optional(),
  /** Where calls and transfers may go, as beginnings of numbers: all of them. Absent: home, or where destination.ts lets everybody. */
  allowedDestinations: z.array(DestinationPrefix).max(1000).optional(),
  /** Calls and transfers go to the home country only, unless `allowedDestinations` says otherwise. Absent: everywhere. */
  homeCountryOnly: z.boolean().optional(),
  /** ISO 3166, two letters. Absent: that of the first number which the account gets; it is written here then. */
  homeCountry: z
    .string()
    .regex(/^[A-Z]{2}$/, 'must be two capital letters, like DE')
    .optional(),
  /** Where workers may pass callers on to besides their contacts. */
  allowedTransferNumbers: z.array(PhoneNumber).max(1000).optional(),
  /** A call whose voice engine cannot be started gets the embedded one, rather than to fail. Absent: it fails. */
  embeddedFallback: z.boolean().optional(),
  /** People of the account may listen to its running calls and take them over. Absent: nobody may. */
  supervisionEnabled: z.boolean().optional(),
  /** Whether calls of workers that do not say so themselves are recorded. Absent: they are. */
  recordingEnabled: z.boolean().optional(),
  /** Sound of its calls may be captured, with their packets. Absent: it may not. */
  captureSound: z.boolean().optional(),
  /** Whether an MCP client's calls wait for a user's confirmation. Absent: they do. The contract of MCP has the name so. */
  require_confirmation_for_outbound_calls: z.boolean().optional(),
  /** Days after the end of a call; absent: kept. Its keys set these as well: model/retention.ts. */
  recordingRetentionDays: RetentionDays.optional(),
  transcriptRetentionDays: RetentionDays.optional(),
  callRetentionDays: RetentionDays.optional(),
  auditLogRetentionDays: AuditLogDays.optional(),
})
export type AccountConfig = z.infer<typeof AccountConfig>

/** What a new account may, until the operator widens it: whoever steals its key earns little with it. docs/security.md "Toll fraud". */
export const newAccountLimits: AccountConfig = { homeCountryOnly: true, dailyMinutes: 120, maxCallsPerSecond: 1 }

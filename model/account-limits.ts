/** Owns what an account may, and what of it is used, as it is told to the account. docs/contract/rest.md "Limits". */
import { z } from 'zod'

const count = z.number().int().nonnegative()

export const AccountLimits = z.object({
  maxConcurrentCalls: count,
  runningCalls: count,
  maxCallsPerSecond: z.number().optional(),
  dailyMinutes: count.optional(),
  minutesToday: z.number(),
  homeCountryOnly: z.boolean(),
  homeCountry: z.string().optional(),
  allowedDestinations: z.array(z.string()).optional(),
  allowedTransferNumbers: z.array(z.string()),
  embeddedFallback: z.boolean(),
  recordingEnabled: z.boolean(),
  requireConfirmationForOutboundCalls: z.boolean(),
})
export type AccountLimits = z.infer<typeof AccountLimits>

/** The one that owners set themselves. */
export const AccountLimitsChange = z.strictObject({ requireConfirmationForOutboundCalls: z.boolean() })
export type AccountLimitsChange = z.infer<typeof AccountLimitsChange>

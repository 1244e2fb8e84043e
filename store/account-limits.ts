/** Owns what an account may, as the operator set it and by what counts where nothing was set, beside what of it is used at this moment. */
import type { AccountLimits, AccountLimitsChange } from '../model/account-limits.ts'
import type { AccountId } from '../model/ids.ts'
import { changeAccountConfig, findAccount, guessHomeCountry } from './accounts.ts'
import { countAllRunning, defaultLimit } from './call-capacity.ts'
import type { Sql } from './sql.ts'
import { talkedSince } from './telephony.ts'

const day = 24 * 3_600_000
const minute = 60_000

/** Null: there is no such account. */
export async function findAccountLimits(sql: Sql, accountId: AccountId, now: number): Promise<AccountLimits | null> {
  const [account, runningCalls, talked] = await Promise.all([
    findAccount(sql, accountId),
    countAllRunning(sql, accountId),
    talkedSince(sql, accountId, now - (now % day), now),
  ])
  if (!account) return null
  const { config } = account
  const homeCountry = config.homeCountry ?? (await guessHomeCountry(sql, accountId))
  const { maxCallsPerSecond, dailyMinutes, allowedDestinations } = config
  return {
    maxConcurrentCalls: config.maxConcurrentCalls ?? defaultLimit,
    runningCalls,
    ...(maxCallsPerSecond !== undefined && { maxCallsPerSecond }),
    ...(dailyMinutes !== undefined && { dailyMinutes }),
    minutesToday: Math.round((talked / minute) * 10) / 10,
    homeCountryOnly: config.homeCountryOnly ?? false,
    ...(homeCountry !== null && { homeCountry }),
    ...(allowedDestinations !== undefined && { allowedDestinations }),
    allowedTransferNumbers: config.allowedTransferNumbers ?? [],
    embeddedFallback: config.embeddedFallback ?? false,
    recordingEnabled: config.recordingEnabled ?? true,
    requireConfirmationForOutboundCalls: config.require_confirmation_for_outbound_calls ?? true,
  }
}

/** Null: there is no such account. */
export async function changeAccountLimits(
  sql: Sql,
  accountId: AccountId,
  { requireConfirmationForOutboundCalls: isRequired }: AccountLimitsChange,
  now: number,
): Promise<AccountLimits | null> {
  await changeAccountConfig(sql, accountId, { require_confirmation_for_outbound_calls: isRequired }, now)
  return findAccountLimits(sql, accountId, now)
}

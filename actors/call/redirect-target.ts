/** Owns where a caller goes when nobody here can talk with them. docs/contract/rest.md "Worker configuration" (serviceDownRedirect). */
import type { AccountId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { Telephony } from '../../model/telephony.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { readNumber } from '../../net/read-number.ts'
import { countryToRead } from '../../store/accounts.ts'
import type { Sql } from '../../store/sql.ts'

type Deps = { readonly sql: Sql; readonly log: Log; readonly refusalOf: Telephony['refusalOf'] }
type Redirecting = Pick<WorkerConfig, 'serviceDownRedirectEnabled' | 'serviceDownRedirectNumber'>

/** Null: there is no number for that, or none that this account may pass callers on to. */
export async function redirectTargetOf(
  { sql, log, refusalOf }: Deps,
  accountId: AccountId,
  { serviceDownRedirectEnabled, serviceDownRedirectNumber }: Redirecting,
): Promise<string | null> {
  if (!serviceDownRedirectEnabled || !serviceDownRedirectNumber) return null
  const country = await countryToRead(sql, accountId, [serviceDownRedirectNumber])
  const number = readNumber(serviceDownRedirectNumber, country)
  if (number === null) {
    log.warn('the number for the time that the voice service is down is no telephone number')
    return null
  }
  const refused = await refusalOf(accountId, number)
  if (refused) log.warn('the redirect of a caller was refused', { reason: refused.reason })
  return refused ? null : number
}

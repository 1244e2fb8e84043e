/**
 * Owns which telephone numbers an INVITE speaks of: whom it is for and who calls. RFC 3261 §19.1, RFC 3966 (tel), RFC 5806 (Diversion),
 * RFC 7044 (History-Info), RFC 3325 (P-Asserted-Identity), RFC 3323 (Privacy).
 */
import { readNational, type NumberFormat } from '../model/number-format.ts'
import { PhoneNumber } from '../model/phone-number.ts'
import { canonicalNumber } from '../net/read-number.ts'
import { readAddress } from './server/message/address.ts'
import { splitAt } from './server/message/header-text.ts'
import { readUri, subscriberOf } from './server/message/uri.ts'
import type { MessageIn, RequestIn } from './stack-types.ts'

const maxCandidates = 8
/** Text that is no number; it goes into logs and tables, so it is cut. */
const maxLength = 64

/**
 * E.164, or null. Bare digits are taken for an international number from ten on: shorter ones are extensions or national numbers, which
 * cannot be told from a foreign country's.
 */
export function e164Of(text: string): string | null {
  const dialed = text.replace(/[-.() ]/g, '')
  const international = /^00[1-9]\d*$/.test(dialed) ? `+${dialed.slice(2)}` : dialed
  const candidate = /^[1-9]\d{9,14}$/.test(international) ? `+${international}` : international
  return PhoneNumber.safeParse(candidate).success ? canonicalNumber(candidate) : null
}

/** The user of a SIP URI or the number of a tel URI, without parameters; null where there is none, or one that is nobody's name (`%00`). */
export function userOf(uri: string): string | null {
  const read = readUri(uri)
  const number = (read && subscriberOf(read)?.number.slice(0, maxLength)) || null
  return number === null || /\p{Cc}/u.test(number) || !number.isWellFormed() ? null : number
}

/** The addresses of a header that may stand several times. */
const usersIn = (message: MessageIn, header: string): string[] =>
  (splitAt(message.get(header) ?? '', ',') ?? []).flatMap((value) => {
    const address = readAddress(value)
    return address ? (userOf(address.uri) ?? []) : []
  })

/** What was dialed, as it stood: for people. */
export const calledAsWritten = (invite: RequestIn): string | null =>
  usersIn(invite, 'to')[0] ?? userOf(invite.uri) ?? null

export const callingAsWritten = (invite: MessageIn): string | null => usersIn(invite, 'from')[0] ?? null

/** Each number once, the best first: as E.164 where it can be read as such, and as it stood. */
export const calledNumbersOf = (invite: RequestIn): string[] =>
  readAll([
    ...usersIn(invite, 'to').slice(0, 1),
    ...requestUserOf(invite),
    ...partiesOf(invite),
    ...usersIn(invite, 'diversion'),
    ...usersIn(invite, 'history-info'),
  ])

/**
 * Of them those that say where the network delivered the call. The Request-URI first: To is what the caller wrote. Who passed a call on is none
 * of them: Diversion and History-Info name somebody else's number.
 */
export const dialedNumbersOf = (invite: RequestIn): string[] =>
  readAll([...requestUserOf(invite), ...usersIn(invite, 'to').slice(0, 1), ...partiesOf(invite)])

const requestUserOf = ({ uri }: RequestIn): string[] => [userOf(uri)].filter((user) => user !== null)

/** A registered line is called by its username; the network says here which number led to it (RFC 7315 §4.2). */
const partiesOf = (invite: RequestIn): string[] => usersIn(invite, 'p-called-party-id')

/** To and Request-URI mostly say the same: it is looked up in the plans once. */
function readAll(written: readonly string[]): string[] {
  const texts = [...new Set(written)]
  return [...new Set([...texts.flatMap((text) => e164Of(text) ?? []), ...texts])].slice(0, maxCandidates)
}

/**
 * E.164; null when it was withheld or is no such number. P-Asserted-Identity counts only from a trunk that is trusted to say it
 * (RFC 3325 §7): anybody can write one. `numberFormat`: of the trunk, which may write numbers as within its country.
 */
export function callerOf(
  invite: MessageIn,
  trustsIdentity: boolean,
  numberFormat: NumberFormat | null = null,
): string | null {
  if (isWithheld(invite)) return null
  const asserted = trustsIdentity ? assertedOf(invite, numberFormat) : null
  return asserted ?? firstNumberIn(usersIn(invite, 'from').slice(0, 1), numberFormat)
}

/** The number of P-Asserted-Identity, whoever wrote it; null: it tells none. */
export const assertedOf = (invite: MessageIn, numberFormat: NumberFormat | null): string | null =>
  firstNumberIn(usersIn(invite, 'p-asserted-identity'), numberFormat)

const firstNumberIn = (texts: readonly string[], numberFormat: NumberFormat | null): string | null =>
  texts.flatMap((text) => nationalOf(text, numberFormat) ?? e164Of(text) ?? [])[0] ?? null

function nationalOf(text: string, numberFormat: NumberFormat | null): string | null {
  const number = numberFormat && readNational(text, numberFormat)
  return number && canonicalNumber(number)
}

/** RFC 3323 §4.2, RFC 3325 §9.3: a caller who asks for privacy has no number here, even where the trunk tells one. */
export function isWithheld(invite: MessageIn): boolean {
  const asked = (invite.get('privacy') ?? '').toLowerCase().split(/[;,\s]+/)
  return asked.some((value) => value === 'id' || value === 'user' || value === 'header')
}

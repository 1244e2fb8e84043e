/**
 * Owns which facts of an inbound INVITE its call keeps. Bounded, because a stranger wrote them; without what tells who calls when the caller
 * asked for privacy. RFC 7433 (User-to-User), RFC 5806 (Diversion), RFC 3325 (P-Asserted-Identity), RFC 8224 (Identity).
 */
import { storableText } from '../../model/json.ts'
import type { SipFacts } from '../../model/sip-facts.ts'
import { calledAsWritten, isWithheld } from '../numbers.ts'
import { readAddress } from '../server/message/address.ts'
import { splitAt } from '../server/message/header-text.ts'
import { readUri, subscriberOf } from '../server/message/uri.ts'
import type { MessageIn, RequestIn } from '../stack-types.ts'

const maxHeaders = 32
const maxNameLength = 64
/** An Identity is a signed token of one or two thousand characters. */
const maxValueLength = 4_000
/** Of all headers together. */
const maxLength = 16_000
const maxTextLength = 500

/** What tells who calls. */
const identities = ['P-Asserted-Identity', 'P-Preferred-Identity', 'Remote-Party-ID']
const kept = ['User-to-User', 'Diversion', 'History-Info', 'Identity', 'P-Called-Party-ID', 'Referred-By', 'Privacy']

export function sipFactsOf(invite: RequestIn, trusted: boolean): SipFacts {
  const withheld = isWithheld(invite)
  const text = (name: string): string => storableText(invite.get(name) ?? '', maxTextLength)
  const called = calledAsWritten(invite)
  const verstat = verstatOf(invite)
  return {
    callId: text('call-id'),
    requestUri: storableText(invite.uri, maxTextLength),
    to: text('to'),
    ...(!withheld && { from: text('from') }),
    ...(called !== null && { called: storableText(called, maxTextLength) }),
    ...(verstat !== null && { verstat }),
    trusted,
    headers: headersOf(invite, withheld ? kept : [...identities, ...kept]),
  }
}

function headersOf(invite: RequestIn, known: readonly string[]): Record<string, string> {
  const own = Object.keys(invite.headers).filter((name) => /^x-./i.test(name) && name.length <= maxNameLength)
  const found: [string, string][] = []
  let left = maxLength
  for (const name of [...known, ...own]) {
    const value = invite.headers[name] ?? invite.get(name)
    if (value === undefined || found.length === maxHeaders) continue
    const text = storableText(value.trim(), maxValueLength)
    left -= name.length + text.length
    if (left < 0) break
    found.push([storableText(name, maxNameLength), text])
  }
  return Object.fromEntries(found)
}

/** A parameter of the number, of its URI or of the header: carriers do each. The asserted identity before From. */
export function verstatOf(invite: MessageIn): string | null {
  for (const header of ['p-asserted-identity', 'from']) {
    for (const value of splitAt(invite.get(header) ?? '', ',') ?? []) {
      const address = readAddress(value)
      const uri = address && readUri(address.uri)
      const params = [uri && subscriberOf(uri)?.params, uri?.params, address?.params]
      const found = params.map((each) => each?.get('verstat')).find(Boolean)
      if (found) return storableText(found, maxNameLength)
    }
  }
  return null
}

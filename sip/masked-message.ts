/**
 * Owns what of a SIP message may be written down: its start line, its headers and its SDP, without passwords and keys. Other bodies may hold keys that
 * a caller pressed, and are told by their size. Pure.
 */
import { ladderTextOf } from '../model/message-ladder.ts'
import { masked, maskedSdp } from '../net/masked-sdp.ts'
import { writeMessage } from './server/message/write-message.ts'
import { headerOf } from './server/message/header-fields.ts'
import type { SipMessage } from './server/message/message.ts'

/** Whole values: credentials, and what proves something to somebody. */
const secretHeaders = /^(?:(?:proxy-)?authorization|(?:proxy-)?authentication-info)$/i
/** Who a caller is that wants to be nobody; RFC 3323, RFC 3325. */
const identityHeaders = /^(?:p-asserted-identity|p-preferred-identity|remote-party-id|identity)$/i
/** Of accounts' own headers those whose names say that they are secret. */
const secretNames = /token|secret|passw|api-?key|cookie|auth/i
/** `sip:user:password@host`. RFC 3261 §19.1.1. */
const uriPassword = /(sips?:[^\s:@;>]{1,200}):[^\s@;>]{1,200}@/gi

export function maskedMessage(message: SipMessage): string {
  const privacy = headerOf(message, 'Privacy') ?? 'none'
  const isHidden = (name: string): boolean =>
    secretHeaders.test(name) ||
    (/^x-/i.test(name) && secretNames.test(name)) ||
    (!/^none$/i.test(privacy) && identityHeaders.test(name))
  const headers = message.headers.map(({ name, value }) => ({ name, value: isHidden(name) ? masked : value }))
  const text = writeMessage({ ...message, headers, body: Buffer.from(bodyOf(message)) }).toString()
  return ladderTextOf(text.replaceAll('\0', '·').replace(uriPassword, `$1:${masked}@`))
}

function bodyOf(message: SipMessage): string {
  const { body } = message
  if (body.length === 0) return ''
  if (!/^application\/sdp\b/i.test(headerOf(message, 'Content-Type') ?? ''))
    return `[${body.length} bytes that are no SDP]`
  return maskedSdp(Buffer.from(body).toString())
}

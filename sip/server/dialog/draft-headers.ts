/**
 * Owns completing what an app drafted: which headers are the server's own, which ones it adds when they are missing, and where the address
 * of the server stands in for `localhost`.
 */
import { isIP } from 'node:net'
import { addressOf } from '../message/address.ts'
import { headerOf, withHeader } from '../message/header-fields.ts'
import { hostText } from '../message/header-text.ts'
import type { HeaderField, SipMessage, SipRequest, SipResponse } from '../message/message.ts'
import { readSipUri } from '../message/uri.ts'
import type { Endpoint, Protocol } from '../transport/transport.ts'
import { seenAtHeader, viaHeader } from '../seen-at.ts'

/** Of every message: an app's word on them counts for nothing. */
const forTheServer = [seenAtHeader, viaHeader]
const alwaysOurs = ['Via', 'Record-Route', 'RSeq', 'Content-Length', 'Session-Expires', 'Min-SE', ...forTheServer]
const ofRequestsInDialogs = ['Route', 'Max-Forwards', 'From', 'To', 'Call-ID', 'CSeq']
const ofResponses = ['Route', 'From', 'To', 'Call-ID', 'CSeq', 'Timestamp']

type Draft = SipRequest | SipResponse

const without = (draft: Draft, names: readonly string[]): HeaderField[] =>
  draft.headers.filter(({ name }) => !alwaysOurs.includes(name) && !names.includes(name))

export const headersOfRequest = (draft: SipRequest): HeaderField[] => withContentType(draft, without(draft, []))
export const headersInDialog = (draft: SipRequest): HeaderField[] =>
  withContentType(draft, without(draft, ofRequestsInDialogs))
export const headersOfResponse = (draft: SipResponse): HeaderField[] =>
  withContentType(draft, without(draft, ofResponses))

/** A body must say what it is; a session description shows it by itself. */
export const lacksContentType = (draft: Draft): boolean =>
  draft.body.length > 0 && headerOf(draft, 'Content-Type') === null && !isDescription(draft.body)

function withContentType(draft: Draft, headers: HeaderField[]): HeaderField[] {
  if (draft.body.length === 0) return headers.filter(({ name }) => name !== 'Content-Type')
  if (headers.some(({ name }) => name === 'Content-Type')) return headers
  return [...headers, { name: 'Content-Type', value: 'application/sdp' }]
}

const isDescription = (body: Uint8Array): boolean => body[0] === 0x76 && body[1] === 0x3d && body[2] === 0x30

/** The session description of a message; null: it has none. */
export function descriptionIn(message: SipMessage): string | null {
  const type = headerOf(message, 'Content-Type')?.toLowerCase() ?? ''
  return message.body.length > 0 && type.startsWith('application/sdp') ? Buffer.from(message.body).toString() : null
}

/** What we understand, in requests and in the answers to them. RFC 3261 §20.5, §20.37. */
export const allowedMethods = [
  'INVITE',
  'ACK',
  'CANCEL',
  'BYE',
  'OPTIONS',
  'INFO',
  'UPDATE',
  'PRACK',
  'REFER',
  'NOTIFY',
]
export const supportedOptions = ['timer', '100rel']

/** Added unless the app says something else. */
export function withDefaults<Message extends Draft>(message: Message, defaults: readonly HeaderField[]): Message {
  const missing = defaults.filter(({ name }) => headerOf(message, name) === null)
  return missing.length === 0 ? message : { ...message, headers: [...message.headers, ...missing] }
}

export const capabilities: readonly HeaderField[] = [
  { name: 'Allow', value: allowedMethods.join(', ') },
  { name: 'Supported', value: supportedOptions.join(', ') },
]

/** By which a message leaves us, and how the peer reaches us there. */
export type Exit = { readonly protocol: Protocol; readonly external: Endpoint; readonly isSecure: boolean }

const hostPortOf = ({ external }: Exit): string => `${hostText(external.address)}:${external.port}`

/** `sips` is asked for by a `sips` Request-URI only: many phones that speak TLS refuse it. RFC 3261 §8.1.1.8. */
export function contactOf(exit: Exit): string {
  const transport = exit.isSecure || exit.protocol === 'udp' ? '' : `;transport=${exit.protocol}`
  return `<${exit.isSecure ? 'sips' : 'sip'}:${hostPortOf(exit)}${transport}>`
}

const localhost = /(sips?:[^@<>\s;,]+@)localhost(?::\d+)?(?=[;>?\s,]|$)/gi

/** `user@localhost` becomes the address we are reached by; a Contact of it says the transport as well. */
export function localized<Message extends Draft>(message: Message, exit: Exit): Message {
  if (!message.headers.some(({ value }) => value.includes('@localhost'))) return message
  const transport = exit.protocol === 'udp' ? '' : `;transport=${exit.protocol}`
  const identities = ['From', 'P-Asserted-Identity', 'P-Preferred-Identity']
  // From of an answer is the peer's, and goes back as it came (RFC 3261 §8.2.6.2).
  const isOurs = message.kind === 'request'
  const headers = message.headers.map(({ name, value }) => {
    if (isOurs && identities.includes(name)) return { name, value: value.replace(localhost, `$1${hostPortOf(exit)}`) }
    if (name !== 'Contact') return { name, value }
    const fresh = value.replace(localhost, `$1${hostPortOf(exit)}${transport}`)
    // Parameters of an address without `<>` would be those of the header.
    return { name, value: fresh !== value && !value.includes('<') ? `<${fresh}>` : fresh }
  })
  return { ...message, headers }
}

/** The name that a Contact of ours says in place of our address; null where it says an address. */
export function publicNameIn(message: SipMessage): string | null {
  const uri = addressOf(message, 'Contact')?.uri
  const host = uri === undefined ? null : (readSipUri(uri)?.host ?? null)
  return host === null || isIP(host) !== 0 || host === 'localhost' ? null : host
}

/** With our Contact, unless the app gave one. */
export const withContact = <Message extends Draft>(message: Message, exit: Exit): Message =>
  headerOf(message, 'Contact') === null ? withHeader(message, 'Contact', contactOf(exit)) : message

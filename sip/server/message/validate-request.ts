/**
 * Owns looking at a request that could be read: may it be worked on by a user agent, and if not, what is it answered? In the order of
 * RFC 3261 §8.2. Max-Forwards of 0 is no matter here: only who forwards refuses it (§16.3).
 */
import { readAddress, tagOf } from './address.ts'
import { headerOf, headersOf, valuesOf } from './header-fields.ts'
import { mediaTypeOf } from './header-text.ts'
import type { HeaderField, MessageFault, SipRequest } from './message.ts'
import { readUri, schemeOf } from './uri.ts'

export type UnderstoodRequests = {
  /** Methods that are worked on. */
  readonly methods: readonly string[]
  /** Option tags that a peer may require. */
  readonly options: readonly string[]
  /** Types of body by method; a method that is not named takes any. They are also what INVITE is answered with. */
  readonly bodies: Readonly<Record<string, readonly string[]>>
}

/** Known to a registry: they are not allowed here. Others are not known at all (501). §21.4.6, §21.5.2. */
const registered = new Set(
  'ACK BYE CANCEL INFO INVITE MESSAGE NOTIFY OPTIONS PRACK PUBLISH REFER REGISTER SUBSCRIBE UPDATE'.split(' '),
)

type Check = (request: SipRequest, understood: UnderstoodRequests) => MessageFault | null

const checks: readonly Check[] = [
  methodFault,
  schemeFault,
  numberFault,
  contactFault,
  requireFault,
  encodingFault,
  typeFault,
  acceptFault,
]

/** Null: it may be worked on. An ACK always may: it is never answered. */
export function validateRequest(request: SipRequest, understood: UnderstoodRequests): MessageFault | null {
  if (request.method === 'ACK') return null
  for (const check of checks) {
    const fault = check(request, understood)
    if (fault) return fault
  }
  return null
}

const fault = (status: MessageFault['status'], reason: string, headers: readonly HeaderField[] = []): MessageFault => ({
  status,
  reason,
  headers,
})

function methodFault({ method }: SipRequest, { methods }: UnderstoodRequests): MessageFault | null {
  if (methods.includes(method)) return null
  const allow = [{ name: 'Allow', value: methods.join(', ') }]
  return registered.has(method) ? fault(405, 'Method Not Allowed', allow) : fault(501, 'Not Implemented', allow)
}

/** §8.2.2.1; §19.1.1: a Request-URI holds no headers. */
function schemeFault({ uri }: SipRequest): MessageFault | null {
  const scheme = schemeOf(uri)
  if (scheme === null) return fault(400, 'Malformed Request-URI')
  if (!['sip', 'sips', 'tel'].includes(scheme)) return fault(416, 'Unsupported URI Scheme')
  const parts = readUri(uri)
  const isGood = parts !== null && (parts.scheme === 'tel' || parts.headers === null)
  return isGood ? null : fault(400, 'Malformed Request-URI')
}

/** Its absence is forgiven: RFC 2543 had none. Expires too large counts as the largest (§20.19), so it is not asked here. */
function numberFault(request: SipRequest): MessageFault | null {
  const values = headersOf(request, 'Max-Forwards')
  if (values.length > 1) return fault(400, 'More Than One Max-Forwards')
  return values.every((value) => /^\d+$/.test(value) && Number(value) <= 255)
    ? null
    : fault(400, 'Malformed Max-Forwards')
}

/** A dialog or a binding would be made of it. §8.1.1.8, §12.1.1, §10.3. Within a dialog who says none stays where it is (§12.2.1.1). */
function contactFault(request: SipRequest): MessageFault | null {
  const contacts = valuesOf(request, 'Contact')
  if (contacts.length === 0)
    return request.method === 'INVITE' && tagOf(request, 'To') === null ? fault(400, 'Missing Contact') : null
  const isStar = request.method === 'REGISTER' && contacts.length === 1 && contacts[0] === '*'
  if (isStar || contacts.every((contact) => readAddress(contact) !== null)) return null
  return fault(400, 'Malformed Contact')
}

/** Of a CANCEL it is ignored. Proxy-Require is for proxies. §8.2.2.3. */
function requireFault(request: SipRequest, { options }: UnderstoodRequests): MessageFault | null {
  if (request.method === 'CANCEL') return null
  const unknown = valuesOf(request, 'Require').filter((tag) => !options.includes(tag.toLowerCase()))
  return unknown.length === 0 ? null : fault(420, 'Bad Extension', [{ name: 'Unsupported', value: unknown.join(', ') }])
}

/** §8.2.3. */
function encodingFault(request: SipRequest): MessageFault | null {
  const isPlain = valuesOf(request, 'Content-Encoding').every((coding) => coding.toLowerCase() === 'identity')
  if (isPlain || request.body.length === 0) return null
  return fault(415, 'Unsupported Media Type', [{ name: 'Accept-Encoding', value: 'identity' }])
}

/** §8.2.3; a body that need not be understood says so (RFC 3204 §3, §20.11). */
function typeFault(request: SipRequest, { bodies }: UnderstoodRequests): MessageFault | null {
  const accepted = bodies[request.method]
  if (!accepted || request.body.length === 0) return null
  const isOptional = /;\s*handling\s*=\s*optional\b/i.test(headerOf(request, 'Content-Disposition') ?? '')
  const type = mediaTypeOf(headerOf(request, 'Content-Type') ?? '')
  if (isOptional || accepted.includes(type)) return null
  if (type === '') return fault(400, 'Missing Content-Type')
  return fault(415, 'Unsupported Media Type', [{ name: 'Accept', value: accepted.join(', ') }])
}

/** Could the answer to an INVITE be read at all? §20.1, §21.4.7. */
function acceptFault(request: SipRequest, { bodies }: UnderstoodRequests): MessageFault | null {
  const ranges = valuesOf(request, 'Accept').map(mediaTypeOf)
  const answers = bodies[request.method]
  if (request.method !== 'INVITE' || !answers || ranges.length === 0) return null
  const isFine = ranges.some((range) =>
    answers.some((type) => range === '*/*' || range === type || range === anyOf(type)),
  )
  return isFine ? null : fault(406, 'Not Acceptable')
}

const anyOf = (type: string): string => `${type.split('/')[0] ?? ''}/*`

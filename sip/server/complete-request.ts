/** Owns making a whole request of the one an app drafted outside of dialogs. RFC 3261 §8.1.1. */
import { tagIn } from './message/address.ts'
import { headerOf, withHeader } from './message/header-fields.ts'
import type { HeaderField, SipRequest } from './message/message.ts'
import { readCSeq } from './message/numbered-fields.ts'
import { withTag } from './message/response-to.ts'
import { capabilities, headersOfRequest, withDefaults } from './dialog/draft-headers.ts'
import { askForSession } from './dialog/session-timer.ts'

/** They tell where we can be reached. */
const contactIn = ['INVITE', 'SUBSCRIBE', 'REFER', 'REGISTER']

export type Numbers = {
  readonly newTag: () => string
  readonly newCallId: () => string
  /** Grows, so that requests of one Call-ID are in order whoever counts. */
  readonly nextSequence: () => number
  readonly sessionSeconds: number | null
}

/** Who asks for proof of an INVITE asks for it of each that refreshes the call, and the server has none to give: such a peer is to refresh it. */
export function completeRequest(draft: SipRequest, numbers: Numbers): SipRequest {
  const { method, uri, body } = draft
  const sequence = sequenceOf(draft) ?? numbers.nextSequence()
  const local = headerOf(draft, 'From') ?? '<sip:parley@localhost>'
  const remote = headerOf(draft, 'To') ?? `<${uri}>`
  const first: HeaderField[] = [
    { name: 'Max-Forwards', value: headerOf(draft, 'Max-Forwards') ?? '70' },
    { name: 'From', value: withTag(bracketed(local), numbers.newTag()) },
    { name: 'To', value: bracketed(remote) },
    { name: 'Call-ID', value: headerOf(draft, 'Call-ID') ?? numbers.newCallId() },
    { name: 'CSeq', value: `${sequence} ${method}` },
  ]
  const named = first.map(({ name }) => name)
  const others = headersOfRequest(draft).filter(({ name }) => !named.includes(name))
  const request: SipRequest = { kind: 'request', method, uri, headers: [...first, ...others], body }
  if (method !== 'INVITE') return request
  const weRefresh = ['Authorization', 'Proxy-Authorization'].some((name) => headerOf(draft, name) !== null)
    ? false
    : null
  const session = numbers.sessionSeconds === null ? [] : askForSession(numbers.sessionSeconds, weRefresh)
  return withDefaults(request, [...capabilities, ...session])
}

export const wantsContact = ({ method }: SipRequest): boolean => contactIn.includes(method)

const sequenceOf = (draft: SipRequest): number | null => readCSeq(headerOf(draft, 'CSeq') ?? '')?.number ?? null

/** An address without `<>` takes the parameters of its URI for its own, and a tag among them. */
function bracketed(value: string): string {
  if (value.includes('<')) return value
  const tag = tagIn(value)
  const uri = value.replace(/;tag=[^;]*/i, '')
  return `<${uri}>${tag === null ? '' : `;tag=${tag}`}`
}

/** The same request once more, as a new one. */
export const numbered = (request: SipRequest, sequence: number): SipRequest =>
  withHeader(request, 'CSeq', `${sequence} ${request.method}`)

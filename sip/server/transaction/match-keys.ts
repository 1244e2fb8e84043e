/** Owns which transaction a message belongs to. RFC 3261 §17.1.3 (clients), §17.2.3 (servers), §8.2.2.2 (merged requests). */
import { tagOf } from '../message/address.ts'
import { headerOf } from '../message/header-fields.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf } from '../message/numbered-fields.ts'
import { branchOf, magicCookie, topViaOf, type Via } from '../message/via.ts'

/** No header field holds a line break, so no two keys are alike by chance. */
const key = (...parts: readonly (string | number)[]): string => parts.join('\n')

export const clientKey = (branch: string, method: string): string => key(branch, method)

/** Null: a response to nothing of ours. */
export function clientKeyOf(response: SipResponse): string | null {
  const via = topViaOf(response)
  const branch = via && branchOf(via)
  const cseq = cseqOf(response)
  return branch && cseq ? clientKey(branch, cseq.method) : null
}

/**
 * `method`: of the transaction that is looked for, so `INVITE` for its ACK and CANCEL. Null: the request has no readable Via, and belongs to
 * nothing.
 */
export function serverKeyOf(request: SipRequest, method: string): string | null {
  const via = topViaOf(request)
  if (!via) return null
  const branch = branchOf(via)
  if (isUnique(branch)) return key(branch.toLowerCase(), sentBy(via), method)
  return key(method, sentBy(via), branch ?? '', request.uri, ...callParts(request))
}

/** The ACK of a peer without the magic cookie is told apart by the To tag of the response it acknowledges. §17.2.3. */
export function acknowledges(ack: SipRequest, response: SipResponse | null): boolean {
  const via = topViaOf(ack)
  return (via !== null && isUnique(branchOf(via))) || (response !== null && tagOf(ack, 'To') === tagOf(response, 'To'))
}

/** Two requests with the same key that are two transactions came by two ways and are one request. Null: within a dialog. */
export const mergeKeyOf = (request: SipRequest): string | null =>
  tagOf(request, 'To') === null ? key(...callParts(request), request.method) : null

const isUnique = (branch: string | null): branch is string =>
  branch !== null && branch.startsWith(magicCookie) && branch.length > magicCookie.length

const sentBy = ({ host, port }: Via): string => `${host.toLowerCase()} ${port ?? ''}`

const callParts = (request: SipRequest): (string | number)[] => [
  tagOf(request, 'From') ?? '',
  headerOf(request, 'Call-ID') ?? '',
  cseqOf(request)?.number ?? '',
]

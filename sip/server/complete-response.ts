/** Owns making an answer on the wire of the one an app drafted. RFC 3261 §8.2.6, §12.1.1. */
import type { Core } from './core.ts'
import { tagIn } from './message/address.ts'
import { headerOf, headersOf } from './message/header-fields.ts'
import { responseTo } from './message/response-to.ts'
import type { SipRequest, SipResponse } from './message/message.ts'
import type { ServerTransaction } from './transaction/transaction.ts'
import {
  capabilities,
  headersOfResponse,
  localized,
  withContact,
  withDefaults,
  type Exit,
} from './dialog/draft-headers.ts'

/** Methods whose 2xx tells where the sender of it can be reached. */
const contactInSuccess = ['INVITE', 'UPDATE', 'SUBSCRIBE', 'REFER', 'NOTIFY']

export function completeResponse(request: SipRequest, draft: SipResponse, toTag: string, exit: Exit): SipResponse {
  const { status, reason, body } = draft
  const makesDialog = request.method === 'INVITE' && status > 100 && status < 300
  const routes = makesDialog ? headersOf(request, 'Record-Route').map((value) => ({ name: 'Record-Route', value })) : []
  const headers = [...routes, ...headersOfResponse(draft)]
  const plain = responseTo(request, { status, reason, toTag, headers, body })
  const isSuccess = status >= 200 && status < 300
  const wantsContact = makesDialog || (isSuccess && contactInSuccess.includes(request.method))
  const located = localized(wantsContact ? withContact(plain, exit) : plain, exit)
  return isSuccess && ['INVITE', 'OPTIONS', 'UPDATE'].includes(request.method)
    ? withDefaults(located, capabilities)
    : located
}

/** By which the answer to a request leaves us. */
export const exitOf = (core: Pick<Core, 'externalOf'>, { request, flow }: ServerTransaction): Exit => ({
  protocol: flow.protocol,
  external: core.externalOf(flow.protocol, flow.remote),
  isSecure: /^sips:/i.test(request.uri),
})

/** The app may have chosen the tag of its side. */
export const tagWanted = (draft: SipResponse): string | null => tagIn(headerOf(draft, 'To'))

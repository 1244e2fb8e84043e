/** Owns what comes within a dialog: which requests an app gets to see, and its answers to them. RFC 3261 §12.2.2, §14.2, §15.1.2. */
import { hasTag } from '../message/header-fields.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf } from '../message/numbered-fields.ts'
import type { ServerTransaction } from '../transaction/transaction.ts'
import type { DialogAcceptance } from './dialog-acceptance.ts'
import type { DialogCell, DialogDeps, Endings } from './dialog-deps.ts'
import { withTargetOf } from './dialog-state.ts'
import { isTooShort, minSessionSeconds } from './session-timer.ts'

export type DialogArrivals = {
  receive(transaction: ServerTransaction): void
  /** The app's answer, complete but for what session timers add: answers it as it goes out. */
  respond(transaction: ServerTransaction, response: SipResponse): SipResponse
}

type Refusal = { readonly status: number; readonly headers?: SipRequest['headers'] }

const minSession = [{ name: 'Min-SE', value: String(minSessionSeconds) }]

export function createDialogArrivals(
  deps: DialogDeps,
  cell: DialogCell,
  acceptance: DialogAcceptance,
  endings: Endings,
): DialogArrivals {
  function receive(transaction: ServerTransaction): void {
    const { request, flow } = transaction
    const sequence = cseqOf(request)?.number ?? 0
    if (cell.phase === 'ended') return deps.refuse(transaction, 481)
    const last = cell.state.remoteSequence
    if (last !== null && sequence <= last) return deps.refuse(transaction, 500, retryAfter(0))
    cell.state = { ...cell.state, remoteSequence: sequence }
    cell.flow = flow
    if (request.method === 'BYE') return takeBye(transaction)
    if (cell.phase === 'ending') return deps.refuse(transaction, 481)
    if (request.method === 'INVITE' || request.method === 'UPDATE') return takeRefresh(transaction)
    deps.ask(transaction, cell)
  }

  /** The dialog is over whatever the app says; what it says goes back to the peer. */
  function takeBye(transaction: ServerTransaction): void {
    deps.ask(transaction, cell)
    if (cell.asked) deps.refuse(cell.asked, 487)
    endings.forget()
  }

  function takeRefresh(transaction: ServerTransaction): void {
    const { request } = transaction
    const refusal = refusalOf(cell, request, deps.random)
    if (refusal) return deps.refuse(transaction, refusal.status, refusal.headers)
    cell.state = withTargetOf(cell.state, request)
    cell.peerTakesUpdate = hasTag(request, 'Allow', 'UPDATE') || cell.peerTakesUpdate
    cell.asked = transaction
    deps.ask(transaction, cell)
  }

  function respond(transaction: ServerTransaction, response: SipResponse): SipResponse {
    const { request } = transaction
    const isSuccess = response.status >= 200 && response.status < 300
    if (response.status >= 200 && cell.asked === transaction) cell.asked = null
    if (isSuccess && request.method === 'INVITE') return acceptance.accept(transaction, response)
    const final = isSuccess && request.method === 'UPDATE' ? acceptance.agree(request, response) : response
    transaction.respond(final)
    return final
  }

  return { receive, respond }
}

/** RFC 3261 §14.2, RFC 3311 §5.2, RFC 4028 §9. */
function refusalOf(cell: DialogCell, request: SipRequest, random: () => number): Refusal | null {
  const isInvite = request.method === 'INVITE'
  const offers = isInvite || request.body.length > 0
  const soon = (): Refusal => ({ status: 500, headers: retryAfter(Math.floor(random() * 11)) })
  if (isTooShort(request)) return { status: 422, headers: minSession }
  if (cell.asked && (offers || cell.asked.request.method === 'UPDATE')) return soon()
  if (isInvite && cell.accepted?.invite.isAcknowledged() === false) return soon()
  return cell.asking && offers ? { status: 491 } : null
}

const retryAfter = (seconds: number): SipRequest['headers'] => [{ name: 'Retry-After', value: String(seconds) }]

/** Owns our 2xx to an INVITE of a dialog: what is agreed on with it, and that it is repeated until its ACK. RFC 3261 §13.3.1.4, RFC 4028 §9. */
import { withHeader } from '../message/header-fields.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf } from '../message/numbered-fields.ts'
import type { Flow } from '../transport/transport.ts'
import type { ServerTransaction } from '../transaction/transaction.ts'
import { createAcceptedInvite } from './accepted-invite.ts'
import { isAlive, type DialogCell, type DialogDeps, type Endings } from './dialog-deps.ts'
import { descriptionIn } from './draft-headers.ts'
import { answerSession } from './session-timer.ts'

export type DialogAcceptance = {
  /** Of an INVITE, the first of the dialog too: sent, and repeated until the ACK. Answers it as it goes out. */
  accept(transaction: ServerTransaction, response: SipResponse): SipResponse
  /** A 2xx to UPDATE, as it goes out; not sent. */
  agree(request: SipRequest, response: SipResponse): SipResponse
  acknowledged(ack: SipRequest, flow: Flow): void
}

export function createDialogAcceptance(deps: DialogDeps, cell: DialogCell, endings: Endings): DialogAcceptance {
  function agree(request: SipRequest, response: SipResponse): SipResponse {
    const { headers, timer } = answerSession(request)
    if (isAlive(cell)) cell.session.set(timer)
    cell.description = descriptionIn(response) ?? cell.description
    return headers.reduce((message, { name, value }) => withHeader(message, name, value), response)
  }

  function accept(transaction: ServerTransaction, response: SipResponse): SipResponse {
    cell.phase = 'confirmed'
    const final = agree(transaction.request, response)
    transaction.respond(final)
    const sendAgain = (): void => void transaction.respond(final)
    const invite = createAcceptedInvite({ clock: deps.clock, timing: deps.timing, sendAgain, lost })
    cell.accepted = { invite, transaction, sequence: cseqOf(transaction.request)?.number ?? 0 }
    return final
  }

  /** No ACK will come: a BYE that waited for it goes out, or one of ours. */
  function lost(): void {
    const byeWaits = cell.afterAck.length > 0
    cell.accepted = null
    settle()
    if (!byeWaits) endings.end('ACK timeout')
  }

  const settle = (): void => cell.afterAck.splice(0).forEach((action) => action())

  function acknowledged(ack: SipRequest, flow: Flow): void {
    const { accepted } = cell
    if (!accepted || accepted.sequence !== cseqOf(ack)?.number || !accepted.invite.acknowledged()) return
    const passage = { source: 'network', flow, transactionId: accepted.transaction.id, dialogId: cell.id } as const
    cell.app.tell(ack, { ...passage, isNew: false })
    settle()
  }

  return { accept, agree, acknowledged }
}

/** Owns the ACK of a 2xx to our INVITE: the app writes it, and it goes out again for each 2xx that comes again. RFC 3261 §13.2.2.4. */
import type { Reply } from '../control/app.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf } from '../message/numbered-fields.ts'
import type { DialogCell, DialogDeps } from './dialog-deps.ts'
import { requestIn } from './dialog-state.ts'
import { descriptionIn, headersInDialog } from './draft-headers.ts'

export type DialogAcks = {
  /** A 2xx to our INVITE, the first or again. False: it is a repetition. */
  answeredInvite(response: SipResponse): boolean
  /** Null: an ACK with nothing in it. */
  acknowledge(draft: SipRequest | null): Promise<Reply>
}

const noBody = new Uint8Array(0)
const nothing: Reply = { kind: 'refused', reason: 'nothing to acknowledge' }

/** `tooLate`: the app let 64*T1 pass. */
export function createDialogAcks(deps: DialogDeps, cell: DialogCell, tooLate: () => void): DialogAcks {
  function answeredInvite(response: SipResponse): boolean {
    const sequence = cseqOf(response)?.number ?? 0
    if (cell.answer?.sequence === sequence) {
      // It may be lost like any packet: the 2xx comes once more then.
      if (cell.answer.ack) deps.sendAck(cell.answer.ack, cell.flow).catch(() => undefined)
      return false
    }
    cell.answer?.stopWaiting()
    cell.answer = { sequence, ack: null, stopWaiting: deps.clock.after(64 * deps.timing.t1, tooLate) }
    return true
  }

  async function acknowledge(draft: SipRequest | null): Promise<Reply> {
    const { answer } = cell
    if (!answer || answer.ack) return nothing
    answer.stopWaiting()
    const headers = [...cell.credentials, ...(draft ? headersInDialog(draft) : [])]
    const parts = { method: 'ACK', sequence: answer.sequence, headers, body: draft?.body ?? noBody }
    answer.ack = requestIn(cell.state, parts)
    cell.description = (draft && descriptionIn(draft)) ?? cell.description
    try {
      const sending = deps.sendAck(answer.ack, cell.flow)
      cell.acking = sending
      const { sent, flow } = await sending
      return { kind: 'sent', message: sent, flow, transactionId: deps.newId(), dialogId: cell.id }
    } catch (error) {
      // The peer repeats its 2xx, and the ACK goes out again.
      deps.log.info('ACK could not be sent', { error })
      return { kind: 'refused', reason: 'the ACK could not be sent' }
    } finally {
      cell.acking = null
    }
  }

  return { answeredInvite, acknowledge }
}

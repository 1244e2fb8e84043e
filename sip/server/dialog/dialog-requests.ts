/** Owns what we send within a dialog: the app's requests and our own. RFC 3261 §12.2.1, §14.1, §15.1.1. */
import type { Reply } from '../control/app.ts'
import type { HeaderField, SipRequest, SipResponse } from '../message/message.ts'
import { cseqOf } from '../message/numbered-fields.ts'
import { responseTo } from '../message/response-to.ts'
import { isAlive, type DialogCell, type DialogDeps, type Endings } from './dialog-deps.ts'
import type { DialogSending } from './dialog-sending.ts'
import { requestIn } from './dialog-state.ts'
import { descriptionIn, headersInDialog } from './draft-headers.ts'

export type DialogRequests = {
  /** Any request of the app but ACK. */
  request(draft: SipRequest): Promise<Reply>
  /** `done` gets the final answer, the dialog has taken notice of it already. */
  sendOwn(
    method: string,
    headers: readonly HeaderField[],
    body: Uint8Array,
    done: (response: SipResponse) => void,
  ): void
}

/** In the words that drachtio-srf looks for. */
export const gone: Reply = { kind: 'refused', reason: 'unable to find dialog' }

export function createDialogRequests(
  deps: DialogDeps,
  cell: DialogCell,
  sending: DialogSending,
  endings: Endings,
): DialogRequests {
  async function request(draft: SipRequest): Promise<Reply> {
    if (draft.method === 'BYE') return sendBye(draft)
    if (!isAlive(cell)) return gone
    if (isGlare(cell, draft)) return answeredHere(deps, cell, draft)
    return toldAs(draft)
  }

  /** §15: who was called says BYE when the ACK is there, or when it is clear that none comes. */
  async function sendBye(draft: SipRequest): Promise<Reply> {
    if (!mayEnd(cell)) return gone
    if (cell.accepted?.invite.isAcknowledged() === false)
      await new Promise<void>((resolve) => cell.afterAck.push(resolve))
    if (!mayEnd(cell)) return gone
    endings.ending()
    return toldAs(draft)
  }

  /** Sends for the app, which hears of every answer. */
  async function toldAs(draft: SipRequest): Promise<Reply> {
    const transactionId = deps.newId()
    const { method, body } = draft
    const composed = sending.compose({
      method,
      body,
      headers: headersInDialog(draft),
      sequence: numberFor(cell, draft),
    })
    const { sent, flow } = await sending.dispatch(composed, {
      description: descriptionIn(draft),
      tell: (response, way) =>
        cell.app.tell(response, { source: 'network', flow: way, transactionId, dialogId: cell.id, isNew: false }),
    })
    return { kind: 'sent', message: sent, flow, transactionId, dialogId: cell.id }
  }

  return {
    request,
    sendOwn(method, headers, body, done) {
      const composed = sending.compose({ method, headers, body, sequence: cell.state.localSequence + 1 })
      const tell = (response: SipResponse): void => void (response.status >= 200 && done(response))
      sending
        .dispatch(composed, { description: null, tell })
        .catch((error: unknown) => deps.log.error('SIP request failed', { method, error }))
    },
  }
}

const mayEnd = ({ phase }: DialogCell): boolean => phase === 'confirmed' || phase === 'ending'

/** RFC 3261 §14.1, RFC 3311 §5.1: not while another offer waits for its answer, in whichever direction. */
function isGlare(cell: DialogCell, { method, body }: SipRequest): boolean {
  if (method !== 'INVITE' && method !== 'UPDATE') return false
  const offers = method === 'INVITE' || body.length > 0
  return cell.asking !== null || (offers && cell.asked !== null)
}

/** The app counts by itself when it answers a challenge. */
function numberFor(cell: DialogCell, draft: SipRequest): number {
  const wanted = cseqOf(draft)?.number ?? 0
  return Math.max(wanted, cell.state.localSequence + 1)
}

/** Not sent at all; the app reads it like an answer of the peer. */
function answeredHere(deps: DialogDeps, cell: DialogCell, draft: SipRequest): Reply {
  const { method, body } = draft
  const parts = { method, body, sequence: cell.state.localSequence + 1, headers: headersInDialog(draft) }
  const request = requestIn(cell.state, parts)
  const transactionId = deps.newId()
  const response = responseTo(request, { status: 491, reason: 'Request Pending', toTag: null })
  const passage = { source: 'network', flow: cell.flow, transactionId, dialogId: cell.id, isNew: false } as const
  // Behind the answer to the command.
  setImmediate(() => cell.app.tell(response, passage))
  return { kind: 'sent', message: request, flow: cell.flow, transactionId, dialogId: cell.id }
}

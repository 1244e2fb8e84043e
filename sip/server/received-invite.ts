/** Owns an INVITE of a new call until its final answer: who answers it, CANCEL, and who gives up. RFC 3261 §13.3. */
import type { App, Passage, Reply } from './control/app.ts'
import { completeResponse, exitOf, tagWanted } from './complete-response.ts'
import type { Core } from './core.ts'
import type { Dialog } from './dialog/dialog.ts'
import { alreadyAnswered } from './dialog/machine.ts'
import { hasTag, headerOf, valuesOf, withHeader } from './message/header-fields.ts'
import type { HeaderField, SipRequest, SipResponse } from './message/message.ts'
import { responseTo } from './message/response-to.ts'
import { phraseOf } from './reason-phrases.ts'
import { createRingTimers } from './ring-timers.ts'
import type { ServerTransaction } from './transaction/transaction.ts'

export type ReceivedInvite = {
  respond(draft: SipResponse): Promise<Reply>
  /** Over without the app's answer: refused, and the app told as of a CANCEL. */
  giveUp(status: number, cancel: SipRequest | null, headers?: readonly HeaderField[]): void
  /** The transaction is gone: no answer reaches the peer, and the app is told as of a CANCEL. */
  lost(): void
}

export function createReceivedInvite(
  core: Core,
  transaction: ServerTransaction,
  app: App,
  over: () => void,
): ReceivedInvite {
  const { request, flow, id: transactionId } = transaction
  const timers = createRingTimers({
    clock: core.clock,
    invite: request,
    silent: () => giveUp(503, null),
    tooLong: () => giveUp(487, null),
  })
  let isOver = false
  let tag = core.newTag()
  /** Made by the first answer that names our side. §12.1.1. */
  let dialog: Dialog | null = null

  async function respond(draft: SipResponse): Promise<Reply> {
    if (isOver) return alreadyAnswered
    timers.heard()
    // The app may choose the tag until one has been sent.
    if (!dialog) tag = tagWanted(draft) ?? tag
    const response = completeResponse(request, draft, tag, exitOf(core, transaction))
    if (draft.status === 100) return sent(response)
    if (draft.status >= 300) return refuse(response)
    dialog ??= core.receivedDialog(app, transaction, response)
    if (!dialog) return noDialog
    return draft.status < 200 ? ring(dialog, response) : accept(dialog, response)
  }

  /** RFC 3262 §3: reliably where the peer requires it always, where the app does if the peer knows it. */
  function ring(within: Dialog, response: SipResponse): Promise<Reply> {
    if (isReliable(request, response)) return within.answer(transaction, withHeader(response, 'Require', '100rel'))
    const plain = withoutReliability(response)
    timers.ring(() => void transaction.respond(plain))
    return within.answer(transaction, plain)
  }

  async function accept(within: Dialog, response: SipResponse): Promise<Reply> {
    const reply = await within.answer(transaction, response)
    if (reply.kind === 'sent') end()
    return reply
  }

  function refuse(response: SipResponse): Reply {
    // A 2xx may have been faster.
    if (!transaction.respond(response)) return alreadyAnswered
    end()
    dialog?.forget()
    return sent(response)
  }

  function giveUp(status: number, cancel: SipRequest | null, headers: readonly HeaderField[] = []): void {
    if (isOver) return
    const parts = { status, reason: phraseOf(status), toTag: tag, headers }
    transaction.respond(responseTo(request, parts))
    const passage: Passage = { source: 'network', flow, transactionId, dialogId: dialogId(), isNew: false }
    if (app.isOpen()) app.tell(cancel ?? cancelOf(request), passage)
    forget()
  }

  const dialogId = (): string => dialog?.id ?? ''
  const sent = (message: SipResponse): Reply => ({ kind: 'sent', message, flow, transactionId, dialogId: dialogId() })

  function end(): void {
    if (isOver) return
    isOver = true
    timers.stop()
    over()
  }

  function lost(): void {
    if (isOver) return
    const passage: Passage = { source: 'network', flow, transactionId, dialogId: dialogId(), isNew: false }
    if (app.isOpen()) app.tell(cancelOf(request), passage)
    forget()
  }

  function forget(): void {
    end()
    if (dialog?.isEarly()) dialog.forget()
  }

  return { respond, giveUp, lost }
}

const noDialog: Reply = { kind: 'refused', reason: 'no dialog can be made of this INVITE' }

const isReliable = (invite: SipRequest, response: SipResponse): boolean =>
  hasTag(invite, 'Require', '100rel') ||
  (hasTag(invite, 'Supported', '100rel') && hasTag(response, 'Require', '100rel'))

function withoutReliability(response: SipResponse): SipResponse {
  if (headerOf(response, 'Require') === null) return response
  const others = valuesOf(response, 'Require').filter((tag) => tag.toLowerCase() !== '100rel')
  return withHeader(response, 'Require', ...others)
}

/** The CANCEL that the peer would have sent. §9.1. */
function cancelOf(invite: SipRequest): SipRequest {
  const copied = invite.headers.filter(({ name }) => ['Via', 'From', 'To', 'Call-ID', 'Max-Forwards'].includes(name))
  const number = (headerOf(invite, 'CSeq') ?? '1').split(/\s/)[0] ?? '1'
  const headers = [...copied, { name: 'CSeq', value: `${number} CANCEL` }]
  return { kind: 'request', method: 'CANCEL', uri: invite.uri, headers, body: new Uint8Array(0) }
}

/** Owns an INVITE of a new call until its final answer: ringing, reliably where that is asked for, CANCEL, and who gives up. RFC 3261 §13.3, RFC 3262. */
import type { App, Passage, Reply } from './control/app.ts'
import { completeResponse, exitOf, tagWanted } from './complete-response.ts'
import type { Core } from './core.ts'
import type { Dialog } from './dialog/dialog.ts'
import { descriptionIn } from './dialog/draft-headers.ts'
import { createReliableProvisionals } from './dialog/reliable-provisionals.ts'
import { hasTag, headerOf, valuesOf, withHeader } from './message/header-fields.ts'
import type { HeaderField, SipRequest, SipResponse } from './message/message.ts'
import { responseTo } from './message/response-to.ts'
import { phraseOf } from './reason-phrases.ts'
import { createRingTimers } from './ring-timers.ts'
import type { ServerTransaction } from './transaction/transaction.ts'

export type ReceivedInvite = {
  /** Made by the first answer that names our side. */
  readonly dialog: () => Dialog | null
  respond(draft: SipResponse): Promise<Reply>
  /** Over without the app's answer: refused, and the app told as of a CANCEL. */
  giveUp(status: number, cancel: SipRequest | null, headers?: readonly HeaderField[]): void
  /** False: it acknowledges nothing. */
  prack(prack: SipRequest): boolean
  /** The transaction is gone. */
  forget(): void
}

export function createReceivedInvite(
  core: Core,
  transaction: ServerTransaction,
  app: App,
  over: () => void,
): ReceivedInvite {
  const { request, flow, id: transactionId } = transaction
  const ours = createOurSide(core, transaction, app)
  const ringing = createRinging(core, transaction, (status) => giveUp(status, null))
  let isOver = false

  async function respond(draft: SipResponse): Promise<Reply> {
    if (isOver) return alreadyAnswered
    ringing.heard()
    const response = completeResponse(request, draft, ours.tagFor(draft), exitOf(core, transaction))
    if (draft.status === 100) return sent(response)
    if (draft.status < 300 && !ours.dialogBy(response)) return noDialog
    if (draft.status < 200) return ring(response)
    if (draft.status < 300) return accept(response)
    transaction.respond(response)
    end()
    ours.dialog()?.forget()
    return sent(response)
  }

  function ring(response: SipResponse): Reply {
    const rung = ringing.send(response)
    // With a description that is sure to arrive the offer is answered: the peer may make another one.
    if (rung && hasTag(rung, 'Require', '100rel') && response.body.length > 0) ours.settled()
    return rung ? sent(rung) : { kind: 'refused', reason: 'too many provisional responses wait for PRACK' }
  }

  async function accept(response: SipResponse): Promise<Reply> {
    await ringing.acknowledged()
    const dialog = ours.dialog()
    if (isOver || !dialog) return alreadyAnswered
    end()
    return sent(dialog.accept(transaction, response))
  }

  function giveUp(status: number, cancel: SipRequest | null, headers: readonly HeaderField[] = []): void {
    if (isOver) return
    const parts = { status, reason: phraseOf(status), toTag: ours.tag(), headers }
    transaction.respond(responseTo(request, parts))
    const passage: Passage = { source: 'network', flow, transactionId, dialogId: dialogId(), isNew: false }
    if (app.isOpen()) app.tell(cancel ?? cancelOf(request), passage)
    forget()
  }

  const dialogId = (): string => ours.dialog()?.cell.id ?? ''
  const sent = (message: SipResponse): Reply => ({ kind: 'sent', message, flow, transactionId, dialogId: dialogId() })

  function end(): void {
    if (isOver) return
    isOver = true
    ringing.stop()
    ours.settled()
    over()
  }

  function forget(): void {
    end()
    if (ours.dialog()?.cell.phase === 'early') ours.dialog()?.forget()
  }

  return { dialog: ours.dialog, respond, giveUp, prack: ringing.prack, forget }
}

/** What is said before the final answer, and for how long. */
function createRinging(core: Core, transaction: ServerTransaction, giveUp: (status: number) => void) {
  const { request: invite } = transaction
  const { clock } = core
  const timers = createRingTimers({ clock, invite, silent: () => giveUp(503), tooLong: () => giveUp(487) })
  const transmit = (response: SipResponse): void => void transaction.respond(response)
  const provisionals = createReliableProvisionals({
    clock,
    t1: core.timing.t1,
    firstNumber: 1 + Math.floor(core.random() * 2 ** 30),
    invite,
    transmit,
    lost: () => giveUp(504),
  })
  return {
    heard: timers.heard,
    /** As it is or will be sent; null: too many wait for their PRACK. */
    send(response: SipResponse): SipResponse | null {
      if (isReliable(invite, response)) return provisionals.send(response)
      const plain = withoutReliability(response)
      transmit(plain)
      timers.ring(() => transmit(plain))
      return plain
    },
    prack: provisionals.acknowledge,
    /** RFC 3262 §3: the 2xx waits for the PRACK of what came before it. */
    acknowledged: (): Promise<void> =>
      provisionals.isClear() ? Promise.resolve() : new Promise((resolve) => provisionals.afterAll(resolve)),
    stop(): void {
      timers.stop()
      provisionals.stop()
    },
  }
}

/** Our tag, and the dialog that it makes. §12.1.1. */
function createOurSide(core: Core, transaction: ServerTransaction, app: App) {
  let tag = core.newTag()
  let dialog: Dialog | null = null
  return {
    tag: () => tag,
    /** The app may choose the tag as long as nobody has seen one. */
    tagFor: (draft: SipResponse): string => (dialog ? tag : (tag = tagWanted(draft) ?? tag)),
    dialog: () => dialog,
    dialogBy(response: SipResponse): Dialog | null {
      if (!dialog) {
        dialog = core.receivedDialog(app, transaction, response)
        // RFC 3311 §5.2: until we have answered its offer, the peer may make no other.
        if (dialog) dialog.cell.asked = transaction
      }
      if (dialog) dialog.cell.description = descriptionIn(response) ?? dialog.cell.description
      return dialog
    },
    settled(): void {
      if (dialog?.cell.asked === transaction) dialog.cell.asked = null
    },
  }
}

export const alreadyAnswered: Reply = { kind: 'refused', reason: 'the request has been answered already' }
const noDialog: Reply = { kind: 'refused', reason: 'no dialog can be made of this INVITE' }

/** RFC 3262 §3: where the peer requires it always, where the app does if the peer knows it. */
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

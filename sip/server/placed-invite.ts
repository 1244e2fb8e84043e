/**
 * Owns an INVITE of an app outside dialogs, from sending to the end of its transaction: the one 2xx that is taken, those of other branches
 * and those that come too late. RFC 3261 §9.1, §13.2.2; RFC 4028 §7.3.
 */
import type { App, Reply } from './control/app.ts'
import type { Core } from './core.ts'
import { numbered } from './complete-request.ts'
import type { Dialog } from './dialog/dialog.ts'
import { askForLonger } from './dialog/session-timer.ts'
import type { Order, Outgoing } from './send-request.ts'
import { createInviteBranches } from './invite-branches.ts'
import { addressOf } from './message/address.ts'
import { withHeader } from './message/header-fields.ts'
import type { HeaderField, SipRequest, SipResponse } from './message/message.ts'
import { cseqOf, sessionExpiresOf } from './message/numbered-fields.ts'
import { responseTo } from './message/response-to.ts'
import { phraseOf } from './reason-phrases.ts'
import type { Flow } from './transport/transport.ts'

export type PlacedInvite = {
  readonly app: App
  readonly dialogId: string
  send(): Promise<Reply>
  cancel(headers: readonly HeaderField[]): Reply
  /** The early dialog whose provisional response this PRACK is for. */
  dialogFor(prack: SipRequest): Dialog | null
  /** The app does not want it any more. True: a CANCEL says so. */
  abandon(): boolean
}

type Ask = {
  readonly id: string
  readonly app: App
  readonly request: SipRequest
  readonly nextHop: string | null
  /** Within a dialog that another process had. */
  readonly within: Pick<Order, 'peer' | 'client'>
  readonly over: () => void
}

/** Intervals a peer may ask for before it is refused. */
const maxLengthenings = 2

export function createPlacedInvite(core: Core, { id, app, request, nextHop, within, over }: Ask): PlacedInvite {
  const dialogId = core.dialogIdOf(request)
  const branches = createInviteBranches(core, app, dialogId)
  let invite = request
  let outgoing: Outgoing | null = null
  let lengthenings = 0
  /** By CANCEL, or because the app is gone. */
  let isGivenUp = false
  /** A final answer was told. */
  let isAnswered = false
  let isTrying = false

  /** Answers of an INVITE that was replaced by one with a longer interval are of no interest. */
  async function dispatch(): Promise<Outgoing> {
    const current = invite
    const sent = await core.send({
      request: current,
      nextHop,
      ...within,
      wantsContact: true,
      response: (response, flow) => void (invite === current && take(response, flow)),
      terminated: () => void (invite === current && over()),
    })
    outgoing = sent
    if (isGivenUp) sent.cancel([])
    return sent
  }

  function take(response: SipResponse, flow: Flow): void {
    if (response.status === 100) return takeTrying(response, flow)
    if (response.status < 200) return takeProvisional(response, flow)
    if (response.status < 300) return takeSuccess(response, flow)
    if (isAnswered) return
    if (response.status === 422 && !isGivenUp && lengthen(response)) return
    answered()
    tell(response, flow, '')
  }

  /** Once: somebody is at work, however long it takes until it rings. */
  function takeTrying(response: SipResponse, flow: Flow): void {
    if (!isTrying && !isAnswered) tell(response, flow, '')
    isTrying = true
  }

  function takeProvisional(response: SipResponse, flow: Flow): void {
    if (isAnswered) return
    const dialog = dialogOf(response, flow)
    if (branches.isNews(dialog, response)) tell(response, flow, dialog ? dialogId : '')
  }

  function takeSuccess(response: SipResponse, flow: Flow): void {
    const dialog = dialogOf(response, flow)
    // Too many branches: its 2xx comes until it is tired.
    if (!dialog || !dialog.succeeded(response, flow)) return
    const wasAnswered = isAnswered
    // Without a Contact nothing could be sent within the call.
    const isWanted = !wasAnswered && !isGivenUp && addressOf(response, 'Contact') !== null
    if (isWanted) core.dialogs.name(dialog)
    answered()
    if (isWanted) return tell(response, flow, dialogId)
    dialog.end(isGivenUp ? 'canceled' : 'not wanted', false)
    const status = isGivenUp ? 487 : 502
    const answer = { status, reason: phraseOf(status), toTag: core.newTag() }
    if (!wasAnswered) tell(responseTo(invite, answer), flow, '')
  }

  function answered(): void {
    isAnswered = true
    branches.forgetEarly()
  }

  // What was sent has our address where the app left it open.
  const dialogOf = (response: SipResponse, flow: Flow): Dialog | null =>
    branches.dialogOf({ invite: outgoing?.sent ?? invite, response, flow })

  function tell(response: SipResponse, flow: Flow, toldDialogId: string): void {
    const passage = { source: 'network', flow, transactionId: id, dialogId: toldDialogId, isNew: false } as const
    if (app.isOpen()) app.tell(response, passage)
  }

  /** RFC 4028 §7.3: once more with the interval the peer wants. False: it wants none that could be had. */
  function lengthen(response: SipResponse): boolean {
    const longer = lengthenings < maxLengthenings ? withLongerSession(invite, response) : null
    if (!longer) return false
    lengthenings += 1
    invite = longer
    branches.forgetEarly()
    dispatch().catch((error: unknown) => {
      core.log.error('SIP request failed', { error })
      over()
    })
    return true
  }

  return {
    app,
    dialogId,
    async send() {
      const { sent, flow } = await dispatch()
      return { kind: 'sent', message: sent, flow, transactionId: id, dialogId }
    },
    dialogFor: branches.acknowledgedBy,
    cancel(headers) {
      const sent = isAnswered || isGivenUp ? null : (outgoing?.cancel(headers) ?? null)
      if (!sent || !outgoing) return { kind: 'refused', reason: 'there is no INVITE to cancel' }
      isGivenUp = true
      return { kind: 'sent', message: sent, flow: outgoing.flow, transactionId: core.newId(), dialogId: '' }
    },
    abandon() {
      const isOpen = !isAnswered && !isGivenUp
      isGivenUp = true
      return isOpen && outgoing !== null && outgoing.cancel([]) !== null
    },
  }
}

/** Null: the peer does not say which interval it would take, or none was asked for. */
function withLongerSession(invite: SipRequest, response: SipResponse): SipRequest | null {
  const asked = sessionExpiresOf(invite)
  const fields = asked && askForLonger(asked, response)
  if (!fields) return null
  const longer = fields.reduce((request, { name, value }) => withHeader(request, name, value), invite)
  return numbered(longer, (cseqOf(invite)?.number ?? 0) + 1)
}

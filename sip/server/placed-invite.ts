/**
 * Owns an INVITE of an app outside dialogs, from sending to the end of its transaction: the one 2xx that is taken, those of other branches
 * and those that come too late. RFC 3261 §9.1, §13.2.2; RFC 4028 §7.3.
 */
import type { App, Reply } from './control/app.ts'
import type { Core } from './core.ts'
import { numbered } from './complete-request.ts'
import type { Dialog } from './dialog/dialog.ts'
import { wantedInterval } from './dialog/session-timer.ts'
import type { Outgoing } from './send-request.ts'
import { createInviteBranches, type InviteBranches } from './invite-branches.ts'
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
  readonly over: () => void
}

/** Intervals a peer may ask for before it is refused. */
const maxLengthenings = 2

/** How it stands with the INVITE. */
type Standing = {
  invite: SipRequest
  outgoing: Outgoing | null
  /** By CANCEL, or because the app is gone. */
  isGivenUp: boolean
  /** A final answer was told. */
  isAnswered: boolean
  lengthenings: number
}

const standingOf = (invite: SipRequest): Standing => ({
  invite,
  outgoing: null,
  isGivenUp: false,
  isAnswered: false,
  lengthenings: 0,
})

export function createPlacedInvite(core: Core, ask: Ask): PlacedInvite {
  const { id, app } = ask
  const dialogId = core.dialogIdOf(ask.request)
  const branches = createInviteBranches(core, app, dialogId)
  const standing = standingOf(ask.request)

  async function send(): Promise<Reply> {
    const outgoing = await dispatch()
    return { kind: 'sent', message: outgoing.sent, flow: outgoing.flow, transactionId: id, dialogId }
  }

  /** Answers of an INVITE that was replaced by one with a longer interval are of no interest. */
  async function dispatch(): Promise<Outgoing> {
    const { invite } = standing
    const isCurrent = (): boolean => standing.invite === invite
    const outgoing = await core.send({
      request: invite,
      nextHop: ask.nextHop,
      wantsContact: true,
      response: (response, flow) => void (isCurrent() && taking.take(response, flow)),
      terminated: () => void (isCurrent() && ask.over()),
    })
    standing.outgoing = outgoing
    if (standing.isGivenUp) outgoing.cancel([])
    return outgoing
  }

  function lengthen(response: SipResponse): boolean {
    const longer = standing.lengthenings < maxLengthenings ? withLongerSession(standing.invite, response) : null
    if (!longer) return false
    standing.lengthenings += 1
    standing.invite = longer
    branches.forgetEarly()
    dispatch().catch((error: unknown) => {
      core.log.error('SIP request failed', { error })
      ask.over()
    })
    return true
  }

  const tell = (response: SipResponse, flow: Flow, dialog: string): void => {
    if (app.isOpen()) app.tell(response, { source: 'network', flow, transactionId: id, dialogId: dialog, isNew: false })
  }
  const taking = createTaking({ core, standing, branches, dialogId, tell, lengthen })

  return {
    app,
    dialogId,
    send,
    dialogFor: branches.acknowledgedBy,
    cancel(headers) {
      const { outgoing } = standing
      const sent = standing.isAnswered || standing.isGivenUp ? null : (outgoing?.cancel(headers) ?? null)
      if (!sent || !outgoing) return { kind: 'refused', reason: 'there is no INVITE to cancel' }
      standing.isGivenUp = true
      return { kind: 'sent', message: sent, flow: outgoing.flow, transactionId: core.newId(), dialogId: '' }
    },
    abandon() {
      const isOpen = !standing.isAnswered && !standing.isGivenUp
      standing.isGivenUp = true
      return isOpen && standing.outgoing !== null && standing.outgoing.cancel([]) !== null
    },
  }
}

type TakingDeps = {
  readonly core: Core
  readonly standing: Standing
  readonly branches: InviteBranches
  readonly dialogId: string
  readonly tell: (response: SipResponse, flow: Flow, dialogId: string) => void
  /** RFC 4028 §7.3: once more with the interval the peer wants. False: it wants none that could be had. */
  readonly lengthen: (response: SipResponse) => boolean
}

/** What becomes of each answer. */
function createTaking({ core, standing, branches, dialogId, tell, lengthen }: TakingDeps) {
  // What was sent has our address where the app left it open.
  const dialogOf = (response: SipResponse, flow: Flow): Dialog | null =>
    branches.dialogOf({ invite: standing.outgoing?.sent ?? standing.invite, response, flow })

  function take(response: SipResponse, flow: Flow): void {
    if (response.status === 100) return
    if (response.status < 200) return takeProvisional(response, flow)
    if (response.status < 300) return takeSuccess(response, flow)
    if (standing.isAnswered) return
    if (response.status === 422 && !standing.isGivenUp && lengthen(response)) return
    standing.isAnswered = true
    branches.forgetEarly()
    tell(response, flow, '')
  }

  function takeProvisional(response: SipResponse, flow: Flow): void {
    if (standing.isAnswered) return
    const dialog = dialogOf(response, flow)
    if (branches.isNews(dialog, response)) tell(response, flow, dialog ? dialogId : '')
  }

  function takeSuccess(response: SipResponse, flow: Flow): void {
    const dialog = dialogOf(response, flow)
    // Too many branches: its 2xx comes until it is tired.
    if (!dialog || !dialog.succeeded(response, flow)) return
    const { isAnswered, isGivenUp } = standing
    // Without a Contact nothing could be sent within the call.
    if (!isAnswered && !isGivenUp && addressOf(response, 'Contact')) return takeCall(dialog, response, flow)
    standing.isAnswered = true
    branches.forgetEarly()
    dialog.end(isGivenUp ? 'canceled' : 'not wanted', false)
    const status = isGivenUp ? 487 : 502
    const answer = { status, reason: phraseOf(status), toTag: core.newTag() }
    if (!isAnswered) tell(responseTo(standing.invite, answer), flow, '')
  }

  function takeCall(dialog: Dialog, response: SipResponse, flow: Flow): void {
    standing.isAnswered = true
    core.dialogs.name(dialog)
    branches.forgetEarly()
    tell(response, flow, dialogId)
  }

  return { take }
}

/** Null: the peer does not say which interval it would take, or none was asked for. */
function withLongerSession(invite: SipRequest, response: SipResponse): SipRequest | null {
  const asked = sessionExpiresOf(invite)?.seconds
  const wanted = asked === undefined ? null : wantedInterval(response, asked)
  if (wanted === null) return null
  const longer = withHeader(withHeader(invite, 'Session-Expires', String(wanted)), 'Min-SE', String(wanted))
  return numbered(longer, (cseqOf(invite)?.number ?? 0) + 1)
}

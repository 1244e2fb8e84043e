/**
 * Owns one dialog that an INVITE made, from its first answer to its end: the parts of it, and how it ends by itself.
 * RFC 3261 §12, §15; RFC 4028 §10.
 */
import type { Cancel } from '../../../model/clock.ts'
import type { App } from '../control/app.ts'
import { hasTag } from '../message/header-fields.ts'
import { quoted } from '../message/header-text.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import type { Flow } from '../transport/transport.ts'
import { createDialogAcceptance, type DialogAcceptance } from './dialog-acceptance.ts'
import { createDialogAcks, type DialogAcks } from './dialog-acks.ts'
import { createDialogArrivals, type DialogArrivals } from './dialog-arrivals.ts'
import type { DialogCell, DialogDeps, Endings } from './dialog-deps.ts'
import { createDialogRequests, type DialogRequests } from './dialog-requests.ts'
import { createDialogSending, credentialsIn } from './dialog-sending.ts'
import { confirmedBy, requestIn, type DialogState } from './dialog-state.ts'
import { descriptionIn } from './draft-headers.ts'
import { createRefresh } from './session-refresh.ts'
import { agreedSession, createSessionTimer, type RunningSession } from './session-timer.ts'

export type Dialog = DialogArrivals &
  Pick<DialogAcceptance, 'accept' | 'acknowledged'> &
  DialogAcks &
  Pick<DialogRequests, 'request'> & {
    readonly cell: DialogCell
    /** A 2xx to our first INVITE. False: it is a repetition. */
    confirm(response: SipResponse): boolean
    /** BYE by us; `told`: the app hears of it as of a BYE that nobody sent. Idempotent. */
    end(reason: string, told: boolean): void
    /** No BYE. Idempotent. */
    forget(): void
  }

export type DialogSeed = {
  /** What the control protocol calls it. */
  readonly id: string
  readonly app: App
  /** Who sent the INVITE: `uac` is we. */
  readonly role: 'uac' | 'uas'
  readonly state: DialogState
  readonly flow: Flow
  readonly invite: SipRequest
}

const noBody = new Uint8Array(0)

export function createDialog(deps: DialogDeps, seed: DialogSeed): Dialog {
  const session = createSessionTimer({
    clock: deps.clock,
    refresh: () => refresh.begin(),
    expired: () => end('session expired', true),
  })
  const cell = cellOf(seed, session)
  const endings: Endings = { end: (reason) => end(reason, true), ending, forget }
  const acks = createDialogAcks(deps, cell, () => end('the app did not acknowledge', true))
  const requests = createDialogRequests(deps, cell, createDialogSending(deps, cell, acks, endings), endings)
  const acceptance = createDialogAcceptance(deps, cell, endings)
  const arrivals = createDialogArrivals(deps, cell, acceptance, endings)
  const refresh = createRefresh(deps, cell, requests, acks)

  let cancelEnding: Cancel = () => undefined

  function ending(): void {
    cancelEnding()
    cancelEnding = deps.clock.after(2 * 64 * deps.timing.t1, forget)
    cell.phase = 'ending'
    session.stop()
    refresh.stop()
  }

  function forget(): void {
    if (cell.phase === 'ended') return
    cell.phase = 'ended'
    cancelEnding()
    session.stop()
    refresh.stop()
    cell.accepted?.invite.stop()
    cell.answer?.stopWaiting()
    cell.afterAck.splice(0).forEach((action) => action())
    deps.ended(cell)
  }

  function end(reason: string, told: boolean): void {
    if (cell.phase !== 'confirmed') return
    // §13.2.2.4: a 2xx is acknowledged even when the call is not wanted.
    if (cell.answer && !cell.answer.ack) acks.acknowledge(null).catch(() => undefined)
    ending()
    const headers = [{ name: 'Reason', value: `SIP ;cause=200 ;text=${quoted(reason)}` }]
    if (told) tellOfBye(cell, headers)
    const bye = (): void => requests.sendOwn('BYE', headers, noBody, forget)
    // §15: who was called may not say BYE before the ACK.
    if (cell.accepted?.invite.isAcknowledged() === false) cell.afterAck.push(bye)
    else bye()
  }

  const confirm = (response: SipResponse): boolean => acks.answeredInvite(response) && confirmed(cell, response)
  return { ...arrivals, ...acceptance, ...acks, request: requests.request, cell, confirm, end, forget }
}

function cellOf(seed: DialogSeed, session: RunningSession): DialogCell {
  const { id, app, role, state, flow, invite } = seed
  return {
    id,
    app,
    role,
    state,
    flow,
    session,
    phase: 'early',
    credentials: credentialsIn(invite),
    description: role === 'uac' ? descriptionIn(invite) : null,
    peerTakesUpdate: role === 'uas' && hasTag(invite, 'Allow', 'UPDATE'),
    asking: null,
    asked: null,
    accepted: null,
    answer: null,
    acking: null,
    afterAck: [],
  }
}

function confirmed(cell: DialogCell, response: SipResponse): true {
  cell.phase = 'confirmed'
  cell.state = confirmedBy(cell.state, response)
  cell.peerTakesUpdate = hasTag(response, 'Allow', 'UPDATE')
  cell.session.set(agreedSession(response))
  return true
}

function tellOfBye(cell: DialogCell, headers: SipRequest['headers']): void {
  const sequence = cell.state.localSequence + 1
  const bye = requestIn(cell.state, { method: 'BYE', sequence, headers, body: noBody })
  const passage = { source: 'application', flow: cell.flow, transactionId: 'unsolicited', dialogId: cell.id } as const
  if (cell.app.isOpen()) cell.app.tell(bye, { ...passage, isNew: false })
}

/**
 * Owns a phone call from its 200 to its BYE: what the other side changes, asks and presses, and what we do ourselves within the dialog.
 * RFC 3261 §12, §14; RFC 3311 (UPDATE), RFC 6086 (INFO), RFC 3515 (REFER).
 */
import type { LegSignaling } from '../../model/rtp-transport.ts'
import type { DialogFacts } from '../../model/sip-dialog.ts'
import type { TrunkAccess } from '../../model/telephony.ts'
import { answerWith, capabilities, mediaWarning, type Extra } from '../answer-with.ts'
import type { CallDeps, LiveCall } from '../live-calls.ts'
import { chooserOf } from '../challenge-answers.ts'
import { requestWithin } from '../request-within.ts'
import { acceptingHeaders } from '../session-headers.ts'
import type { MessageIn, Reply, RequestIn, SeenFrom, SipDialog } from '../stack-types.ts'
import type { Acknowledgements } from './acknowledgements.ts'
import { authAt } from './attempt.ts'
import { identityUri, referTarget, shown, type Place } from './caller-id.ts'
import { endCauseOf } from './end-cause.ts'
import { keepDialog } from './keep-dialog.ts'
import { createKeysByInfo, keyIn, takesInfo } from './key-requests.ts'
import { createReferral } from './referral.ts'
import { sdpIn } from './sdp-in.ts'

export type TalkDeps = Pick<CallDeps, 'telephony' | 'clock' | 'log' | 'stack' | 'pins' | 'forget' | 'onRefreshed'> & {
  readonly live: LiveCall
  readonly dialog: SipDialog
  readonly acks: Acknowledgements
  readonly trunk: TrunkAccess
  /** Where the trunk's numbers live, for URIs that we write. */
  readonly place: Place
  /** Our number in this call. */
  readonly number: string
  /** What the other side wrote first: its INVITE, or its 200 to ours. */
  readonly first: MessageIn & SeenFrom
  /** Of a dialog that another process began; absent: `first` tells. */
  readonly held?: DialogFacts
}

export type Talk = Pick<LegSignaling, 'transfer' | 'sendDtmf'> & {
  /** BYE. Idempotent; nothing when the other side was first. */
  hangUp(reason: string | undefined): void
  /** The dialog cannot be reached now. */
  lost(): void
  /** Offer and answer have agreed on something new. */
  described(): void
  /** The dialog is whoever's goes on with it: no BYE. False: it stays here. */
  leave(): boolean
}

export function createTalk(deps: TalkDeps): Talk {
  const { live, dialog, clock, stack, trunk, place, number } = deps
  const { handlers } = live.leg
  let isOver = false
  const pressByInfo = takesInfo(deps.first)
    ? createKeysByInfo((options, done) => requestWithin(dialog, options, done))
    : null
  const referral = createReferral({
    clock,
    send: (headers, done) => requestWithin(dialog, { method: 'REFER', headers }, done),
    sound: () => (live.media.isHeld() ? null : live.media.line.packetsReceived()),
    alive: handlers.alive,
    transferred: (providerStatus) => handlers.transferred(providerStatus),
    failed(providerStatus) {
      book.staysHere()
      handlers.transferFailed(providerStatus)
    },
  })
  const book = keepDialog(deps)
  const over = () => {
    const wasOver = isOver
    isOver = true
    unfollow()
    if (!wasOver) book.over()
    return wasOver
  }
  const unfollow = deps.onRefreshed?.(dialog.id, (sdp) => followRefresh(deps, sdp, book.described)) ?? nothing
  dialog.auth ??= proofWithin(deps)

  answerRequests(deps, { notified: (notify) => referral.notified(notify), bye, ...book })
  function bye(request: RequestIn | undefined, reason: string): void {
    if (over() || referral.hungUp()) return
    referral.close()
    const isServers = request?.source === 'application'
    const endCause = endCauseOf(request)
    // The server says it in the place of a peer that is gone.
    if (isServers) handlers.disconnected('failed', reason, { endedBy: 'network', endCause })
    else handlers.disconnected('hung_up', hungUpText(request), { endCause })
  }

  return {
    hangUp(reason) {
      if (over()) return
      referral.close()
      stack.hangUp(dialog, reason)
    },
    lost() {
      if (over()) return
      referral.close()
      stack.orphaned(dialog.id)
      handlers.disconnected('failed', 'the connection to the SIP server was lost')
    },
    transfer(to) {
      const referredBy = identityUri(shown(number, trunk.settings), place.host)
      return book.passesOn(referral.refer(referTarget(to, trunk.settings, place), referredBy))
    },
    described: book.described,
    leave() {
      if (isOver || !deps.forget || !book.leave()) return false
      isOver = true
      unfollow()
      referral.close()
      deps.forget(dialog.id)
      return true
    },
    sendDtmf: (digits) => !isOver && pressByInfo !== null && pressByInfo(digits),
  }
}

const nothing = (): void => undefined

/** A peer that called us may ask for a password within its call, too. Absent: there is none for it. */
function proofWithin({ trunk, pins, first }: TalkDeps): SipDialog['auth'] {
  const password = first.source_address === undefined ? null : authAt(trunk, first.source_address, pins)
  return password ? chooserOf(password) : undefined
}

/** As a re-INVITE of the peer is followed; what cannot be used leaves everything as it was. */
function followRefresh({ live, log }: TalkDeps, sdp: string, described: () => void): void {
  const read = live.media.readAnswer(sdp)
  if ('refused' in read) return log.info('the answer to a refresh is not followed', { details: read.refused })
  live.media.use(read.session)
  described()
}

/** Why, where the other side says it: `Reason: Q.850;cause=16;text="Normal call clearing"`. */
const hungUpText = (bye: RequestIn | undefined): string => {
  const reason = bye?.get('reason')
  return reason === undefined ? 'the other side hung up' : `the other side hung up: ${reason.slice(0, 200)}`
}

type Heard = {
  readonly notified: (notify: MessageIn) => boolean
  readonly bye: (request: RequestIn | undefined, reason: string) => void
  /** We have agreed to what it asked; it may have moved with it. */
  readonly moved: (request: RequestIn) => void
  readonly described: () => void
}

function answerRequests(deps: TalkDeps, { notified, bye, moved, described }: Heard): void {
  const { dialog, live } = deps
  // ACK and UPDATE are told one turn late: an INVITE right behind an ACK must not overtake it.
  const agree = (request: RequestIn, reply: Reply) => {
    if (renegotiate({ ...deps, described }, request, reply)) moved(request)
  }
  const inTurn = (request: RequestIn, reply: Reply) => void setImmediate(() => agree(request, reply))
  dialog.on('destroy', (request, reason) => bye(request, reason ?? 'ended by the SIP server'))
  dialog.on('modify', inTurn)
  dialog.on('update', (request, reply) => {
    // Without an offer it refreshes the session and no more. RFC 3311 §5.2.
    if (sdpIn(request) !== '') return agree(request, reply)
    answerWith(reply, 200, { headers: acceptingHeaders(request) })
    moved(request)
  })
  dialog.on('info', (request, reply) => {
    answerWith(reply, 200)
    const key = keyIn(request)
    if (key !== null && !live.media.line.hearsKeys()) live.leg.dtmf(key)
  })
  dialog.on('notify', (request, reply) => answerWith(reply, notified(request) ? 200 : 481))
  dialog.on('options', (_request, reply) => answerWith(reply, 200, { headers: capabilities }))
  dialog.on('refer', (request, reply) => refuseReferral(deps, request, reply))
  for (const event of ['message', 'publish'] as const)
    dialog.on(event, (_request, reply) => answerWith(reply, 405, { headers: { Allow: capabilities.Allow } }))
}

/** re-INVITE, or UPDATE with an offer. False: what cannot be agreed on leaves everything as it was. RFC 3261 §14.2. */
function renegotiate(
  { live, acks, log, stack, trunk, described }: TalkDeps & Pick<Heard, 'described'>,
  request: RequestIn,
  reply: Reply,
): boolean {
  const refuse = (status: number, extra?: Extra): false => {
    answerWith(reply, status, extra)
    return false
  }
  const { media, leg } = live
  const offer = sdpIn(request)
  const contact = stack.contactOf(trunk.settings.publicName, request.protocol)
  const content = { headers: { ...acceptingHeaders(request), 'Content-Type': 'application/sdp', ...contact } }
  if (offer === null) return refuse(415, { headers: { Accept: capabilities.Accept } })
  // RFC 3311 §5.2, RFC 5407 §3.1.5. The embedded server asks this before us.
  if (acks.isOfferOpen()) return refuse(491)
  if (offer !== '') {
    const answer = media.answer(offer)
    if ('refused' in answer) return refuse(488, { headers: mediaWarning(answer.refused, answer.warning) })
    answerWith(reply, 200, { ...content, body: answer.sdp })
    media.signaledFrom(request.source_address)
    media.use(answer.session)
    return true
  }
  // The offer is ours then, and the answer comes in the ACK. RFC 3261 §14.1, RFC 3264 §4.
  acks.expect(request, true, (ack) => {
    const agreed = media.readAnswer(sdpIn(ack) ?? '')
    media.signaledFrom(ack.source_address)
    if ('session' in agreed) {
      media.use(agreed.session)
      return described()
    }
    log.warn('a re-INVITE was not answered in its ACK', { callId: live.callId, details: agreed.refused })
    leg.handlers.disconnected('failed', agreed.refused)
  })
  answerWith(reply, 200, { ...content, body: media.offer() })
  return true
}

/** It asks us to call somebody at our cost; and an agent's call has no second leg that could do it. */
function refuseReferral({ telephony, live, trunk }: TalkDeps, request: RequestIn, reply: Reply): void {
  answerWith(reply, 603)
  telephony.refused({
    direction: 'outbound',
    reason: 'destination_not_allowed',
    details: 'the other side asked to be transferred by REFER; only the worker transfers calls',
    sipStatus: 603,
    accountId: trunk.accountId,
    trunkId: trunk.id,
    callId: live.callId,
    address: `${request.source_address}:${request.source_port}`,
    calling: null,
    called: (request.get('refer-to') ?? '').slice(0, 100) || null,
  })
}

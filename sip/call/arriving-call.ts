/**
 * Owns inbound calls until they are answered: admitted, described, stored, ringing, and then answered by the actor's word. Afterwards the
 * talk goes on in talk.ts. RFC 3261 §13.3, RFC 3264.
 */
import type { CallId } from '../../model/ids.ts'
import type { InboundRoute, RefusedArrival } from '../../model/telephony.ts'
import { answerWith, mediaWarning } from '../answer-with.ts'
import type { CallDeps, LiveCall } from '../live-calls.ts'
import { callerOf } from '../numbers.ts'
import type { Reply, RequestIn } from '../stack-types.ts'
import { createAcknowledgements } from './acknowledgements.ts'
import type { Admission, Arrived } from './admit-arrival.ts'
import { isCallerVerified } from './caller-proof.ts'
import { placeOfCaller, sendElsewhere } from './elsewhere.ts'
import { endCauseOf } from './end-cause.ts'
import { answerTo } from './outcome-of-answer.ts'
import type { PhoneCallLine } from '../../media/plane/media-plane.ts'
import { createPhoneMedia, wishesOf, type Agreed, type PhoneMedia } from './phone-media.ts'
import { sdpIn } from './sdp-in.ts'
import { sipFactsOf } from './sip-facts.ts'
import { createTalk, type Talk, type TalkDeps } from './talk.ts'

export type ArrivalDeps = CallDeps & {
  readonly admission: Admission
  readonly isStopping: () => boolean
  /** Ms that a caller may hear the ringing. */
  readonly answerWithin: number
  /** INVITEs that are looked at, at once. */
  readonly maxPending: number
}

export type Arrivals = {
  /** Never throws. */
  arrive(invite: RequestIn, reply: Reply): void
  pending(): number
}

const retryAfter = { 'Retry-After': '10' }

export function createArrivals(deps: ArrivalDeps): Arrivals {
  let pending = 0

  async function take(arrived: Arrived): Promise<void> {
    try {
      await takeIn(deps, arrived)
    } catch (error) {
      deps.log.error('an inbound call could not be taken', { error })
      answerWith(arrived.reply, 503, { headers: retryAfter })
    } finally {
      pending -= 1
    }
  }

  return {
    arrive(invite, reply) {
      const arrived = { invite, reply }
      const reason = reasonNotToLook(deps, pending)
      if (reason) return refuseUnseen(deps, arrived, reason)
      const overload = deps.telephony.overload?.(null)
      if (overload) return refuseOverload(deps, arrived, overload)
      pending += 1
      void take(arrived)
    },
    pending: () => pending,
  }
}

type Unseen = Pick<RefusedArrival, 'reason' | 'details'>

function reasonNotToLook({ isStopping, maxPending }: ArrivalDeps, pending: number): Unseen | null {
  if (isStopping()) return { reason: 'service_stopping', details: 'the service is stopping' }
  if (pending < maxPending) return null
  return { reason: 'too_many_calls_per_second', details: 'too many calls arrive at once for this node' }
}

const refuseUnseen = ({ admission }: ArrivalDeps, arrived: Arrived, unseen: Unseen): void =>
  admission.refuse(arrived, { ...unseen, accountId: null, trunkId: null, sipStatus: 503 }, retryAfter)

const refuseOverload = ({ admission }: ArrivalDeps, arrived: Arrived, refused: RefusedArrival): void =>
  admission.refuse(arrived, refused, { 'Retry-After': String(refused.retryAfterSeconds ?? retryAfter['Retry-After']) })

async function takeIn(deps: ArrivalDeps, arrived: Arrived): Promise<void> {
  const cancel = watchCancel(arrived.invite)
  const turn = await deps.telephony.turn?.()
  if (turn && 'sipStatus' in turn) return cancel.isCanceled() ? undefined : refuseOverload(deps, arrived, turn)
  const done = turn?.done ?? (() => undefined)
  if (cancel.isCanceled()) return done()
  const letting = letIn(deps, arrived, cancel)
  // It is set up when its actor has begun.
  letting.then(({ begun }) => begun.finally(done), done)
  await letting
}

type Cancel = ReturnType<typeof watchCancel>
type LetIn = { readonly begun: Promise<void> }
const notLetIn: LetIn = { begun: Promise.resolve() }

async function letIn(deps: ArrivalDeps, arrived: Arrived, cancel: Cancel): Promise<LetIn> {
  const { invite, reply } = arrived
  const route = await deps.admission.admit(invite, reply)
  if (!route || cancel.isCanceled()) return notLetIn
  const overload = deps.telephony.overload?.(route)
  if (overload) {
    refuseOverload(deps, arrived, overload)
    return notLetIn
  }
  const offer = sdpIn(invite)
  const wishes = wishesOf(route.trunk.settings, offer === '' ? 'offer' : 'answer', invite.protocol)
  const media = createPhoneMedia(await deps.plane.openPhone(), wishes)
  media.signaledFrom(invite.source_address)
  try {
    const described = describe(media, deps, { arrived, route, offer })
    const callId = described && !cancel.isCanceled() ? await store(deps, arrived, route) : null
    if (described && callId !== null)
      return { begun: ring(deps, { ...arrived, cancel, route, media, agreed: described.agreed, callId }) }
    await media.line.close('refused')
    return notLetIn
  } catch (error) {
    await media.line.close('failed')
    throw error
  }
}

/** The CANCEL is answered by the server, and the INVITE with 487. RFC 3261 §9.2. */
function watchCancel(invite: RequestIn) {
  let isCanceled = false
  let cause: string | null = null
  let action = (_cause: string | null) => undefined as void
  invite.on('cancel', (cancel) => {
    isCanceled = true
    cause = endCauseOf(cancel)
    action(cause)
  })
  return {
    isCanceled: () => isCanceled,
    whenCanceled(told: (cause: string | null) => void) {
      action = told
      if (isCanceled) told(cause)
    },
  }
}

/** What we would answer; `agreed` is null when the offer will be ours. Null: it cannot be answered, and has been refused. */
function describe(
  media: PhoneMedia,
  { admission }: ArrivalDeps,
  { arrived, route, offer }: { arrived: Arrived; route: InboundRoute; offer: string | null },
): { readonly agreed: Agreed | null } | null {
  const { accountId, id: trunkId } = route.trunk
  const refuse = (sipStatus: number, details: string, headers: Record<string, string>) => {
    admission.refuse(arrived, { reason: 'not_acceptable_here', details, accountId, trunkId, sipStatus }, headers)
    return null
  }
  if (offer === '') return { agreed: null }
  if (offer === null) return refuse(415, 'the body is no SDP', { Accept: 'application/sdp' })
  const answer = media.answer(offer)
  return 'refused' in answer
    ? refuse(488, answer.refused, mediaWarning(answer.refused, answer.warning))
    : { agreed: answer }
}

async function store(
  { telephony, admission }: ArrivalDeps,
  arrived: Arrived,
  route: InboundRoute,
): Promise<CallId | null> {
  const { trustsIdentity = false, numberFormat = null } = route.trunk.settings
  const fromNumber = callerOf(arrived.invite, trustsIdentity, numberFormat)
  const received = await telephony.receive({
    route,
    fromNumber,
    address: arrived.invite.source_address,
    isVerified: isCallerVerified(arrived.invite, route.trunk.settings),
    sip: sipFactsOf(arrived.invite, trustsIdentity),
  })
  if ('callId' in received) return received.callId
  const { redirectTo, retryAfterSeconds } = received
  if (redirectTo !== undefined) sendElsewhere({ ...arrived, route }, redirectTo)
  const isBusy = received.sipStatus === 503 && retryAfterSeconds === undefined
  admission.refuse(arrived, received, isBusy ? retryAfter : {})
  return null
}

type Ringing = Arrived & {
  readonly cancel: Cancel
  readonly route: InboundRoute
  readonly media: PhoneMedia<PhoneCallLine>
  readonly agreed: Agreed | null
  readonly callId: CallId
}

/** From here on the call is stored, so it ends in order whatever happens: its leg says so. Resolves when its actor has begun, or cannot. */
function ring(deps: ArrivalDeps, call: Ringing): Promise<void> {
  const { liveCalls, log } = deps
  const { callId, media, reply, route } = call
  const phase = createPhase()
  const live = liveCalls.open(deps, {
    callId,
    media,
    connectWithin: deps.answerWithin,
    signaling: {
      answer: () => phase.answer(() => answer(deps, call, { live, phase })),
      transfer: (to) => phase.talk()?.transfer(to) ?? Promise.resolve(redirect(call, { live, phase, to })),
      sendDtmf: (digits) => phase.talk()?.sendDtmf(digits) ?? false,
    },
    hangUp(reason) {
      if (phase.end() === 'ringing') answerBusy(reply, reason)
      phase.talk()?.hangUp(reason)
    },
    lost({ leg }) {
      const talk = phase.talk()
      if (talk) return talk.lost()
      phase.end()
      leg.handlers.disconnected('failed', 'the connection to the SIP server was lost')
    },
    leave: () => phase.talk()?.leave() ?? false,
  })
  const sipCallId = call.invite.get('call-id')
  if (sipCallId !== undefined) live.signaledAs(sipCallId)
  const personal = { address: call.invite.source_address, sipCallId }
  log.info('a call arrived', { callId, trunkId: route.trunk.id, personal })
  answerWith180(reply, contactIn(deps, call))
  call.cancel.whenCanceled((endCause) => {
    phase.end()
    live.leg.handlers.disconnected('hung_up', 'the caller hung up before the answer', { endCause })
  })
  return begin(deps, live).catch((error: unknown) => {
    // It is stored all the same: the search for orphans ends it.
    log.error('an inbound call did not begin', { callId, error })
    void live.leg.close('failed')
  })
}

async function begin({ bus, telephony }: ArrivalDeps, { leg, callId }: LiveCall): Promise<void> {
  // The actor speaks to the leg at once, perhaps from another process.
  await leg.opened
  await bus.flush()
  if (!(await telephony.begin(callId))) await leg.close('failed')
}

function answerWith180(reply: Reply, headers: Record<string, string>): void {
  if (!reply.finalResponseSent) reply.send(180, undefined, { headers })
}

const contactIn = ({ stack }: ArrivalDeps, { invite, route }: Ringing): Record<string, string> => ({
  ...stack.contactOf(route.trunk.settings.publicName, invite.protocol),
})

const answerBusy = (reply: Reply, reason: string | undefined): void => {
  const { status, reason: words } = answerTo(reason)
  answerWith(reply, status, { reason: words })
}

/** ringing → answering → talking, and over from anywhere. */
type Phase = ReturnType<typeof createPhase>

function createPhase() {
  let state: 'ringing' | 'answering' | 'over' = 'ringing'
  let talk: Talk | null = null
  return {
    /** Once. */
    answer(action: () => void) {
      if (state !== 'ringing') return
      state = 'answering'
      action()
    },
    /** What it was before. */
    end() {
      const before = state
      state = 'over'
      return before
    },
    isOver: () => state === 'over',
    talk: () => talk,
    talking: (begun: Talk) => void (talk = begun),
  }
}

const unacknowledged = { endedBy: 'network' } as const

type Answering = { readonly live: LiveCall; readonly phase: Phase }

/** 200 with our answer, or with our offer where the INVITE had none; connected when the ACK is there. RFC 3261 §13.3.1.4. */
function answer(deps: ArrivalDeps, call: Ringing, { live, phase }: Answering): void {
  const { media, agreed } = call
  const { handlers } = live.leg
  if (agreed) media.use(agreed.session)
  const content = { sdp: agreed?.sdp ?? media.offer(), headers: contactIn(deps, call) }
  deps.stack.accept(call.invite, call.reply, content, (accepted) => {
    if ('details' in accepted) return handlers.disconnected('failed', accepted.details, unacknowledged)
    const { dialog } = accepted
    let isAcknowledged = false
    // Before the talk hears of it: a BYE proves as much as the ACK that was lost before it (RFC 3261 §15), and one right behind the ACK
    // overtakes it in the library, which has noted what the ACK said.
    dialog.on('destroy', (bye) => {
      if (isAcknowledged || phase.isOver() || bye?.source !== 'network') return
      if (agreed || dialog.remote.sdp) acknowledged(live, agreed, dialog.remote.sdp ?? '')
    })
    const acks = createAcknowledgements(dialog)
    const talk = startTalk(deps, call, { live, dialog, acks })
    phase.talking(talk)
    if (phase.isOver()) return talk.hangUp('canceled')
    acks.expect(call.invite, agreed === null, (ack) => {
      isAcknowledged = true
      acknowledged(live, agreed, sdpIn(ack))
      talk.described()
    })
  })
}

type TalkParts = Pick<TalkDeps, 'live' | 'dialog' | 'acks'>

function startTalk(deps: ArrivalDeps, call: Ringing, parts: TalkParts): Talk {
  const { route, invite } = call
  return createTalk({
    ...deps,
    ...parts,
    trunk: route.trunk,
    place: placeOfCaller(call),
    number: route.toNumber,
    first: invite,
    log: deps.log.with({ callId: parts.live.callId }),
  })
}

function acknowledged({ leg, media }: LiveCall, agreed: Agreed | null, body: string | null): void {
  if (agreed) return leg.handlers.connected('200 OK')
  const read = media.readAnswer(body ?? '')
  if ('refused' in read)
    return leg.handlers.disconnected('failed', `no answer in the ACK: ${read.refused}`, unacknowledged)
  media.use(read.session)
  leg.handlers.connected('200 OK')
}

type Redirect = Answering & { readonly to: string }

function redirect(call: Ringing, { live, phase, to }: Redirect) {
  if (phase.end() !== 'ringing') return { accepted: false, details: 'the call is being answered' } as const
  sendElsewhere(call, to)
  live.leg.handlers.transferred('302 Moved Temporarily')
  return { accepted: true } as const
}

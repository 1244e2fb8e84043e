/**
 * Owns outbound calls until they are answered or given up: the leg, the way out, gateway after gateway, ringing, and what its end was.
 * Afterwards the talk goes on in talk.ts. RFC 3261 §13.2.
 */
import type { Cancel } from '../../model/clock.ts'
import type { DialReply, DialRequest } from '../../model/dial.ts'
import type { AccountId, CallId, WorkerId } from '../../model/ids.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { LineEnd } from '../../model/rtp-transport.ts'
import type { RefusedArrival } from '../../model/telephony.ts'
import type { CallDeps, LiveCall } from '../live-calls.ts'
import type { SipDialog } from '../stack-types.ts'
import type { GatewayHealth } from '../trunk/gateway-health.ts'
import type { RequestOut } from '../stack-types.ts'
import { createAcknowledgements } from './acknowledgements.ts'
import { attempt, type Attempt, type AttemptResult, type Patience } from './attempt.ts'
import { placeOf } from './caller-id.ts'
import { earlyFactsOf } from './dialog-facts.ts'
import { endOfRefusal } from './end-cause.ts'
import { outcomeOf, speaksOfGateway, unreachable } from './outcome-of-answer.ts'
import { createPhoneMedia } from './phone-media.ts'
import { createTalk, type Talk } from './talk.ts'
import { orderWays, type WayOut } from './ways-out.ts'

export type PlacingDeps = CallDeps & {
  readonly health: Pick<GatewayHealth, 'isReachable' | 'hasAnswered'>
  readonly isStopping: () => boolean
  /** The SIP server tells of the 100 of a gateway. */
  readonly tellsTrying: boolean
}

/** Ms beyond the ringing until a CANCEL must have been answered. */
const cancelWithin = 5_000
/** Ms beyond all that until the leg gives up by itself. */
const margin = 15_000

/** Resolves when the leg is there; how it goes is told by the leg. */
export async function placeCall(deps: PlacingDeps, request: DialRequest): Promise<DialReply> {
  const { liveCalls, stack, log } = deps
  const callId = request.callId as CallId
  if (liveCalls.has(callId)) return { type: 'dialing' }
  if (deps.isStopping()) return { type: 'refused', details: 'the service is stopping' }
  if (!stack.isConnected()) return { type: 'refused', details: 'the SIP server is not connected' }
  const media = createPhoneMedia(await deps.plane.openPhone(), { codecs: ['PCMU'], encryption: 'none' })
  // Asked twice at the same moment: the first has made the leg meanwhile.
  if (liveCalls.has(callId)) return (await media.line.close(), { type: 'dialing' })
  const call = createPlacedCall(request)
  const live = liveCalls.open(deps, {
    callId,
    media,
    connectWithin: request.ringTimeout + cancelWithin + margin,
    signaling: {
      answer: () => undefined,
      transfer: (to) => call.talk()?.transfer(to) ?? Promise.resolve(notAnswered),
      sendDtmf: (digits) => call.talk()?.sendDtmf(digits) ?? false,
    },
    hangUp(reason) {
      call.hangUp(reason)
      if (!call.talk()) deps.telephony.dialogs?.over(callId)
    },
    lost({ leg }) {
      const talk = call.talk()
      if (talk) return talk.lost()
      call.settle()
      leg.handlers.dialFailed(unreachable, call.lastLine())
    },
    leave: () => call.talk()?.leave() ?? false,
  })
  dial(deps, { live, call, request }).catch((error: unknown) => {
    log.error('an outbound call failed', { callId, error })
    live.leg.handlers.dialFailed(unreachable, null)
  })
  return { type: 'dialing' }
}

const notAnswered = { accepted: false, details: 'nobody has answered yet' } as const

type PlacedCall = ReturnType<typeof createPlacedCall>

/** What is under way, and whether it is still wanted. */
function createPlacedCall({ ringTimeout }: DialRequest) {
  let current: Attempt | null = null
  let talk: Talk | null = null
  let isOver = false
  let hasRung = false
  let hasRungOut = false
  /** The last SIP line, as the other side said it. */
  let lastLine: string | null = null
  const timers: Cancel[] = []

  return {
    ringTimeout,
    talk: () => talk,
    isOver: () => isOver,
    hasRungOut: () => hasRungOut,
    /** A gateway that never answered did not ring the callee. */
    outcomeOfRingOut: (): Outcome => (hasRung ? { status: 'no_answer' } : unreachable),
    rings: () => void (hasRung = true),
    /** Nothing new is tried. */
    isDone: () => isOver || hasRungOut,
    lastLine: () => lastLine,
    heard: (line: string) => void (lastLine = line),
    /** From here on a hang-up goes there. */
    trying: (attempted: Attempt) => void (current = attempted),
    talking: (begun: Talk) => void (talk = begun),
    ringOut() {
      hasRungOut = true
      current?.cancel()
    },
    hold: (cancel: Cancel) => void timers.push(cancel),
    /** No timer is left. */
    settle() {
      for (const cancel of timers.splice(0)) cancel()
    },
    hangUp(reason: string | undefined) {
      isOver = true
      for (const cancel of timers.splice(0)) cancel()
      if (talk) talk.hangUp(reason)
      else current?.abandon()
    },
  }
}

type Dialing = { readonly live: LiveCall; readonly call: PlacedCall; readonly request: DialRequest }

async function dial(deps: PlacingDeps, dialing: Dialing): Promise<void> {
  const { live, call, request } = dialing
  const { clock } = deps
  call.hold(clock.after(call.ringTimeout, () => call.ringOut()))
  // A gateway that does not answer our CANCEL is not waited for.
  call.hold(clock.after(call.ringTimeout + cancelWithin, () => fail(dialing, call.outcomeOfRingOut(), ours)))
  const ways = await findWays(deps, request)
  if ('sipStatus' in ways) return refuse(deps, dialing, ways)
  if (!(await mayDial(deps, dialing))) return
  deps.log.info('a call is dialed', { callId: live.callId, ways: ways.length })
  let [outcome, end]: [Outcome, LineEnd] = [unreachable, byNetwork]
  for (const [index, way] of ways.entries()) {
    if (call.isDone()) break
    if (way.trunk !== ways[index - 1]?.trunk) await deps.telephony.carriedBy(live.callId, way.trunk.id)
    if (call.isDone()) break
    const result = await tryWay(deps, dialing, { way, isLast: index === ways.length - 1 })
    if (result.kind === 'answered') return answered(deps, dialing, { way, ...result })
    outcome = outcomeAfter(call, result)
    end = result.kind === 'refused' ? endOfRefusal(result, call.hasRungOut()) : byNetwork
    if (result.kind === 'refused' && !speaksOfGateway(result, result.rang)) break
    if (result.kind === 'unreachable' && !call.isDone()) tellUnreachable(deps, dialing, way, result.details)
  }
  fail(dialing, call.hasRungOut() ? call.outcomeOfRingOut() : outcome, call.hasRungOut() ? { ...end, ...ours } : end)
}

async function findWays(
  { telephony, health, pins }: PlacingDeps,
  { accountId, workerId, toNumber, callId }: DialRequest,
): Promise<WayOut[] | RefusedArrival> {
  const refusal = await telephony.refusalOf(accountId as AccountId, toNumber)
  if (refusal) return refusal
  const trunks = await telephony.waysOut(accountId as AccountId, workerId as WorkerId, callId as CallId)
  if ('sipStatus' in trunks) return trunks
  for (const trunk of trunks) pins?.adopt(trunk)
  const ways = orderWays(trunks, (gateway, trunk) => health.isReachable({ gateway, trunk }))
  if (ways.length > 0) return ways
  const details = 'no trunk of the worker has a gateway that may carry the call now'
  return { reason: 'no_trunk', details, accountId, trunkId: null, sipStatus: 503 }
}

/** A request may come late or twice, when its call is over or has a leg at another edge: then nothing is dialed. */
async function mayDial({ bus, telephony, log }: PlacingDeps, dialing: Dialing): Promise<boolean> {
  const { live, call, request } = dialing
  // An actor that takes the call over from here on finds this leg.
  await live.leg.opened
  await bus.flush()
  if (call.isOver()) return false
  const leave = await telephony.mayDial(live.callId, request.epoch)
  if (leave === 'may') return true
  log.warn('nobody was called for a request to dial', { callId: live.callId, epoch: request.epoch, leave })
  if (leave === 'was_dialed') fail(dialing, unreachable, ours)
  // Without an event: the present actor of the call must not hear of it.
  else await live.leg.close('canceled')
  return false
}

/** Nothing was sent to anybody: the status of the refusal is for callers from outside. */
function refuse({ telephony }: PlacingDeps, dialing: Dialing, refused: RefusedArrival): void {
  const { callId, fromNumber, toNumber } = dialing.request
  const { sipStatus: _, ...why } = refused
  const numbers = { calling: fromNumber, called: toNumber }
  telephony.refused({ direction: 'outbound', sipStatus: null, callId, address: null, ...numbers, ...why })
  fail(dialing, unreachable, ours)
}

/** Where the account can read it: a call that reached nobody has no SIP status that says so. */
function tellUnreachable({ telephony, log }: PlacingDeps, dialing: Dialing, way: WayOut, details: string): void {
  const { callId, fromNumber, toNumber } = dialing.request
  const { host } = way.gateway
  log.warn('a gateway did not take a call', { callId, host, details })
  const { accountId, id: trunkId, name } = way.trunk
  telephony.refused({
    direction: 'outbound',
    reason: 'gateway_unreachable',
    details: `Gateway ${host} of trunk “${name}”: ${details}; see its host, port and transport, and what a firewall lets through.`,
    sipStatus: null,
    accountId,
    trunkId,
    callId,
    address: null,
    calling: fromNumber,
    called: toNumber,
  })
}

const ours: LineEnd = { endedBy: 'service' }
const byNetwork: LineEnd = { endedBy: 'network' }

function fail({ live, call }: Dialing, outcome: Outcome, end: LineEnd): void {
  call.settle()
  if (!call.isOver()) live.leg.handlers.dialFailed(outcome, call.lastLine(), end)
}

async function tryWay(
  deps: PlacingDeps,
  { live, call, request }: Dialing,
  { way, isLast }: { readonly way: WayOut; readonly isLast: boolean },
): Promise<AttemptResult> {
  const progress = (status: number, reason: string) => {
    call.heard(`${status} ${reason}`)
    call.rings()
    if (!call.isDone()) live.leg.handlers.ringing(`${status} ${reason}`)
  }
  const patience = patienceWith(deps, way, isLast)
  const { dialogs } = deps.telephony
  // Who inherits this process can cancel it.
  const sent = (invite: RequestOut): void => {
    const sipCallId = invite.get('call-id')
    if (sipCallId !== undefined) live.signaledAs(sipCallId)
    const early = call.isOver() ? null : earlyFactsOf(invite)
    if (early) dialogs?.held(live.callId, way.trunk.id, early)
  }
  const attempted = attempt({ ...deps, media: live.media, request, progress, sent }, way, patience)
  call.trying(attempted)
  const result = await attempted.result
  if (result.kind !== 'answered') dialogs?.over(live.callId)
  if (result.kind === 'refused') call.heard(`${result.status} ${result.reason}`.trim())
  return result
}

/**
 * The 32 s of Timer B are longer than a caller waits. A gateway that is at work on the call says so at once by 100 (RFC 3261 §17.2.1), and
 * one that answers OPTIONS is given the benefit of the doubt: some countries take long to ring. The last one may ring as late as it will.
 */
function patienceWith({ health, tellsTrying }: PlacingDeps, way: WayOut, isLast: boolean): Patience {
  const word = health.hasAnswered(way) ? atWork : 8_000
  if (!isLast) return { word, ring: atWork }
  if (tellsTrying) return { word, ring: null }
  // Its silence may be our deafness, but not for long where it does not answer OPTIONS.
  return { word: health.isReachable(way) ? null : atWork, ring: null }
}

const atWork = 20_000

const outcomeAfter = (call: PlacedCall, result: Exclude<AttemptResult, { kind: 'answered' }>): Outcome => {
  if (result.kind === 'unreachable') return unreachable
  // A gateway that never answered did not ring the callee.
  if (result.status === 408 && !result.rang && !call.hasRungOut()) return unreachable
  return outcomeOf(result)
}

type Answer = { readonly way: WayOut; readonly dialog: SipDialog; readonly sdp: string; readonly line: string }

function answered(deps: PlacingDeps, dialing: Dialing, { way, dialog, sdp, line: sipLine }: Answer): void {
  const { live, call, request } = dialing
  const { handlers } = live.leg
  call.settle()
  call.heard(sipLine)
  const { trunk, gateway } = way
  const place = placeOf(trunk.settings, gateway)
  const log = deps.log.with({ callId: live.callId })
  const acks = createAcknowledgements(dialog)
  const number = request.fromNumber
  const talk = createTalk({ ...deps, live, dialog, acks, trunk, place, number, first: dialog.res, log })
  call.talking(talk)
  // The leg was closed, or the ringing was over, while the answer was on its way. RFC 3261 §9.1.
  if (call.isDone()) {
    talk.hangUp('canceled')
    return call.isOver() ? undefined : handlers.dialFailed({ status: 'no_answer' }, call.lastLine(), ours)
  }
  const read = live.media.readAnswer(sdp)
  if ('refused' in read) {
    log.warn('an answer could not be used', { details: read.refused })
    talk.hangUp('failed')
    return handlers.dialFailed({ status: 'failed', reason: 'sip_call_failed' }, sipLine)
  }
  live.media.signaledFrom(dialog.res.source_address)
  live.media.use(read.session)
  talk.described()
  handlers.connected(sipLine)
}

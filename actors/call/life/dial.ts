/**
 * Owns how an outbound call is placed: an edge is asked, once, whoever runs the call. The leg that an edge made tells the rest.
 * docs/contract/webhooks.md "failedReason".
 */
import { BusNoResponders, BusTimeout, type Bus } from '../../../model/bus.ts'
import { fromBytes, toBytes } from '../../../model/bus-json.ts'
import { DialReply, dialSubject, DialRequest } from '../../../model/dial.ts'
import type { FailedReason } from '../../../model/outcome.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import { reachLeg } from '../../node/leg-link.ts'
import type { CallFact } from '../call-event.ts'
import type { CallEnd, PerformerDeps } from './performer-deps.ts'
import { configOf } from '../engine-choice.ts'
import { enginesFor } from '../fallback.ts'
import { factOf } from './leg-facts.ts'
import { readCall } from './read-call.ts'
import { opensSession } from './try-session.ts'

/** A retryable refusal is tried again, because no callee waits yet. */
const trial = { waits: [500, 2_000], within: null }
/** The edge answers when it has made the leg, before anything goes over the network. */
const dialTimeout = 5_000
/** A leg that is there and does not answer is asked this often: while it may ring, no other edge dials. */
const pings = 3

const dialFailed = (reason: FailedReason, providerStatus: string | null = null): CallFact => ({
  type: 'dial_failed',
  outcome: { status: 'failed', reason },
  providerStatus,
})

/** `details` are for people, where no SIP line says more. */
export const sipCallFailed = (details: string): CallFact => dialFailed('sip_call_failed', details)

/**
 * A call that was dialed by an actor before this one goes on from where its leg is. One without numbers was accepted all the same: it fails
 * here, where its creator hears of it by call.ended.
 */
export async function dial(deps: PerformerDeps, end: CallEnd): Promise<void> {
  const call = await readCall(deps, end.callId)
  if (call.fromNumber === null || call.toNumber === null) return end.post(dialFailed('missing_phone_numbers'))
  const leg = await lookForDialed(deps.bus, end)
  const fact = leg === 'none' ? await place(deps, end, call) : leg
  if (fact) end.post(fact)
}

/** Null: an edge dials. */
async function place(deps: PerformerDeps, end: CallEnd, call: CallFactsRow): Promise<CallFact | null> {
  if (await canTalk(deps, call)) return askEdge(deps.bus, end, requestOf(call, end))
  return dialFailed('voice_session_unavailable')
}

/** A call is dialed only when a voice session can be had: one is opened, and closed before it says anything. */
async function canTalk(deps: PerformerDeps, call: CallFactsRow): Promise<boolean> {
  for (const engine of await enginesFor(deps, call)) if (await opensSession(deps, call, engine, trial)) return true
  return false
}

/** What an actor finds out about the leg of its call. Null: nothing has happened that it has not been told. `away`: the bus is. */
export async function legFactOf(
  bus: Bus,
  { callId, epoch }: CallEnd,
): Promise<CallFact | null | 'none' | 'silent' | 'away'> {
  const reply = await reachLeg(bus, callId, { type: 'ping', epoch })
  if (reply.type === 'gone') return 'none'
  if (reply.type === 'silent' || reply.type === 'away') return reply.type
  if (reply.type !== 'here') return null
  if (reply.ended) return factOf(reply.ended)
  if (reply.connected) return { type: 'leg_connected', providerStatus: 'connected' }
  return reply.ringing === undefined ? null : { type: 'ringing', providerStatus: reply.ringing }
}

async function lookForDialed(bus: Bus, end: CallEnd): Promise<CallFact | null | 'none'> {
  for (let ping = 0; ping < pings; ping++) {
    const fact = await legFactOf(bus, end)
    if (fact === 'away') return sipCallFailed('the way to the leg of the call is interrupted')
    if (fact !== 'silent') return fact
  }
  return sipCallFailed('the leg of the call does not answer')
}

function requestOf(call: CallFactsRow, { epoch }: CallEnd): DialRequest | null {
  const { id: callId, accountId, workerId, fromNumber, toNumber } = call
  const ringTimeout = configOf(call).ringTimeout * 1000
  const { headers } = call.request
  const numbers = { fromNumber, toNumber }
  const request = { callId, epoch, accountId, workerId, ...numbers, ringTimeout, ...(headers && { headers }) }
  return DialRequest.safeParse(request).data ?? null
}

async function askEdge(bus: Bus, end: CallEnd, request: DialRequest | null): Promise<CallFact | null> {
  if (!request) return sipCallFailed('a number of the call is not in E.164 format')
  try {
    const answer = await bus.request(dialSubject, toBytes(request), { timeout: dialTimeout })
    const reply = DialReply.parse(fromBytes(answer))
    return reply.type === 'dialing' ? null : sipCallFailed(reply.details)
  } catch (error) {
    if (error instanceof BusNoResponders) return sipCallFailed('no telephone edge is running')
    if (!(error instanceof BusTimeout)) throw error
  }
  // Its answer may be lost, and not the request. One that is late calls nobody once the call is over (Telephony.mayDial).
  const leg = await lookForDialed(bus, end)
  return leg === 'none' ? sipCallFailed('no telephone edge answered in time') : leg
}

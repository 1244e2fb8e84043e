/**
 * Owns the other half of a step: the effects that reach out of the database, carried out after the commit. What comes of them returns to the
 * actor as facts. Nothing here decides anything.
 */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { toIso, type Clock } from '../../model/clock.ts'
import type { WorkerRequestAnswer, WorkerRequestData } from '../../model/events.ts'
import type { CallId } from '../../model/ids.ts'
import type { JsonObject } from '../../model/json.ts'
import type { LegEvent } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import type { CallFactsRow } from '../../store/call-rows.ts'
import { findCallFacts } from '../../store/call-steps.ts'
import { findCallScript } from '../../store/documents.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { createConversation, type Conversation } from '../conversation/conversation.ts'
import { commandLeg, toBytes } from '../leg-link.ts'
import type { CallFact, Effect } from './call-event.ts'
import { chooseEngine, configOf, engineConfigOf, type Engines } from './engine-choice.ts'
import { recordingKeyOf } from './record-effects.ts'

export type WorkerRequestResult =
  | { readonly kind: 'none' }
  | { readonly kind: 'answered'; readonly answer: WorkerRequestAnswer }
  | { readonly kind: 'failed'; readonly required: boolean; readonly details: string }

export type PerformerDeps = {
  readonly sql: Sql
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly box: SecretBox
  readonly engines: Engines
  readonly askWorkerRequest: (question: WorkerRequestData) => Promise<WorkerRequestResult>
  /** Deliveries have been committed: send them. */
  readonly wakeDeliveries: () => void
  /** Jobs have been committed: look at them. */
  readonly wakeJobs: () => void
}

type StartConversation = Extract<Effect, { type: 'start_conversation' }>
type CallEnd = { readonly callId: CallId; readonly epoch: number; readonly post: (fact: CallFact) => void }

export type CallPerformer = {
  /** Starts the effects in order and returns; never throws. */
  perform(effects: readonly Effect[]): void
  legEvent(event: LegEvent): void
  /** Leaves the conversation without a word: the call goes on elsewhere. */
  abandon(): void
  /** Resolves when everything that was started has come to its end. */
  settled(): Promise<void>
}

export function createCallPerformer(deps: PerformerDeps, end: CallEnd): CallPerformer {
  const { bus, clock, log } = deps
  const underWay = new Set<Promise<void>>()
  let conversation: Conversation | null = null
  let abandoned = false

  const signal = (message: ServerMessage): void => bus.publish(subjectsOf(end.callId).signal, toBytes(message))
  const run = (what: Effect['type'], work: Promise<void>): void => {
    const guarded = work
      .catch((error: unknown) => log.error('an effect of a call failed', { effect: what, error }))
      .finally(() => underWay.delete(guarded))
    underWay.add(guarded)
  }
  const startConversation = async (effect: StartConversation): Promise<void> => {
    const prepared = await prepareConversation(deps, end, effect, signal)
    if (!prepared || abandoned) return
    conversation = prepared
    await prepared.open()
  }
  const windUp = async (reason: string): Promise<void> => {
    await conversation?.stop()
    await commandLeg(bus, end.callId, { type: 'close', epoch: end.epoch, reason }, 10_000)
    end.post({ type: 'leg_closed' })
  }

  const performOne = (effect: Effect): void => {
    const message = messageOf(effect, clock.now())
    if (message) signal(message)
    switch (effect.type) {
      case 'announce_status':
      case 'store_turn':
      case 'announce_ended':
        return deps.wakeDeliveries()
      case 'schedule_post_processing':
        return deps.wakeJobs()
      case 'ask_worker_request':
        return run(effect.type, askWorkerRequest(deps, end))
      case 'dial':
        return end.post(noTrunk)
      case 'start_conversation':
        return run(effect.type, startConversation(effect))
      case 'wind_up':
        return run(effect.type, windUp(effect.reason))
      case 'store_worker_request':
      case 'store_outcome':
      case 'store_analysis':
      case 'fail_post_processing':
        return
    }
  }

  return {
    perform: (effects) => effects.forEach(performOne),
    legEvent: (event) => conversation?.legEvent(event),
    abandon() {
      abandoned = true
      conversation?.abandon()
    },
    settled: async () => void (await Promise.all(underWay)),
  }
}

/** What a browser that looks on is told of an effect. */
function messageOf(effect: Effect, now: number): ServerMessage | null {
  const ts = toIso(now)
  if (effect.type === 'announce_status') return { type: 'status', status: effect.status, ts }
  if (effect.type === 'store_outcome') return { type: 'bye', reason: effect.outcome.status }
  if (effect.type !== 'store_turn') return null
  const { role, text } = effect.turn
  return { type: 'transcript', role, text, isFinal: true, turnIndex: effect.index, ts }
}

/** No SIP edge is part of this process: a phone call cannot be placed. */
const noTrunk: CallFact = {
  type: 'dial_failed',
  outcome: { status: 'failed', reason: 'sip_call_failed' },
  providerStatus: null,
}

/** Null, and the fact posted, when the engine that the call needs is not there. */
async function prepareConversation(
  deps: PerformerDeps,
  end: CallEnd,
  { turns, answeredAt, memory }: StartConversation,
  signal: (message: ServerMessage) => void,
): Promise<Conversation | null> {
  const call = await callOf(deps.sql, end.callId)
  const engine = chooseEngine(deps.engines, call)
  if (!engine) {
    end.post({ type: 'engine_failed', details: 'the voice provider is not set up on this service' })
    return null
  }
  const script = await findCallScript(deps.sql, call.accountId, call.workerId, call.direction)
  const recording = { key: recordingKeyOf(call), mode: configOf(call).recordingChannelMode }
  const config = engineConfigOf(call, script, memory)
  return createConversation({ ...deps, ...end, engine, signal }, { config, recording, answeredAt, turns })
}

async function callOf(sql: Sql, callId: CallId): Promise<CallFactsRow> {
  const call = await findCallFacts(sql, callId)
  if (!call) throw new Error('a running call has no row')
  return call
}

async function askWorkerRequest(deps: PerformerDeps, end: CallEnd): Promise<void> {
  const result = await deps.askWorkerRequest(questionOf(await callOf(deps.sql, end.callId)))
  if (result.kind === 'failed')
    return end.post({ type: 'worker_request_failed', required: result.required, details: result.details })
  const answer: WorkerRequestAnswer = result.kind === 'answered' ? result.answer : {}
  end.post({
    type: 'worker_request_answered',
    config: answer.config ?? null,
    instructions: answer.instructions ?? null,
    tools:
      answer.tools?.map((tool) => ({ ...tool, signingSecret: deps.box.seal(tool.signingSecret) }) as JsonObject) ??
      null,
    metadata: answer.metadata ?? null,
  })
}

function questionOf(call: CallFactsRow): WorkerRequestData {
  const { customer } = call
  const number = call.direction === 'inbound' ? call.fromNumber : call.toNumber
  const name = [customer?.firstName, customer?.lastName].filter(Boolean).join(' ')
  return {
    callId: call.id,
    accountId: call.accountId,
    workerId: call.workerId,
    direction: call.direction,
    transport: call.transport,
    ...((customer || number) && {
      customer: {
        ...((number ?? customer?.phoneNumber) ? { number: number ?? customer?.phoneNumber } : {}),
        name: name || null,
        personId: call.personId,
        language: customer?.language ?? null,
      },
    }),
    ...(call.metadata && { metadata: call.metadata }),
  }
}

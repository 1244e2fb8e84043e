/**
 * Owns how an inbound phone call is taken, and where its caller goes when no voice session can be had: that is found out while it rings, because
 * only a call that was not answered can be redirected by the network (302). docs/contract/rest.md "Worker configuration" (serviceDownRedirect).
 * Both ask the leg first, so that an actor that took over repeats nothing.
 */
import type { VoiceEngine } from '../../../model/voice-engine.ts'
import type { LlmProvider } from '../../../model/worker.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import { commandLeg } from '../../node/leg-link.ts'
import type { CallFact } from '../call-event.ts'
import type { CallEnd, PerformerDeps } from './performer-deps.ts'
import { legFactOf } from './dial.ts'
import { configOf } from '../engine-choice.ts'
import { engineOf, withFallback } from '../fallback.ts'
import { redirectTargetOf } from '../redirect-target.ts'
import { disclosureOf } from './prepare-talk.ts'
import { readCall } from './read-call.ts'
import { trySession, type TriedSession } from './try-session.ts'

/** The edge replies before it sends anything. */
const answerTimeout = 5_000
/** The other side has 32 s to say whether it will try (RFC 3261, timer F), and the leg gives it up after 35. */
const transferTimeout = 38_000

const legLost = (details: string): CallFact => ({ type: 'leg_disconnected', cause: 'failed', details })
const transferFailed: CallFact = { type: 'transfer_failed', providerStatus: null }

/** A caller waits, so it is tried once; as long as an engine may take to open a session. */
const trial = { waits: [], within: 8_000 }

const notSetUp = 'the voice provider is not set up on this service'
const engineFailed = (details: string) => ({ type: 'engine_failed', details }) as const

/** The line may choose another format than the first, and what must be said first is said without a session. */
const isOfTheTalk = (call: CallFactsRow, { hears, speaks }: VoiceEngine): boolean =>
  hears.length === 1 && speaks.length === 1 && disclosureOf(call) === null

/** `named`: the engine that has taken the place of the call's own. `keep`: gets the session that was tried, for the talk. */
export async function answer(
  deps: PerformerDeps,
  end: CallEnd,
  named: LlmProvider | undefined,
  keep: (tried: TriedSession) => void,
): Promise<void> {
  const { callId, epoch, post } = end
  const call = await readCall(deps, callId)
  const engine = named ? (deps.engines.get(named) ?? null) : await engineOf(deps, call)
  if (!engine) return post(await withFallback(deps, { call, named }, engineFailed(notSetUp)))
  const known = await legFactOf(deps.bus, end)
  if (known === 'none') return post(legLost('no leg answers'))
  if (known && known !== 'silent' && known !== 'away') return post(known)
  const tried = await trySession(deps, call, engine, trial)
  if (!tried)
    return post(await withFallback(deps, { call, named, engine }, engineFailed('no voice session can be opened')))
  // A hosted one would begin to speak, at somebody's cost, to be closed.
  if (!isOfTheTalk(call, engine)) tried.close()
  keep(tried)
  const reply = await commandLeg(deps.bus, callId, { type: 'answer', epoch }, answerTimeout)
  if (reply?.type === 'accepted') return
  post(legLost(reply ? JSON.stringify(reply) : 'no leg answers'))
}

/** Comes back as `transferred` or `transfer_failed`: from here, or by the events of the leg. */
export async function redirect(deps: PerformerDeps, end: CallEnd): Promise<void> {
  const { callId, epoch, post } = end
  const call = await readCall(deps, callId)
  const target = await redirectTargetOf(deps, call.accountId, configOf(call))
  if (target === null) return post(transferFailed)
  const known = await legFactOf(deps.bus, end)
  if (known !== null && typeof known === 'object' && known.type !== 'leg_connected') return post(known)
  const reply = await commandLeg(deps.bus, callId, { type: 'transfer', epoch, to: target }, transferTimeout)
  if (reply?.type === 'accepted') return
  deps.log.warn('a caller could not be passed on while the voice service is down', { reply: reply?.type ?? 'none' })
  post(transferFailed)
}

/**
 * Owns what a talk of a call is made of before it begins: its engine, what that is told, whether it is recorded, and what must be said first. What is
 * decided here once becomes a fact, so that an actor that takes the call over does not decide it again.
 */
import type { CallWarning } from '../../../model/call.ts'
import { disclosureFor } from '../../../model/disclosure.ts'
import type { EffectiveConfig, LlmProvider } from '../../../model/worker.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import { createConversation, type Conversation } from '../../conversation/conversation.ts'
import { createDisclosure } from '../../conversation/disclosure.ts'
import type { ConversationDeps, ConversationStart } from '../../conversation/talk-start.ts'
import type { UsageMeter } from '../../conversation/usage-meter.ts'
import type { CallFact, Effect } from '../call-event.ts'
import { configOf, engineConfigOf } from '../engine-choice.ts'
import { engineOf, isReplaceable, withFallback } from '../fallback.ts'
import { recordingKeyOf } from '../record-effects.ts'
import type { CallEnd, PerformerDeps } from './performer-deps.ts'
import { readCall, readHistory, readScript } from './read-call.ts'
import type { RecordingOrders } from './recording-orders.ts'
import { offeredTools, toEngineTool, type Offer } from './run-tool.ts'
import { beginStandingCapture } from './standing-capture.ts'
import type { TriedSession } from './try-session.ts'

type Parts = Pick<ConversationDeps, 'signal'> & {
  readonly deps: PerformerDeps
  readonly end: CallEnd
  readonly recording: Pick<RecordingOrders, 'isPaused'>
  readonly meter: Pick<UsageMeter, 'metered'>
  run(work: Promise<void>, failure: (details: string) => CallFact | null): void
}
type StartConversation = Extract<Effect, { type: 'start_conversation' }>
type Disclose = Extract<Effect, { type: 'disclose' }>

export type Prepared = Offer & { readonly conversation: Conversation }

/** Null, and the fact posted, when the engine that the call needs is not there, or something must be said before. */
export async function prepareConversation(
  parts: Parts & Pick<ConversationStart, 'earlier'> & { readonly tried: TriedSession | null },
  effect: StartConversation,
): Promise<Prepared | null> {
  const { turns, answeredAt, memory, engine: named, bridges, recording: decided, disclosedTurns } = effect
  const { lostTools = [], whispers, settled } = effect
  const { deps, end, earlier } = parts
  // Of the first talk of a call that arrived, by the actor that answered it.
  const isFirst = turns === 0 && disclosedTurns === undefined
  const tried = isFirst ? parts.tried : null
  const call = tried?.call ?? (await readCall(deps, end.callId))
  const hasBegun = turns > (disclosedTurns ?? 0)
  const isRecorded = decided === undefined ? hasBegun || settleRecording(parts, call, turns) : decided !== 'off'
  if (isFirst) parts.run(beginStandingCapture(deps, call), () => null)
  if (isFirst && isDisclosureDue(parts, call)) return null
  const talker = await talkerOf(parts, call, named)
  if (!talker) return null
  const isTried = tried?.of === talker.engine
  const [script, offered, { said: before, ...until }] = await Promise.all([
    isTried ? tried.script : readScript(deps, call),
    isTried ? tried.offered : offeredTools(deps, call),
    turns === 0 ? { said: [] } : readHistory(deps, call, turns),
  ])
  const said = before.slice(disclosedTurns ?? 0)
  // Of a tool there is a result, which asks for a reply by itself.
  const owesReply =
    bridges === true || effect.isDue === true || (said.at(-1)?.role === 'user' && lostTools.length === 0)
  const beginning = {
    script,
    tools: offered.map(toEngineTool),
    history: said,
    owesReply,
    ...(bridges && { bridges }),
    ...(whispers && { whispers }),
  }
  const told = engineConfigOf(call, { ...beginning, memory })
  const config = disclosedTurns === undefined ? told : { ...told, worker: announced(told.worker) }
  const isPaused = parts.recording.isPaused()
  const recording = isRecorded ? { ...fileOf(call), ...(isPaused && { parts: 'none' as const }) } : null
  const known = { ...until, ...(settled && { settled }), ...(earlier && { earlier }) }
  const started = { config, recording, isPaused, answeredAt, turns, ...known }
  const engine = parts.meter.metered(isTried ? tried.engine : talker.engine)
  return { call, offered, conversation: createConversation({ ...deps, ...end, ...parts, ...talker, engine }, started) }
}

/** Null as above. */
export async function prepareDisclosure(parts: Parts, effect: Disclose): Promise<Conversation | null> {
  const { deps, end } = parts
  const call = await readCall(deps, end.callId)
  const talker = await talkerOf(parts, call, effect.engine)
  if (!talker) return null
  const config = engineConfigOf(call, { script: null, tools: [], history: [], owesReply: false, memory: null })
  const isPaused = parts.recording.isPaused()
  const file = { ...fileOf(call), ...(isPaused && { parts: 'none' as const }) }
  const recording = effect.recording === 'off' ? null : file
  const { text, answeredAt } = effect
  const started = { config, recording, isPaused, answeredAt, text, announcement: announcementOf(call) }
  const engine = parts.meter.metered(talker.engine)
  return createDisclosure({ ...deps, ...end, ...parts, ...talker, engine }, started)
}

const fileOf = (call: CallFactsRow) => ({ key: recordingKeyOf(call), mode: configOf(call).recordingChannelMode })

type Talker = Pick<ConversationDeps, 'engine' | 'post'> & { readonly isReplaceable: boolean }

/** The engine of the call, and the way of its failures. */
async function talkerOf(
  { deps, end, run }: Parts,
  call: CallFactsRow,
  named: LlmProvider | undefined,
): Promise<Talker | null> {
  const engine = named ? (deps.engines.get(named) ?? null) : await engineOf(deps, call)
  if (!engine) {
    const failure = { type: 'engine_failed', details: 'the voice provider is not set up on this service' } as const
    end.post(await withFallback(deps, { call, named }, failure))
    return null
  }
  const post = (fact: CallFact): void => {
    if (fact.type !== 'engine_failed') return end.post(fact)
    run(withFallback(deps, { call, named, engine }, fact).then(end.post), () => fact)
  }
  return { engine, post, isReplaceable: isReplaceable(deps.engines, call, { named, engine }) }
}

/** Nobody is recorded who cannot be told in a language of the call what must be told. */
function settleRecording({ end }: Parts, call: CallFactsRow, turns: number): boolean {
  const { recordingEnabled, disclosureText } = configOf(call)
  const isMissing = disclosureText !== undefined && turns === 0 && disclosureOf(call) === null
  if (isMissing) end.post({ type: 'warned', warning: missing })
  const isRecorded = recordingEnabled !== false && !isMissing
  if (!isRecorded) end.post({ type: 'not_recorded' })
  return isRecorded
}

const missing: CallWarning = {
  type: 'DISCLOSURE_MISSING',
  message:
    'disclosureText has no text in the language of the call or of the worker: nothing was said first, and nothing is recorded.',
}

function isDisclosureDue({ end }: Parts, call: CallFactsRow): boolean {
  const text = disclosureOf(call)
  if (text !== null) end.post({ type: 'disclosure_due', text })
  return text !== null
}

/** What must be said before the talk, in a language of the call. */
export function disclosureOf(call: CallFactsRow): string | null {
  const language = call.hookAnswer.locale ?? call.request.locale ?? call.language
  return disclosureFor(configOf(call).disclosureText, [language, call.language])
}

/** The static message of an inbound call, which is said with what must be said first: nobody is listened to meanwhile either. */
function announcementOf(call: CallFactsRow): string | null {
  const { inboundStaticMessageEnabled, inboundStaticMessageText = '' } = configOf(call)
  const text = inboundStaticMessageText.trim()
  return call.direction === 'inbound' && inboundStaticMessageEnabled && text !== '' ? text : null
}

const announced = (worker: EffectiveConfig): EffectiveConfig => ({ ...worker, inboundStaticMessageEnabled: false })

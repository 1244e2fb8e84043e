/** Owns which engine a call gets and what it is told. docs/voice-engines.md explains the order. */
import type { CallFactsRow } from '../../store/call-rows.ts'
import { callerProofOf } from '../../model/caller-proof.ts'
import type { Json } from '../../model/json.ts'
import type { EngineConfig, VoiceEngine } from '../../model/voice-engine.ts'
import { effectiveConfigOf, type EffectiveConfig, type LlmProvider } from '../../model/worker.ts'

/** The engines of this process, in the order in which they are preferred when nobody names one. */
export type Engines = ReadonlyMap<LlmProvider, VoiceEngine>

/** All that configures a call. */
export type Configured = Pick<CallFactsRow, 'workerConfig' | 'request' | 'hookAnswer'>

/** The worker's configuration, changed by who created the call, changed by call.worker_request. */
export const configOf = (call: Configured): EffectiveConfig =>
  effectiveConfigOf(call.workerConfig, call.request.config ?? {}, call.hookAnswer.config ?? {})

/** Null when the provider that was asked for is not set up here. */
export function chooseEngine<Engine>(engines: ReadonlyMap<LlmProvider, Engine>, call: Configured): Engine | null {
  if (configOf(call).testModeEnabled) return engines.get('embedded') ?? null
  // The creator's choice of provider stands even against the hook's. docs/decisions.md "Creating a call".
  const asked = call.request.config?.llmProvider ?? configOf(call).llmProvider
  const [preferred] = engines.values()
  return (asked ? engines.get(asked) : preferred) ?? null
}

/** What a conversation begins with, or goes on from. */
export type Beginning = Pick<EngineConfig, 'script' | 'tools' | 'history' | 'owesReply' | 'bridges' | 'whispers'> & {
  readonly memory: Json
}

export function engineConfigOf(call: CallFactsRow, beginning: Beginning): Omit<EngineConfig, 'formats'> {
  return {
    ...beginning,
    callId: call.id,
    direction: call.direction,
    language: call.hookAnswer.locale ?? call.request.locale ?? call.language,
    worker: configOf(call),
    instructions: call.hookAnswer.instructions ?? call.request.instructions ?? null,
    context: call.context,
    customer: call.customer,
    caller: callerProofOf(call),
    sip: call.sip,
  }
}

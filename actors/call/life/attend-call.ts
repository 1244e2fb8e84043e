/**
 * Owns who hears caller and supervisor of a call while they speak with each other: the engine of the call, where it can hear without answering. Without one
 * their words of that time are in no transcript. docs/supervision.md.
 */
import { retry } from '../../../model/retry.ts'
import { quickReads } from '../../../store/quick-reads.ts'
import { findSupervised } from '../../../store/supervision.ts'
import { createAttendance, type Attendance } from '../../conversation/attendance.ts'
import type { UsageMeter } from '../../conversation/usage-meter.ts'
import type { CallFact } from '../call-event.ts'
import { engineConfigOf } from '../engine-choice.ts'
import { engineOf } from '../fallback.ts'
import type { CallEnd, PerformerDeps } from './performer-deps.ts'
import { readCall } from './read-call.ts'

export type CallAttendance = {
  /** Somebody speaks in the agent's place; `standsIn`: the leg plays their voice. Does nothing where they are heard already. */
  begin(standsIn: Promise<void>): Promise<void>
  /** The call is over: what the caller was saying is heard out. Bounded. */
  stop(): Promise<void>
  /** The agent hears them again, or another actor. */
  close(): void
}

export function createCallAttendance(
  deps: PerformerDeps,
  { callId }: Pick<CallEnd, 'callId'>,
  { meter, post }: { readonly meter: Pick<UsageMeter, 'metered'>; post(fact: CallFact): void },
): CallAttendance {
  let isWanted = false
  /** What is read for one that is not wanted any more is for nobody. */
  let begun = 0
  let current: Attendance | null = null
  const leave = (): Attendance | null => {
    const left = current
    isWanted = false
    current = null
    return left
  }
  return {
    async begin(standsIn) {
      if (isWanted || ![...deps.engines.values()].some((engine) => engine.attend)) return
      isWanted = true
      const beginning = ++begun
      const call = await readCall(deps, callId)
      const asked = { accountId: call.accountId, callId }
      const supervised = await retry(quickReads(deps.clock), () => findSupervised(deps.sql, asked))
      const named = supervised?.engine
      const engine = named ? deps.engines.get(named) : await engineOf(deps, call)
      if (!isWanted || beginning !== begun || !engine?.attend || call.startedAt === null) return
      const { name, attend } = meter.metered(engine)
      if (!attend) return
      const untold = { script: null, tools: [], history: [], owesReply: false, memory: null }
      const { direction, language, worker } = engineConfigOf(call, untold)
      current = createAttendance(
        { ...deps, callId, engine: { name, attend }, post },
        { config: { callId, direction, language, worker }, answeredAt: call.startedAt, standsIn },
      )
    },
    stop: async () => leave()?.stop(),
    close: () => leave()?.close(),
  }
}

/**
 * Owns the trial of a voice session before a caller and an agent are put through: one is opened, and closed before it says anything. A call whose
 * engine is down is not dialed, and one that arrives is not answered.
 */
import { deadline } from '../../../model/deadline.ts'
import { retry, waitsOf } from '../../../model/retry.ts'
import { EngineRefusal, type EngineSession, type VoiceEngine } from '../../../model/voice-engine.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import { engineConfigOf } from '../engine-choice.ts'
import type { PerformerDeps } from './performer-deps.ts'
import { readScript } from './read-call.ts'
import { offeredTools, toEngineTool } from './run-tool.ts'

/** `waits`: ms before each further attempt, for refusals that may pass. `within`: ms for all of it; null: as long as the engine takes. */
export type Trial = { readonly waits: readonly number[]; readonly within: number | null }

export async function opensSession(
  deps: PerformerDeps,
  call: CallFactsRow,
  engine: VoiceEngine,
  { waits, within }: Trial,
): Promise<boolean> {
  const [script, offered] = await Promise.all([readScript(deps, call), offeredTools(deps, call)])
  const tools = offered.map(toEngineTool)
  const config = engineConfigOf(call, { script, tools, history: [], owesReply: false, memory: null })
  const [hears, speaks] = [engine.hears[0]!, engine.speaks[0]!]
  const open = () => engine.open({ ...config, formats: { hears, speaks } }, () => {})
  const opening = retry({ clock: deps.clock, wait: waitsOf(waits, isRetryable) }, open)
  try {
    const session = within === null ? await opening : await inTime(deps, opening, within)
    session.close()
    return true
  } catch (error) {
    deps.log.warn('no voice session can be opened for a call that is due', { engine: engine.name, error })
    return false
  }
}

/** A session that comes too late is closed when it does. */
function inTime({ clock }: PerformerDeps, opening: Promise<EngineSession>, within: number): Promise<EngineSession> {
  return deadline(clock, within, opening, () => {
    opening.then((session) => session.close(), nobodyWaits)
    throw new Error(`the voice provider did not answer within ${within / 1000} s`)
  })
}

const nobodyWaits = (): void => {}

const isRetryable = (error: unknown): boolean => error instanceof EngineRefusal && error.isRetryable

/**
 * Owns the trial of a voice session before a caller and an agent are put through: a call whose engine is down is not dialed, and one that arrives is not
 * answered. The session of a call that arrives is handed on to its talk, which so begins with what was read and opened for the trial; whatever it says
 * until then is held. That of a call that is dialed is closed before it says anything, because nobody knows how long it will ring.
 */
import { isDeepStrictEqual } from 'node:util'
import { deadline } from '../../../model/deadline.ts'
import { retry, waitsOf } from '../../../model/retry.ts'
import {
  EngineRefusal,
  type EngineConfig,
  type EngineEvent,
  type EngineSession,
  type VoiceEngine,
} from '../../../model/voice-engine.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import { createSessionEvents } from '../../conversation/session-events.ts'
import { engineConfigOf } from '../engine-choice.ts'
import type { PerformerDeps } from './performer-deps.ts'
import { readScript } from './read-call.ts'
import { offeredTools, toEngineTool, type Offer } from './run-tool.ts'

/** `waits`: ms before each further attempt, for refusals that may pass. `within`: ms for all of it; null: as long as the engine takes. */
export type Trial = { readonly waits: readonly number[]; readonly within: number | null }

export type TriedSession = Offer & {
  readonly script: string | null
  /** That it was opened with. */
  readonly of: VoiceEngine
  /** The same engine; the first session that is opened with it is the one that was tried, when it is to be told the same. */
  readonly engine: VoiceEngine
  /** Nobody wants it any more. Does nothing once it was handed on. Idempotent. */
  close(): void
}

export async function opensSession(...given: Parameters<typeof trySession>): Promise<boolean> {
  const tried = await trySession(...given)
  tried?.close()
  return tried !== null
}

/** Null: none can be opened, which has been logged. */
export async function trySession(
  deps: PerformerDeps,
  call: CallFactsRow,
  engine: VoiceEngine,
  { waits, within }: Trial,
): Promise<TriedSession | null> {
  const [script, offered] = await Promise.all([readScript(deps, call), offeredTools(deps, call)])
  const tools = offered.map(toEngineTool)
  const beginning = { script, tools, history: [], owesReply: false, memory: null }
  const formats = { hears: engine.hears[0]!, speaks: engine.speaks[0]! }
  const config = { ...engineConfigOf(call, beginning), formats }
  const open = async (): Promise<Opened> => {
    let take: Emit = () => undefined
    const events = createSessionEvents((event) => take(event))
    const session = await engine.open(config, events.emit)
    const handTo = (emit: Emit): void => {
      take = emit
      events.begin()
    }
    return { session, handTo }
  }
  const opening = retry({ clock: deps.clock, wait: waitsOf(waits, isRetryable) }, open)
  try {
    const opened = within === null ? await opening : await inTime(deps, opening, within)
    return { call, offered, script, of: engine, ...handedOn(engine, config, opened) }
  } catch (error) {
    deps.log.warn('no voice session can be opened for a call that is due', { engine: engine.name, error })
    return null
  }
}

type Emit = (event: EngineEvent) => void
type Opened = { readonly session: EngineSession; handTo(emit: Emit): void }

function handedOn(of: VoiceEngine, config: EngineConfig, opened: Opened): Pick<TriedSession, 'engine' | 'close'> {
  let left: Opened | null = opened
  const close = (): void => {
    left?.session.close()
    left = null
  }
  const engine: VoiceEngine = {
    ...of,
    get hears() {
      return of.hears
    },
    get speaks() {
      return of.speaks
    },
    async open(wanted, emit) {
      if (!left || !isDeepStrictEqual(wanted, config)) {
        close()
        return of.open(wanted, emit)
      }
      const { session, handTo } = left
      left = null
      handTo(emit)
      return session
    },
    close: () => of.close(),
  }
  return { engine, close }
}

/** A session that comes too late is closed when it does. */
function inTime({ clock }: PerformerDeps, opening: Promise<Opened>, within: number): Promise<Opened> {
  return deadline(clock, within, opening, () => {
    opening.then(({ session }) => session.close(), nobodyWaits)
    throw new Error(`the voice provider did not answer within ${within / 1000} s`)
  })
}

const nobodyWaits = (): void => {}

const isRetryable = (error: unknown): boolean => error instanceof EngineRefusal && error.isRetryable

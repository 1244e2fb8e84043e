/** Owns what follows from each thing that an engine says in a talk: what is said to the caller, what the call learns, and who has to wait. */
import type { Clock } from '../../model/clock.ts'
import { flawOf } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { maxToolsAtOnce as maxTools, type ToolResult } from '../../model/tool.ts'
import type { EngineEvent, VoiceEngine } from '../../model/voice-engine.ts'
import type { CallFact } from '../call/call-event.ts'
import type { AgentVoice } from './agent-voice.ts'
import type { SessionKeeper } from './session-keeper.ts'
import type { TurnLog } from './turn-log.ts'
import type { TurnTiming } from './turn-timing.ts'

export type Reactions = ReturnType<typeof createReactions>

type ReactionDeps = {
  readonly clock: Clock
  readonly engine: VoiceEngine
  readonly log: Log
  post(fact: CallFact): void
  signal(message: ServerMessage): void
  readonly voice: AgentVoice
  readonly turnLog: TurnLog
  readonly timing: TurnTiming
  readonly session: SessionKeeper
  /** Of a time on the session's line, ms. */
  sinceAnswer(at: number): number
}

/** What is under way in a talk. */
type UnderWay = {
  /** Tools that the engine waits for, and items whose sound has not all come. */
  readonly tools: Set<string>
  readonly items: Set<string>
  callerSpeaks: boolean
  /** What the caller said has not been answered yet. */
  unanswered: boolean
  cutting: boolean
  finishing: { readonly nextAction: string | null } | null
}

export function createReactions(deps: ReactionDeps) {
  const { clock, voice, session } = deps
  const underWay: UnderWay = { tools: new Set(), items: new Set(), callerSpeaks: false, ...quiet }

  const played = (lastPlayedSeq: number): void => {
    for (const itemId of voice.playedUpTo(lastPlayedSeq)) session.played(itemId)
    session.quiet()
    const { finishing } = underWay
    if (!finishing || voice.speaking()) return
    deps.post({ type: 'agent_finished', ...finishing })
    underWay.finishing = null
  }
  return {
    played,
    engineEvent(event: EngineEvent): void {
      react(deps, underWay, event)
      if (event.type === 'item_done' || event.type === 'finished') played(-1)
    },
    toolResult(id: string, name: string, result: ToolResult): void {
      underWay.tools.delete(id)
      // The agent has not spoken about it yet.
      underWay.unanswered = true
      session.toolResult(id, name, result)
    },
    /** What was to end the call does not. */
    goOn(): void {
      underWay.finishing = null
    },
    isQuiet: (): boolean => !isBusy(underWay) && !voice.speaking(),
    awaitsTools: (): boolean => underWay.tools.size > 0,
    /** When its session died the agent was in the middle of something, or was to answer, or the caller was speaking to it. */
    isDue: (): boolean => underWay.items.size > 0 || underWay.unanswered || underWay.callerSpeaks,
    /** Another session begins: of the old one nothing more comes. */
    reset(): void {
      // It is owed until something is said.
      underWay.unanswered ||= underWay.items.size > 0 || underWay.callerSpeaks
      for (const itemId of underWay.items) voice.finish(itemId, clock.now())
      underWay.items.clear()
      underWay.callerSpeaks = false
    },
  }
}

const quiet = { unanswered: false, cutting: false, finishing: null }
const isBusy = ({ callerSpeaks, unanswered, tools, finishing }: UnderWay): boolean =>
  callerSpeaks || unanswered || tools.size > 0 || finishing !== null

function react(deps: ReactionDeps, underWay: UnderWay, event: EngineEvent): void {
  const { clock, voice, turnLog, timing, session, post } = deps
  switch (event.type) {
    case 'audio':
      underWay.items.add(event.itemId)
      underWay.unanswered = false
      timing.audio(event.itemId)
      return voice.audio(event.itemId, event.payload, clock.now())
    case 'agent_text':
      timing.decided()
      return voice.text(event.itemId, event.text, clock.now())
    case 'item_done':
      underWay.items.delete(event.itemId)
      return voice.finish(event.itemId, clock.now())
    case 'user_speech_started':
      underWay.callerSpeaks = true
      return void yieldToCaller(deps, underWay).catch((error: unknown) => deps.log.error('barge-in failed', { error }))
    case 'user_speech_stopped':
      underWay.callerSpeaks = false
      // A provider may have begun to answer before the end of the turn was told.
      underWay.unanswered = !voice.speaking()
      timing.stopped(session.line() - event.at)
      return turnLog.awaitUser()
    case 'user_text':
      if (event.isFinal && event.text === '') underWay.unanswered = false
      return takeUserText(deps, event)
    case 'noted':
      return noteIfStorable(deps, event)
    case 'memory':
      return turnLog.remember(event.memory)
    case 'tool_call':
      timing.decided()
      return callTool(deps, underWay, event)
    case 'tool_canceled':
      underWay.tools.delete(event.id)
      return post({ type: 'tool_canceled', id: event.id })
    case 'finished':
      underWay.finishing = { nextAction: event.nextAction }
      return
    // The keeper of the session has dealt with them.
    case 'expiring':
    case 'failed':
      return
  }
}

/** What the log cannot keep would stop the call at this fact; a model can mend it. */
function callTool(
  { session, post }: ReactionDeps,
  underWay: UnderWay,
  { id, name, arguments: given }: Extract<EngineEvent, { type: 'tool_call' }>,
): void {
  const refuse = (message: string): void =>
    session.toolResult(id, name, { status: 'error', error: { code: 'TOOL_FAILED', message } })
  const flaw = flawOf([id, name, given])
  if (flaw !== null) return refuse(`The arguments cannot be taken: ${flaw.message}.`)
  if (underWay.tools.size >= maxTools) return refuse('Too many tools are at work; wait for their results.')
  underWay.unanswered = false
  underWay.tools.add(id)
  post({ type: 'tool_called', id, name, arguments: given })
}

function noteIfStorable({ log, post }: ReactionDeps, { key, value }: Extract<EngineEvent, { type: 'noted' }>): void {
  if (flawOf(value) === null) post({ type: 'noted', key, value })
  else log.warn('a value that an engine noted cannot be stored', { key })
}

/** An agent that says its last words is not interrupted any more. */
async function yieldToCaller({ voice, session, signal }: ReactionDeps, underWay: UnderWay): Promise<void> {
  if (!voice.speaking() || underWay.finishing || underWay.cutting) return
  underWay.items.clear()
  underWay.cutting = true
  try {
    session.interrupt(await voice.cut())
  } finally {
    underWay.cutting = false
  }
  signal({ type: 'interrupted' })
}

function takeUserText(
  { clock, engine, turnLog, timing, sinceAnswer }: ReactionDeps,
  { text, isFinal, confidence, from, to }: Extract<EngineEvent, { type: 'user_text' }>,
): void {
  if (!isFinal) return turnLog.showUser(text, clock.now())
  timing.recognised()
  const times = { from: sinceAnswer(from), to: sinceAnswer(to) }
  turnLog.commitUser({ role: 'user', text, ...times, confidence, source: engine.name })
}

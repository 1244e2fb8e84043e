/** Owns what follows from each thing that an engine says in a talk: what is said to the caller, what the call learns, and who has to wait. */
import type { Turn } from '../../model/call.ts'
import type { Clock } from '../../model/clock.ts'
import { flawOf } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { maxToolsAtOnce as maxTools, type ToolResult } from '../../model/tool.ts'
import { engineLabel, noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import type { EngineEvent, VoiceEngine } from '../../model/voice-engine.ts'
import type { CallFact } from '../call/call-event.ts'
import type { AgentVoice } from './agent-voice.ts'
import type { SessionKeeper } from './session-keeper.ts'
import type { TurnLog } from './turn-log.ts'
import type { TurnTiming } from './turn-timing.ts'
import type { UnbrokenLine } from './unbroken-line.ts'

export type Reactions = ReturnType<typeof createReactions>

type Of<Type extends EngineEvent['type']> = Extract<EngineEvent, { type: Type }>

type ReactionDeps = {
  readonly clock: Clock
  readonly engine: VoiceEngine
  readonly log: Log
  readonly telemetry?: Telemetry
  post(fact: CallFact): void
  signal(message: ServerMessage): void
  readonly voice: AgentVoice
  readonly turnLog: TurnLog
  readonly timing: TurnTiming
  readonly session: SessionKeeper
  readonly line: Pick<UnbrokenLine, 'restart'>
  /** Ms since the epoch. */
  readonly answeredAt: number
}

export function createReactions(deps: ReactionDeps) {
  const { clock, engine, log, voice, turnLog, timing, session, post, telemetry = noTelemetry } = deps
  /** Those that the engine waits for. */
  const tools = new Set<string>()
  /** Those whose sound has not all come. */
  const items = new Set<string>()
  let callerSpeaks = false
  /** What the caller said has not been answered yet. */
  let unanswered = false
  let cutting = false
  let finishing: { readonly nextAction: string | null } | null = null

  const played = (lastPlayedSeq: number): void => {
    for (const itemId of voice.playedUpTo(lastPlayedSeq)) session.played(itemId)
    session.quiet()
    if (!finishing || voice.speaking()) return
    post({ type: 'agent_finished', ...finishing })
    finishing = null
  }
  /** An agent that says its last words is not interrupted any more. */
  const yieldToCaller = async (): Promise<void> => {
    if (!voice.speaking() || finishing || cutting) return
    items.clear()
    cutting = true
    const endCut = turnLog.cutting()
    const since = clock.now()
    try {
      const cut = await voice.cut()
      telemetry.observe('turn.barge_in', Math.max(0, clock.now() - since), { engine: engineLabel(engine.name) })
      session.interrupt(cut)
    } finally {
      cutting = false
      endCut()
    }
    deps.signal({ type: 'interrupted' })
  }
  /** What the log cannot keep would stop the call at this fact; a model can mend it. */
  const callTool = ({ id, name, arguments: given }: Of<'tool_call'>): void => {
    const refuse = (message: string): void =>
      session.toolResult(id, name, { status: 'error', error: { code: 'TOOL_FAILED', message } })
    const flaw = flawOf([id, name, given])
    if (flaw !== null) return refuse(`The arguments cannot be taken: ${flaw.message}.`)
    if (tools.size >= maxTools) return refuse('Too many tools are at work; wait for their results.')
    unanswered = false
    tools.add(id)
    post({ type: 'tool_called', id, name, arguments: given })
  }
  const noteIfStorable = ({ key, value }: Of<'noted'>): void => {
    if (flawOf(value) === null) post({ type: 'noted', key, value })
    else log.warn('a value that an engine noted cannot be stored', { key })
  }
  /** Of a time in the session, ms of the caller's voice that it heard. */
  const sinceAnswer = (at: number): number => Math.max(0, Math.round(session.since() - deps.answeredAt + at))
  const takeUserText = ({ text, isFinal, confidence, from, to, notes = [] }: Of<'user_text'>): void => {
    const times = { from: sinceAnswer(from), to: sinceAnswer(to) }
    const turn: Turn = { role: 'user', text, ...times, confidence, source: engine.name }
    const storable = notes.filter(({ value }) => flawOf(value) === null)
    if (!isFinal) return turnLog.showUser({ turn, notes: storable }, clock.now())
    if (text === '') unanswered = false
    timing.recognised()
    turnLog.commitUser(turn)
  }

  const react = (event: EngineEvent): void => {
    switch (event.type) {
      case 'audio':
        items.add(event.itemId)
        unanswered = false
        timing.audio(event.itemId)
        return voice.audio(event.itemId, event.payload, clock.now())
      case 'agent_text':
        timing.decided()
        return voice.text(event.itemId, event.text, clock.now())
      case 'item_done':
        items.delete(event.itemId)
        return voice.finish(event.itemId, clock.now())
      case 'user_speech_started':
        callerSpeaks = true
        turnLog.callerStarts()
        return void yieldToCaller().catch((error: unknown) => log.error('barge-in failed', { error }))
      case 'user_speech_stopped':
        callerSpeaks = false
        // A provider may have begun to answer before the end of the turn was told.
        unanswered = !voice.speaking()
        timing.stopped(session.heard() - event.at)
        return turnLog.awaitUser()
      case 'user_text':
        return takeUserText(event)
      case 'noted':
        return noteIfStorable(event)
      case 'warned':
        return post(event)
      case 'memory':
        turnLog.remember(event.memory)
        // What follows from what the caller says instead is not theirs.
        return cutting ? undefined : voice.remembers()
      case 'tool_call':
        timing.decided()
        return callTool(event)
      case 'tool_canceled':
        tools.delete(event.id)
        return post({ type: 'tool_canceled', id: event.id })
      case 'finished':
        finishing = { nextAction: event.nextAction }
        return
      // The keeper of the session has dealt with them.
      case 'expiring':
      case 'failed':
      // Counted before it comes here.
      case 'used':
        return
    }
  }

  return {
    played,
    engineEvent(event: EngineEvent): void {
      react(event)
      if (event.type === 'item_done' || event.type === 'finished') played(-1)
    },
    /** The line is closed: what the caller said still counts, and what it establishes. */
    lastWords(event: EngineEvent): void {
      const { type } = event
      if (type === 'finished' && event.nextAction !== null)
        post({ type: 'action_chosen', nextAction: event.nextAction })
      if (type === 'user_speech_started') turnLog.callerStarts()
      if (type === 'user_speech_stopped') turnLog.awaitUser()
      if (type === 'user_text' || type === 'noted' || type === 'memory') react(event)
    },
    toolResult(id: string, name: string, result: ToolResult): void {
      tools.delete(id)
      // The agent has not spoken about it yet.
      unanswered = true
      session.toolResult(id, name, result)
    },
    /** The line is another one: what it has not played is not heard. Last words end the call all the same. */
    async breakOff(): Promise<void> {
      deps.line.restart()
      if (!finishing) return yieldToCaller()
      post({ type: 'agent_finished', ...finishing })
      finishing = null
    },
    /** What was to end the call does not. */
    goOn(): void {
      finishing = null
    },
    isQuiet: (): boolean => !callerSpeaks && !unanswered && tools.size === 0 && finishing === null && !voice.speaking(),
    callerSpeaks: (): boolean => callerSpeaks,
    awaitsTools: (): boolean => tools.size > 0,
    /** When its session died the agent was in the middle of something, or was to answer, or the caller was speaking to it. */
    isDue: (): boolean => items.size > 0 || unanswered || callerSpeaks,
    /** Another session begins: of the old one nothing more comes. */
    reset(): void {
      // It is owed until something is said.
      unanswered ||= items.size > 0 || callerSpeaks
      for (const itemId of items) voice.finish(itemId, clock.now())
      items.clear()
      callerSpeaks = false
    },
  }
}

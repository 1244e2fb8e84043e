/**
 * Owns the talk between a caller and an engine while a call is answered: sound up to the engine, sound down to the leg, and who interrupts
 * whom. It decides nothing about the call; what happens is posted to the call's actor as facts.
 */
import { subjectsOf, type Bus, type Subscription } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import { decodeFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { LegCommand, LegEvent, RecordingMode } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import type { EngineConfig, EngineEvent, EngineSession, VoiceEngine } from '../../model/voice-engine.ts'
import type { CallFact } from '../call/call-event.ts'
import { reachLeg } from '../leg-link.ts'
import { createAgentVoice, type AgentVoice } from './agent-voice.ts'
import { createTurnLog, type TurnLog } from './turn-log.ts'
import { createVoicemailWatch } from './voicemail/voicemail-watch.ts'

export type ConversationDeps = {
  readonly callId: CallId
  readonly epoch: number
  readonly bus: Bus
  readonly engine: VoiceEngine
  readonly clock: Clock
  readonly log: Log
  /** Facts for the call's actor, in order. */
  post(fact: CallFact): void
  /** To the browser, if there is one. */
  signal(message: ServerMessage): void
}

export type ConversationStart = {
  readonly config: EngineConfig
  readonly recording: { readonly key: string; readonly mode: RecordingMode }
  /** Ms since the epoch. */
  readonly answeredAt: number
  /** Turns that were committed before (by an actor that was taken over). */
  readonly turns: number
}

export type Conversation = {
  /** Posts `leg_disconnected` or `engine_failed` when it cannot begin. Never throws. */
  open(): Promise<void>
  legEvent(event: LegEvent): void
  /** Falls silent, posts what was said up to here, closes the engine's session. Idempotent. */
  stop(): Promise<void>
  /** Closes the engine's session and no more: the call goes on with another actor. Idempotent. */
  abandon(): void
}

/** A leg that is there and does not answer may be on the other side of a bus that is just coming back; asked again, it does nothing twice. */
const startAttempts = 3
/** What an engine may say before its session is in our hands. */
const maxEarlyEvents = 10_000

export function createConversation(deps: ConversationDeps, start: ConversationStart): Conversation {
  const turnLog = createTurnLog({ ...deps, turns: start.turns, memory: start.config.memory })
  const voice = createAgentVoice({ ...deps, answeredAt: start.answeredAt, turnLog })
  let session: EngineSession | null = null
  let hearing: Subscription | null = null
  let stopped = false
  const early: EngineEvent[] = []
  const react = createReactions(deps, voice, turnLog, () => session)
  const machine = watchForMachine(deps, start)

  const fromEngine = (event: EngineEvent): void => {
    if (stopped) return
    machine?.engineEvent(event)
    if (session) return react.engineEvent(event)
    if (early.length < maxEarlyEvents) early.push(event)
  }
  const openSession = async (): Promise<void> => {
    try {
      session = await deps.engine.open(start.config, fromEngine)
    } catch (error) {
      deps.log.warn('voice session could not be opened', { error })
      return deps.post({ type: 'engine_failed', details: error instanceof Error ? error.message : String(error) })
    }
    if (stopped) return session.close()
    early.splice(0).forEach(react.engineEvent)
    hearing = deps.bus.subscribe(subjectsOf(deps.callId).up, (message) => {
      const frame = decodeFrame(message.payload)
      if (frame?.epoch !== deps.epoch) return
      session?.hear(frame.payload)
      machine?.hear(frame.payload)
    })
  }

  const abandon = (): void => {
    stopped = true
    hearing?.close()
    session?.close()
  }

  return {
    async open() {
      const { hears, speaks } = deps.engine
      const command = { type: 'start', epoch: deps.epoch, hears, speaks, recording: start.recording } as const
      const reply = await startLeg(deps, command, () => stopped)
      if (stopped) return
      if (reply.type === 'started') return openSession()
      const details = `the leg did not start: ${JSON.stringify(reply)}`
      deps.post({ type: 'leg_disconnected', cause: 'failed', details })
    },
    legEvent(event) {
      if (event.type === 'dtmf') session?.dtmf(event.digit)
      if (event.type === 'drained') react.played(event.lastPlayedSeq)
    },
    async stop() {
      if (stopped) return
      abandon()
      if (voice.speaking()) await voice.cut()
    },
    abandon,
  }
}

async function startLeg({ bus, callId }: ConversationDeps, command: LegCommand, isStopped: () => boolean) {
  let reply = await reachLeg(bus, callId, command)
  for (let again = 1; reply.type === 'silent' && again < startAttempts && !isStopped(); again++)
    reply = await reachLeg(bus, callId, command)
  return reply
}

/** In the background of an outbound call: did an answering machine take it? */
function watchForMachine({ engine, clock, post }: ConversationDeps, { config, answeredAt }: ConversationStart) {
  if (config.direction !== 'outbound') return null
  const watch = createVoicemailWatch(engine.hears, Math.max(0, clock.now() - answeredAt))
  const judged = (signs: readonly string[] | null): void => {
    if (signs) post({ type: 'voicemail_detected', signs })
  }
  return {
    hear: (payload: Uint8Array): void => judged(watch.hear(payload)),
    engineEvent(event: EngineEvent): void {
      if (event.type === 'audio') watch.agentSpoke()
      if (event.type === 'user_text' && event.isFinal) judged(watch.read(event.text))
    },
  }
}

function createReactions(
  deps: ConversationDeps,
  voice: AgentVoice,
  turnLog: TurnLog,
  sessionOf: () => EngineSession | null,
) {
  const { clock, engine } = deps
  let finishing: { nextAction: string | null } | null = null

  const played = (lastPlayedSeq: number): void => {
    for (const itemId of voice.playedUpTo(lastPlayedSeq)) sessionOf()?.played(itemId)
    if (!finishing || voice.speaking()) return
    deps.post({ type: 'agent_finished', ...finishing })
    finishing = null
  }
  /** An agent that says its last words is not interrupted any more. */
  const yieldToCaller = async (): Promise<void> => {
    if (!voice.speaking() || finishing) return
    const heard = await voice.cut()
    sessionOf()?.interrupt(heard)
    deps.signal({ type: 'interrupted' })
  }
  const userText = (event: Extract<EngineEvent, { type: 'user_text' }>): void => {
    const { text, confidence, from, to } = event
    if (!event.isFinal) return turnLog.showUser(text, clock.now())
    turnLog.commit({ role: 'user', text, from, to, confidence, source: engine.name })
  }

  const engineEvent = (event: EngineEvent): void => {
    switch (event.type) {
      case 'audio':
        return voice.audio(event.itemId, event.payload, clock.now())
      case 'agent_text':
        return voice.text(event.itemId, event.text, clock.now())
      case 'item_done':
        voice.finish(event.itemId, clock.now())
        return played(-1)
      case 'user_speech_started':
        return void yieldToCaller().catch((error: unknown) => deps.log.error('barge-in failed', { error }))
      case 'user_speech_stopped':
        return
      case 'user_text':
        return userText(event)
      case 'noted':
        return deps.post({ type: 'noted', key: event.key, value: event.value })
      case 'memory':
        return turnLog.remember(event.memory)
      case 'finished':
        finishing = { nextAction: event.nextAction }
        return played(-1)
      case 'failed':
        return deps.post({ type: 'engine_failed', details: event.details, hasSpoken: voice.hasSpoken() })
    }
  }
  return { engineEvent, played }
}

/**
 * Owns the talk between a caller and an engine while a call is answered: sound up to the engine, sound down to the leg, and who interrupts
 * whom. It decides nothing about the call; what happens is posted to the call's actor as facts.
 */
import { subjectsOf, type Bus, type Subscription } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import { decodeFrame, type LineFormats } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import { storableText } from '../../model/json.ts'
import type { LegCommand, LegEvent, RecordedParts, RecordingMode } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import type { Telemetry } from '../../model/telemetry.ts'
import type { EngineConfig, EngineEvent, VoiceEngine } from '../../model/voice-engine.ts'
import type { ToolResult } from '../../model/tool.ts'
import { silenceOf } from '../../media/codecs/silence.ts'
import type { CallFact } from '../call/call-event.ts'
import { reachLeg } from '../node/leg-link.ts'
import { createAgentVoice, type AgentVoice } from './agent-voice.ts'
import { createMemoryBound } from './memory-bound.ts'
import { createPrivateKeys, type PrivateKeys } from './private-keys.ts'
import { createReactions, type Reactions } from './reactions.ts'
import { createSessionKeeper, type SessionKeeper } from './session-keeper.ts'
import { createTurnLog, type TurnLog } from './turn-log.ts'
import { createTurnTiming, type TurnTiming } from './turn-timing.ts'
import type { VoicemailSign } from './voicemail/judge.ts'
import { createMessageLeaving, type MessageLeaving } from './voicemail/message-leaving.ts'
import { createVoicemailWatch } from './voicemail/voicemail-watch.ts'

export type ConversationDeps = {
  readonly callId: CallId
  readonly epoch: number
  readonly bus: Bus
  readonly engine: VoiceEngine
  readonly clock: Clock
  readonly log: Log
  readonly telemetry?: Telemetry
  /** Facts for the call's actor, in order. */
  post(fact: CallFact): void
  /** To the browser, if there is one. */
  signal(message: ServerMessage): void
  /** A frame of the leg came. */
  legSeen?(): void
}

export type ConversationStart = {
  /** `formats` are what the leg chooses. */
  readonly config: Omit<EngineConfig, 'formats'>
  /** Null: the call is not recorded. */
  readonly recording: { readonly key: string; readonly mode: RecordingMode; readonly parts?: RecordedParts } | null
  /** Its recording is paused: keys that are pressed are for the engine alone. */
  readonly isPaused?: boolean
  /** Ms since the epoch. */
  readonly answeredAt: number
  /** Turns that were committed before (by an actor that was taken over). */
  readonly turns: number
  /** Of what was said to the caller before the talk, when something was. */
  readonly earlier?: Earlier
}

/** What the caller said and pressed while something was said to its end. */
export type Earlier = {
  readonly keys: PrivateKeys
  /** Once; nothing more is kept. `nextSeq`: of the first frame that the leg has not had. */
  take(formats: LineFormats): {
    readonly frames: readonly Uint8Array[]
    readonly pressed: readonly string[]
    readonly nextSeq: number
  }
}

export type Conversation = {
  /** Posts `leg_disconnected` or `engine_failed` when it cannot begin. Never throws. */
  open(): Promise<void>
  legEvent(event: LegEvent): void
  recordingPaused(isPaused: boolean): void
  /** Of a tool that the engine called. */
  toolResult(id: string, name: string, result: ToolResult): void
  /** An answering machine has taken the call: it is left the script's message. Ends in `agent_finished`. */
  leaveMessage(): Promise<void>
  /** The line is closed, or about to be: the agent says nothing more, what was heard of it is a turn. Idempotent. */
  fallSilent(): Promise<void>
  /** Falls silent, hears out what the caller was saying, posts what was said up to here, closes the engine's session. Bounded. Idempotent. */
  stop(): Promise<void>
  /** Closes the engine's session and no more: the call goes on with another actor. Idempotent. */
  abandon(): void
}

/** Of what a provider says of itself. */
export const maxDetails = 300
/** A caller who has hung up waits for nothing, the end of the call waits for the last words. */
const hearOutWithin = 6_000
const maxWaitingKeys = 32
/** A leg that is there and does not answer may be on the other side of a bus that is just coming back; asked again, it does nothing twice. */
const startAttempts = 3

/** What there is once the leg has said in which formats it speaks. */
type Talking = {
  readonly session: SessionKeeper
  readonly turnLog: TurnLog
  readonly timing: TurnTiming
  readonly hearing: Subscription
  /** Before the session is open. */
  hearEarlier(frames: readonly Uint8Array[]): void
  played(lastPlayedSeq: number): void
  fallSilent(): Promise<void>
  toolResult(id: string, name: string, result: ToolResult): void
  leaveMessage(): Promise<void>
}

export function createConversation(deps: ConversationDeps, start: ConversationStart): Conversation {
  let talking: Talking | null = null
  const keys = start.earlier?.keys ?? createPrivateKeys(start.isPaused === true)
  /** Pressed before the leg has started. */
  const waiting: string[] = []
  /** The talk is over, for the caller at least. */
  let silenced = false
  let stopped = false

  const abandon = (): void => {
    silenced = true
    stopped = true
    talking?.hearing.close()
    talking?.session.close()
    talking?.turnLog.flush()
  }
  const fallSilent = async (): Promise<void> => {
    if (silenced) return
    silenced = true
    await talking?.fallSilent()
  }
  const press = (digit: string): void => {
    keys.pressed(digit)
    if (talking) talking.session.dtmf(digit)
    else if (waiting.length < maxWaitingKeys) waiting.push(digit)
  }
  const begin = (formats: LineFormats): Promise<void> => {
    const earlier = start.earlier?.take(formats)
    talking = beginTalking(deps, { ...start, keys, firstSeq: earlier?.nextSeq ?? 0 }, formats)
    talking.hearEarlier(earlier?.frames ?? [])
    for (const digit of [...(earlier?.pressed ?? []), ...waiting.splice(0)]) talking.session.dtmf(digit)
    return talking.session.open()
  }
  return {
    async open() {
      const { hears, speaks } = deps.engine
      const { epoch } = deps
      const formats = { hears: [...hears], speaks: [...speaks] }
      const command: LegCommand = { type: 'start', epoch, ...formats, recording: start.recording }
      const reply = await startLeg(deps, command, () => silenced)
      if (silenced) return
      if (reply.type === 'started') return begin({ hears: reply.hears, speaks: reply.speaks })
      const details = `the leg did not start: ${JSON.stringify(reply)}`
      deps.post({ type: 'leg_disconnected', cause: 'failed', details })
    },
    legEvent(event) {
      if (silenced) return
      if (event.type === 'dtmf') press(event.digit)
      if (event.type === 'sounding') talking?.timing.sounding()
      if (event.type === 'drained') talking?.played(event.lastPlayedSeq)
    },
    recordingPaused: keys.paused,
    toolResult(id, name, result) {
      if (!silenced) talking?.toolResult(id, name, result)
    },
    async leaveMessage() {
      if (!silenced) await talking?.leaveMessage()
    },
    fallSilent,
    async stop() {
      await fallSilent()
      if (stopped) return
      if (talking) await deadline(deps.clock, hearOutWithin, talking.session.hearOut(), goOn)
      abandon()
    },
    abandon,
  }
}

type Begun = ConversationStart & { readonly keys: PrivateKeys; readonly firstSeq: number }

function beginTalking(deps: ConversationDeps, start: Begun, formats: LineFormats): Talking {
  const { clock, bus, callId, epoch, engine, log, post } = deps
  const memories = createMemoryBound(engine, log)
  const config: EngineConfig = { ...start.config, formats, memory: memories.kept(start.config.memory) ?? null }
  const turnLog = createTurnLog({
    ...deps,
    turns: start.turns,
    memory: config.memory,
    history: config.history,
    tellsInterim: config.worker.transcriptEvents === 'interim',
    source: engine.name,
  })
  const timing = createTurnTiming(deps)
  const { answeredAt, firstSeq } = start
  const voice = createAgentVoice({ ...deps, speaks: formats.speaks, firstSeq, answeredAt, turnLog, timing })
  const hasSpoken = (): boolean => voice.hasSpoken() || config.history.some(({ role }) => role === 'agent')
  const finished = (): void => post({ type: 'agent_finished', nextAction: null })
  let isSilenced = false
  const session: SessionKeeper = createSessionKeeper({
    // Masked before it is measured.
    engine: memories.boundedIn(start.keys.keptBy(engine)),
    clock,
    log,
    config,
    known: () => knownOf(turnLog, voice, reactions),
    isQuiet: () => reactions.isQuiet() && !turnLog.awaitsText() && !leaving.isUnderWay(),
    take(event) {
      if (isSilenced) return reactions.lastWords(event)
      if (!leaving.admits(event)) return
      voicemailWatch?.engineEvent(event)
      reactions.engineEvent(event)
      session.quiet()
    },
    opened() {
      reactions.reset()
      // Another session knows nothing of the answering machine.
      if (leaving.isUnderWay()) reactions.engineEvent({ type: 'finished', nextAction: null })
    },
    lost: (details) =>
      post({ type: 'engine_failed', details: storableText(details, maxDetails), hasSpoken: hasSpoken() }),
  })
  const leaving = createMessageLeaving({
    hears: formats.hears,
    voice,
    session,
    begun: () => reactions.goOn(),
    done: finished,
  })
  const voicemailWatch = watchForVoicemail(deps, start, { hears: formats.hears, session, leaving })
  const reactions = createReactions({ ...deps, voice, turnLog, timing, session, answeredAt })
  const silence = silenceOf(formats.hears)
  const hearing = bus.subscribe(subjectsOf(callId).up, (message) => {
    const frame = decodeFrame(message.payload)
    if (frame?.epoch !== epoch) return
    deps.legSeen?.()
    if (leaving.hear(frame.payload)) return session.hear(silence)
    session.hear(frame.payload)
    voicemailWatch?.hear(frame.payload)
  })
  const { played, toolResult } = reactions
  const fallSilent = async (): Promise<void> => {
    isSilenced = true
    hearing.close()
    if (voice.speaking()) await voice.cut()
  }
  const hearEarlier = (frames: readonly Uint8Array[]): void => {
    session.hearEarlier(frames)
    for (const frame of frames) voicemailWatch?.hear(frame)
  }
  return { session, turnLog, timing, hearing, hearEarlier, played, fallSilent, toolResult, leaveMessage: leaving.begin }
}

/** A session that takes the place of a dead one has to answer what was said last, and to go on with what was broken off. */
function knownOf(turnLog: TurnLog, voice: AgentVoice, reactions: Reactions) {
  // Of the session before no text comes any more.
  turnLog.flush()
  const onItsWay = voice.onItsWay().map((text) => ({ role: 'agent', text }) as const)
  const history = [...turnLog.said(), ...onItsWay]
  const isDue = reactions.isDue() || history.at(-1)?.role !== 'agent'
  // The result of a tool asks for a reply by itself.
  return { history, owesReply: isDue && !reactions.awaitsTools(), memory: turnLog.memory() }
}

export async function startLeg({ bus, callId }: ConversationDeps, command: LegCommand, isStopped: () => boolean) {
  let reply = await reachLeg(bus, callId, command)
  for (let again = 1; reply.type === 'silent' && again < startAttempts && !isStopped(); again++)
    reply = await reachLeg(bus, callId, command)
  return reply
}

/** In the background of an outbound call: did an answering machine take it? */
function watchForVoicemail(
  { clock, post }: ConversationDeps,
  { config, answeredAt }: ConversationStart,
  {
    hears,
    session,
    leaving,
  }: Pick<LineFormats, 'hears'> & { readonly session: SessionKeeper; readonly leaving: MessageLeaving },
) {
  if (config.direction !== 'outbound') return null
  const watch = createVoicemailWatch(hears, Math.max(0, clock.now() - answeredAt))
  const judged = (signs: readonly VoicemailSign[] | null): void => {
    if (signs === null) return
    leaving.found(signs)
    post({ type: 'voicemail_detected', signs, ...(session.voicemail() !== null && { leavesMessage: true }) })
  }
  return {
    hear: (payload: Uint8Array): void => judged(watch.hear(payload)),
    engineEvent(event: EngineEvent): void {
      if (event.type === 'audio') watch.agentSpoke()
      if (event.type === 'user_text' && event.isFinal) judged(watch.read(event.text))
    },
  }
}

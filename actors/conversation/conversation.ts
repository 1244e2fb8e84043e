/**
 * Owns the talk between a caller and an engine while a call is answered: sound up to the engine, sound down to the leg, and who interrupts
 * whom. It decides nothing about the call; what happens is posted to the call's actor as facts.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Bus } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import type { Frame, LineFormats } from '../../model/frame.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import { isKeyEvent, type KeyEvent, type LegEvent, type StartedRecording } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import type { Telemetry } from '../../model/telemetry.ts'
import type { EngineConfig, VoiceEngine } from '../../model/voice-engine.ts'
import type { ToolResult } from '../../model/tool.ts'
import { silenceOf } from '../../media/codecs/silence.ts'
import type { CallFact } from '../call/call-event.ts'
import { createAgentVoice } from './agent-voice.ts'
import type { Earlier } from './earlier.ts'
import { knownOf } from './known-of.ts'
import { goOnFrom, type GoingOn } from './left-words.ts'
import { tellLost } from './lost-engine.ts'
import { createMemoryBound } from './memory-bound.ts'
import { createPrivateKeys, type PrivateKeys } from './private-keys.ts'
import { createReactions } from './reactions.ts'
import { createSessionBacklog, leftTogether } from './session-backlog.ts'
import { createSessionKeeper, type SessionKeeper } from './session-keeper.ts'
import { createSettledSpeech } from './settled-speech.ts'
import { hasStarted, lineOf, listens, startTalk, type Kept, type Started, type StartWishes } from './start-leg.ts'
import type { Talking } from './talking.ts'
import { createToldWords } from './told-words.ts'
import { createTurnLog } from './turn-log.ts'
import { createTurnTiming } from './turn-timing.ts'
import { createUnbrokenLine, hearLine } from './unbroken-line.ts'
import { createMessageLeaving } from './voicemail/message-leaving.ts'
import { watchForVoicemail } from './voicemail/watch-for-voicemail.ts'

export type ConversationDeps = {
  readonly callId: CallId
  readonly epoch: number
  /** Of the process; absent: the leg is in it. */
  readonly nodeId?: NodeId
  readonly bus: Bus
  readonly engine: VoiceEngine
  /** Another one is there to take its place: that it is lost is told at once. */
  readonly isReplaceable?: boolean
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
  readonly recording: StartedRecording | null
  /** Its recording is paused: keys that are pressed are for the engine alone. */
  readonly isPaused?: boolean
  /** Ms since the epoch. */
  readonly answeredAt: number
  /** Turns that were committed before (by an actor that was taken over). */
  readonly turns: number
  /** When the last turn of the agent among them began, ms since the answer; absent: none of them is. */
  readonly agentUntil?: number
  /** Of what was said to the caller before the talk, or with the engine whose place is taken, when something was. */
  readonly earlier?: Earlier
}

export type Conversation = {
  /** Posts `leg_disconnected` or `engine_failed` when it cannot begin. Never throws. */
  open(): Promise<void>
  /** The caller has come back by another leg, which knows nothing of the talk; it is not recorded. Posts as `open`. */
  rejoin(): Promise<void>
  legEvent(event: LegEvent): void
  /** Nobody speaks, and nothing is owed to anybody. */
  isQuiet(): boolean
  /** What the caller said up to this time, ms since the answer, is written down. */
  written(until: number, text: string): void
  recordingPaused(isPaused: boolean): void
  /** The agent is told this, and the caller hears nothing of it. */
  whisper(text: string): void
  /** Of a tool that the engine called. */
  toolResult(id: string, name: string, result: ToolResult): void
  /** An answering machine has taken the call: it is left the script's message. Ends in `agent_finished`. */
  leaveMessage(): Promise<void>
  /** The line is closed, or about to be: the agent says nothing more, what was heard of it is a turn. Idempotent. */
  fallSilent(): Promise<void>
  /** Another actor goes on: what the agent is saying is said on, and nothing more is told of it here. Idempotent. */
  leave(): void
  /** Falls silent, hears out what the caller was saying, posts what was said up to here, closes the engine's session. Bounded. Idempotent. */
  stop(): Promise<void>
  /** Closes the engine's session and no more: the call goes on with another actor, or another engine. Idempotent. */
  abandon(): void
  /** For the talk that takes its place in this actor. */
  readonly earlier: Earlier
}

/** A caller who has hung up waits for nothing, the end of the call waits for the last words. */
const hearOutWithin = 6_000

export function createConversation(deps: ConversationDeps, start: ConversationStart): Conversation {
  let talking: Talking | null = null
  const keys = start.earlier?.keys ?? createPrivateKeys(start.isPaused === true)
  /** Pressed and typed before the leg has started. */
  const early = createSessionBacklog()
  /** The same. */
  const whispers: string[] = []
  /** Told before anybody asked: of a former actor's words. */
  let drained = -1
  const playedTo = (lastPlayedSeq: number): void => {
    if (talking) talking.played(lastPlayedSeq)
    else drained = lastPlayedSeq
  }
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
  const takeKey = (event: KeyEvent): void => {
    const to = talking?.session ?? early
    if (event.type === 'typed') return to.typed(event.text)
    keys.pressed(event.digit, event.line?.hidden === true)
    to.dtmf(event.digit)
  }
  /** Until this one has the line, who spoke before does. */
  const press = (event: KeyEvent): void => (talking?.line.press ?? start.earlier?.press ?? takeKey)(event)
  const begin = (formats: LineFormats, { waits, keeps, left }: Started): Promise<void> => {
    const earlier = start.earlier?.take(formats)
    const goingOn = left && !earlier ? goOnFrom(left, start) : null
    const firstSeq = earlier?.nextSeq ?? left?.nextSeq ?? 0
    talking = beginTalking(deps, { ...start, keys, takeKey, firstSeq, goingOn, ...lineOf({ waits, keeps }) }, formats)
    if (left) talking.played(Math.max(left.lastPlayedSeq, drained))
    if (waits) talking.session.expect(waits.kept)
    if (waits) void listens(deps, () => silenced)
    talking.hearEarlier(earlier?.frames ?? [])
    for (const result of earlier?.results ?? []) talking.toolResult(...result)
    const waiting = early.leave()
    for (const digit of [...(earlier?.pressed ?? []), ...waiting.pressed]) talking.session.dtmf(digit)
    for (const text of [...(earlier?.typed ?? []), ...waiting.typed]) talking.session.typed(text)
    for (const text of whispers.splice(0)) talking.session.whisper(text)
    return talking.session.open()
  }
  const started = (command: StartWishes) => startTalk(deps, command, () => silenced)
  const tryOpen = async (): Promise<void> => {
    const { hears, speaks } = deps.engine
    const line = await started({ hears: [...hears], speaks: [...speaks], recording: start.recording, goesOn: true })
    if (line) await begin({ hears: line.hears, speaks: line.speaks }, line)
  }
  let opening: Promise<void> | null = null
  const open = (): Promise<void> => (opening ??= tryOpen().finally(() => (opening = null)))
  return {
    open,
    async rejoin() {
      await opening
      if (silenced) return
      if (!talking) return open()
      // Who took the call over may have begun with the new leg before anybody told of it.
      if (await hasStarted(deps)) return
      await talking.breakOff()
      const { hears, speaks } = talking.formats
      const line = await started({ hears: [hears], speaks: [speaks], recording: null })
      if (!line?.waits) return
      talking.session.expect(line.waits.kept)
      await listens(deps, () => silenced)
    },
    legEvent(event) {
      if (silenced) return
      if (isKeyEvent(event)) press(event)
      if (event.type === 'sounding') talking?.timing.sounding()
      if (event.type === 'drained') playedTo(event.lastPlayedSeq)
    },
    isQuiet: () => !silenced && (talking?.isQuiet() ?? false),
    written: (until, text) => talking?.written(until, text),
    recordingPaused: keys.paused,
    whisper(text) {
      if (silenced) return
      if (talking) talking.session.whisper(text)
      else whispers.push(text)
    },
    toolResult(id, name, result) {
      // One that is silenced keeps it for the talk that takes its place.
      if (silenced) talking?.session.toolResult(id, name, result)
      else talking?.toolResult(id, name, result)
    },
    async leaveMessage() {
      if (!silenced) await talking?.leaveMessage()
    },
    fallSilent,
    leave() {
      if (!silenced) talking?.leave()
      silenced = true
    },
    async stop() {
      await fallSilent()
      if (stopped) return
      if (talking) await deadline(deps.clock, hearOutWithin, talking.session.hearOut(), goOn)
      abandon()
    },
    abandon,
    earlier: {
      keys,
      press,
      take(formats) {
        if (talking) return talking.handOver(formats)
        // It never began: what it was to take over goes on to the next one.
        const before = start.earlier?.take(formats)
        return { ...leftTogether(before, early.leave()), nextSeq: before?.nextSeq ?? 0 }
      },
    },
  }
}

type Begun = ConversationStart & {
  readonly keys: PrivateKeys
  readonly firstSeq: number
  readonly goingOn: GoingOn | null
  takeKey(event: KeyEvent): void
} & Kept

function beginTalking(deps: ConversationDeps, start: Begun, formats: LineFormats): Talking {
  const { clock, engine, log, post } = deps
  const memories = createMemoryBound(engine, log)
  const { answeredAt, firstSeq, goingOn } = start
  const memory = memories.kept((goingOn ?? start).config.memory) ?? null
  const config: EngineConfig = { ...start.config, ...goingOn?.config, formats, memory }
  const turnLog = createTurnLog({
    ...deps,
    turns: start.turns,
    memory,
    history: start.config.history,
    tellsInterim: config.worker.transcriptEvents === 'interim',
    source: engine.name,
  })
  const timing = createTurnTiming(deps)
  const line = createUnbrokenLine({
    ...deps,
    ...start,
    take: (frame) => hear(frame),
    leftOut: (frames) => session.missed(frames),
    takeKey(event) {
      start.takeKey(event)
      if (start.isKept && event.line) settled.pressed(event.line.seq, event.type === 'typed' ? event.text : null)
    },
    caughtUp(lastPlayedSeq) {
      words.again()
      reactions.played(lastPlayedSeq)
    },
  })
  const words = createToldWords({ ...deps, answeredAt, memory: turnLog.memory })
  const said = { answeredAt, turnLog, timing, line, words }
  const voice = createAgentVoice({ ...deps, ...said, speaks: formats.speaks, firstSeq })
  const hasSpoken = (): boolean => voice.hasSpoken() || config.history.some(({ role }) => role === 'agent')
  let isSilenced = false
  const isQuiet = (): boolean => reactions.isQuiet() && !turnLog.awaitsText() && !leaving.isUnderWay()
  const session: SessionKeeper = createSessionKeeper({
    // Masked before it is measured.
    engine: memories.boundedIn(start.keys.keptBy(engine)),
    isReplaceable: deps.isReplaceable === true,
    clock,
    log,
    ...(deps.telemetry && { telemetry: deps.telemetry }),
    config,
    known: () => knownOf(turnLog, voice, reactions),
    isQuiet,
    take(event) {
      if (isSilenced) return reactions.lastWords(event)
      if (!leaving.admits(event)) return
      voicemailWatch?.engineEvent(event)
      if (event.type === 'finished') words.ends(event.nextAction)
      reactions.engineEvent(event)
      session.quiet()
    },
    opened() {
      reactions.reset()
      // Another session knows nothing of the answering machine.
      if (leaving.isUnderWay()) reactions.engineEvent({ type: 'finished', nextAction: null })
    },
    lost: (details) => void tellLost({ ...deps, voice, turnLog, hasSpoken: hasSpoken() }, details),
  })
  const leaving = createMessageLeaving({
    hears: formats.hears,
    voice,
    session,
    begun: () => reactions.goOn(),
    done: () => post({ type: 'agent_finished', nextAction: null }),
  })
  const voicemailWatch = watchForVoicemail({ ...deps, ...config, answeredAt, hears: formats.hears, session, leaving })
  const reactions = createReactions({ ...deps, ...said, voice, session })
  const settled = createSettledSpeech({
    ...deps,
    heardUntil: () => session.since() + session.heard(),
    isOpen: () => !session.isThere() || reactions.callerSpeaks() || turnLog.awaitsText(),
  })
  const silence = silenceOf(formats.hears)
  const hear = ({ payload, seq }: Frame): void => {
    if (leaving.hear(payload)) return session.hear(silence)
    session.hear(payload)
    voicemailWatch?.hear(payload)
    if (start.isKept) settled.heard(seq)
  }
  const hearing = hearLine(deps, line)
  if (goingOn) voice.adopt(goingOn.adopted, firstSeq, clock.now())
  if (goingOn?.ends) reactions.engineEvent({ type: 'finished', ...goingOn.ends })
  const fallDeaf = (): void => {
    isSilenced = true
    hearing.close()
  }
  const fallSilent = async (): Promise<void> => {
    fallDeaf()
    if (voice.speaking()) await voice.cut()
  }
  const leave = (): void => {
    fallDeaf()
    words.again()
  }
  const hearEarlier = (frames: readonly Uint8Array[]): void => {
    session.hearEarlier(frames)
    for (const frame of frames) voicemailWatch?.hear(frame)
  }
  const handOver: Earlier['take'] = (wanted) => {
    hearing.close()
    const { frames, ...left } = session.leave()
    const heard = isDeepStrictEqual(wanted.hears, formats.hears) ? frames : []
    return { ...left, frames: heard, nextSeq: voice.nextSeq() }
  }
  const written = (until: number, text: string): void =>
    void (start.isKept && settled.written(answeredAt + until, text))
  const ways = { ...reactions, isQuiet, written, fallSilent, leave, leaveMessage: leaving.begin, handOver }
  return { session, formats, turnLog, timing, hearing, line, hearEarlier, ...ways }
}

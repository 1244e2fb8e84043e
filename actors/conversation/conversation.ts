/**
 * Owns the talk between a caller and an engine while a call is answered: sound up to the engine, sound down to the leg, and who interrupts
 * whom. It decides nothing about the call; what happens is posted to the call's actor as facts.
 */
import type { Turn } from '../../model/call.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import type { LineFormats } from '../../model/frame.ts'
import { isKeyEvent, type KeyEvent, type LegEvent, type SettledLine, type StartedRecording } from '../../model/leg.ts'
import type { ToolResult } from '../../model/tool.ts'
import type { Said } from '../../model/voice-engine.ts'
import { beginTalking } from './begin-talking.ts'
import type { Earlier } from './earlier.ts'
import { goOnFrom } from './left-words.ts'
import { createPrivateKeys } from './private-keys.ts'
import { createSessionBacklog, leftTogether } from './session-backlog.ts'
import { lineOf, listens, lookAtLeg, recordingFrom, startTalk, type Started, type StartWishes } from './start-leg.ts'
import type { ConversationDeps, ConversationStart } from './talk-start.ts'
import type { Talking } from './talking.ts'

export type Conversation = {
  /** Posts `leg_disconnected` or `engine_failed` when it cannot begin. Never throws. */
  open(): Promise<void>
  /** The caller has come back by another leg, which knows nothing of the talk. Posts as `open`. */
  rejoin(): Promise<void>
  legEvent(event: LegEvent): void
  /** Nobody speaks, and nothing is owed to anybody. */
  isQuiet(): boolean
  /** What this turn of the caller settles of the line when it is written down; null: nothing. */
  settles(turn: Turn): SettledLine | null
  /** It is. */
  written(settled: SettledLine): void
  recordingPaused(isPaused: boolean): void
  /** The agent is told this, and the caller hears nothing of it. */
  whisper(text: string): void
  /** A turn was written that was said before this talk: those to come have higher numbers, and the agent is told. */
  turnFound(said: Said): void
  /** Of a tool that the engine called. */
  toolResult(id: string, name: string, result: ToolResult): void
  /** An answering machine has taken the call: it is left the script's message. Ends in `agent_finished`. */
  leaveMessage(): Promise<void>
  /** The line is closed, or about to be: the agent says nothing more, what was heard of it is a turn. Idempotent. */
  fallSilent(): Promise<void>
  /** Another actor goes on: what the agent is saying is said on, and nothing more is told of it here. Gives keys that are for that one. Idempotent. */
  leave(): KeyEvent[]
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
  /** The same. */
  const found: Said[] = []
  /** Told before anybody asked: of a former actor's words. */
  let drained = -1
  const playedTo = (lastPlayedSeq: number): void => {
    if (talking) talking.played(lastPlayedSeq)
    else drained = lastPlayedSeq
  }
  /** The talk is over, for the caller at least. */
  let silenced = false
  let stopped = false
  let isPaused = start.isPaused === true

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
  const tellFound = (said: Said): void => {
    talking?.turnLog.added(said)
    talking?.session.recall(said)
  }
  const begin = (formats: LineFormats, { waits, keeps, left }: Started): Promise<void> => {
    const earlier = start.earlier?.take(formats)
    const goingOn = left && !earlier ? goOnFrom(left, start) : null
    const firstSeq = earlier?.nextSeq ?? left?.nextSeq ?? 0
    const from = { ...start, firstSeq, goingOn }
    talking = beginTalking(deps, { ...from, keys, takeKey, ...lineOf({ waits, keeps }) }, formats)
    found.splice(0).forEach(tellFound)
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
  /** A pause outlives the leg. */
  const recordingNow = (): StartedRecording | null =>
    start.recording && { ...start.recording, parts: isPaused ? 'none' : 'both' }
  const started = (command: StartWishes) => startTalk(deps, command, () => silenced)
  const tryOpen = async (recording: StartedRecording | null): Promise<void> => {
    const { hears, speaks } = deps.engine
    const { settled } = start
    const from = recordingFrom(deps, { ...start, recording })
    const wishes = { hears: [...hears], speaks: [...speaks], recording: from, ...(settled && { settled }) }
    const line = await started({ ...wishes, goesOn: true })
    if (line) await begin({ hears: line.hears, speaks: line.speaks }, line)
  }
  let opening: Promise<void> | null = null
  const open = (recording = start.recording): Promise<void> =>
    (opening ??= tryOpen(recording).finally(() => (opening = null)))
  return {
    open: () => open(),
    async rejoin() {
      await opening
      if (silenced) return
      const { isStarted, records } = await lookAtLeg(deps)
      const recording = records ? recordingNow() : null
      if (!talking) return open(recording)
      // Who took the call over may have begun with the new leg before anybody told of it.
      if (isStarted) return
      talking.restart()
      await talking.breakOff()
      const { hears, speaks } = talking.formats
      const from = recordingFrom(deps, { ...start, recording })
      const line = await started({ hears: [hears], speaks: [speaks], recording: from })
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
    settles: (turn) => talking?.settles(turn) ?? null,
    written: (settled) => talking?.written(settled),
    recordingPaused(paused) {
      isPaused = paused
      keys.paused(paused)
    },
    whisper(text) {
      if (silenced) return
      if (talking) talking.session.whisper(text)
      else whispers.push(text)
    },
    turnFound: (said) => (talking ? tellFound(said) : void found.push(said)),
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
      const keys = silenced ? [] : (talking?.leave() ?? [])
      silenced = true
      return keys
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

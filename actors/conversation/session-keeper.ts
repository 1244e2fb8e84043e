/**
 * Owns the engine's session of a call: opens it, and opens another one when it dies or is about to end, so that the call goes on. What the caller
 * says meanwhile is kept for the new one, up to a bound; what was said before is its history.
 */
import { maxWhispers } from '../../model/supervision.ts'
import { pause, type Clock } from '../../model/clock.ts'
import { deadline } from '../../model/deadline.ts'
import { frameMs } from '../../model/frame.ts'
import type { Json } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import { retry } from '../../model/retry.ts'
import { engineLabel, noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import {
  EngineRefusal,
  type EngineConfig,
  type EngineEvent,
  type EngineSession,
  type Said,
  type VoiceEngine,
} from '../../model/voice-engine.ts'
import { createSessionBacklog, type LeftBehind } from './session-backlog.ts'
import { createSessionEvents, type SessionEvents } from './session-events.ts'
import { createSessionExpiry } from './session-expiry.ts'

export type SessionKeeper = Pick<
  EngineSession,
  'hear' | 'interrupt' | 'played' | 'dtmf' | 'typed' | 'toolResult' | 'whisper' | 'recall'
> & {
  /** What the caller said before there was a session. Asked for before `open`. */
  hearEarlier(frames: readonly Uint8Array[]): void
  /** So many frames come at once, of what was said before. Asked for before `open`. */
  expect(frames: number): void
  /** So many frames were said and are heard by nobody. */
  missed(frames: number): void
  isThere(): boolean
  /** Of the session there is; null without one. */
  voicemail(): string | null
  /** False: there is no session to say it. */
  sayLast(text: string): boolean
  /** Resolves when a session is there, or none can be had (then `lost` has been told). Never throws. */
  open(): Promise<void>
  /** Ms of the caller's voice that the session has heard. */
  heard(): number
  /** When the caller said the first that it heard, ms since the epoch. */
  since(): number
  /** Nobody speaks: the moment to change sessions, if that is due. */
  quiet(): void
  /** For who goes on without this engine: what the caller said and pressed, and results, that no session was given. */
  leave(): LeftBehind
  /** As in EngineSession; a session that dies over it, or that there is none of, has nothing more to tell. */
  hearOut(): Promise<void>
  /** Idempotent. */
  close(): void
}

/** Nothing of it is asked or told before `open`. */
type Deps = {
  readonly engine: VoiceEngine
  /** Another engine would take its place: this one is tried once more and no longer. */
  readonly isReplaceable?: boolean
  readonly clock: Clock
  readonly log: Log
  readonly telemetry?: Telemetry
  readonly config: EngineConfig
  /** What a session that is opened now has to know. */
  known(): { readonly history: readonly Said[]; readonly owesReply: boolean; readonly memory: Json }
  isQuiet(): boolean
  take(event: EngineEvent): void
  /** A session is there. */
  opened(): void
  /** No session can be had. */
  lost(details: string): void
}

/** Between attempts, after a session that died or could not be opened. */
const retryDelays = [500, 2_000]
/** A caller who has not heard anything yet waits no longer for another attempt. */
const firstWithin = 6_000
/** The same, for one that is under way. */
const openWithin = 8_000
/** Ms in which an engine that another one could replace opens a session. */
const replacedWithin = 3_000
/** A session that lived as long did not die of its opening. */
const healthy = 60_000
/**
 * A provider whose sessions die as fast as they are opened is down. What ails it may pass, such as a limit of requests: before each of them but the first
 * there is a wait, of no more in all than a caller bears.
 */
const rests = [0, 500, 1_000, 1_500, 2_000]

export function createSessionKeeper(deps: Deps): SessionKeeper {
  const { engine, clock, log, isReplaceable = false, telemetry = noTelemetry } = deps
  const name = engineLabel(engine.name)
  const count = (result: 'opened' | 'failed' | 'died' | 'lost'): void =>
    telemetry.count('engine.sessions', { engine: name, result })
  const { bridges: _, brokenOff: _1, unheardMs: _2, ...goesOn } = deps.config
  const began = clock.now()
  const backlog = createSessionBacklog()
  const closing = new AbortController()
  const whispers = [...(deps.config.whispers ?? [])]
  /** No session has been told of it. */
  const recalled: Said[] = []
  let current: { readonly session: EngineSession; readonly events: SessionEvents } | null = null
  let everOpened = false
  /** The line is closed: no other session takes the place of this one. */
  const last = Promise.withResolvers<void>()
  let isLast = false
  let deaths = 0
  let heard = 0
  let since = began
  /** Frames that were said before and have not come yet. */
  let expected = 0

  const hearWith = (session: EngineSession, payload: Uint8Array): void => {
    heard += frameMs
    session.hear(payload)
  }
  const take = (event: EngineEvent): void => {
    if (event.type === 'expiring') return expiry.begin(event.within)
    if (event.type === 'audio') backlog.spoken()
    if (event.type === 'failed') return died(event)
    deps.take(event)
  }
  /** Throws as the engine does. */
  const openOnce = async (): Promise<void> => {
    const asked = clock.now()
    try {
      await openNow()
    } catch (error) {
      count('failed')
      throw error
    }
    count('opened')
    telemetry.observe('engine.opening', Math.max(0, clock.now() - asked), { engine: name })
  }
  const openNow = async (): Promise<void> => {
    const events = createSessionEvents(take)
    const config = everOpened ? { ...goesOn, ...deps.known() } : deps.config
    // A result asks for a reply by itself.
    const due = backlog.hasResults() ? { owesReply: false } : {}
    const told = whispers.length
    const whispered = told > 0 ? { whispers: whispers.slice(-maxWhispers) } : {}
    const opening = engine.open({ ...config, ...due, ...whispered }, events.emit)
    const within = isReplaceable ? replacedWithin : everOpened ? null : openWithin
    const session = await (within === null ? opening : inTime(clock, opening, within))
    if (closing.signal.aborted) return session.close()
    everOpened = true
    current = { session, events }
    for (const text of whispers.slice(told)) session.whisper(text)
    for (const said of recalled.splice(0)) session.recall(said)
    heard = 0
    since = clock.now() - backlog.behind() - expected * frameMs
    deps.opened()
    events.begin()
    // What it said may be that it is dead.
    if (isCurrent(session)) backlog.giveTo(session, hearWith)
  }
  const isCurrent = (session: EngineSession): boolean => current?.session === session
  const mayOpen = (): boolean =>
    deaths <= (isReplaceable ? 1 : rests.length) && (everOpened || clock.now() - began <= firstWithin)
  const openAgain = async (details: string, rest = 0): Promise<void> => {
    if (!mayOpen()) return lose(details)
    if (rest > 0 && !(await pause(clock, rest, closing.signal))) return
    const wait = (error: unknown, failures: number): number | null =>
      isForGood(error) || isReplaceable || !mayOpen() ? null : (retryDelays[failures - 1] ?? null)
    await retry({ clock, wait, signal: closing.signal }, openOnce).catch((error: unknown) => lose(detailsOf(error)))
  }
  const lose = (details: string): void => {
    if (closing.signal.aborted) return
    count('lost')
    deps.lost(details)
  }
  const leave = (): void => {
    expiry.close()
    current?.events.leave()
    current = null
  }
  const died = ({ details, isRetryable }: Extract<EngineEvent, { type: 'failed' }>): void => {
    leave()
    if (isLast) return last.resolve()
    count('died')
    deaths = heard > healthy ? 1 : deaths + 1
    if (!isRetryable) return lose(details)
    log.warn('a voice session died and is opened again', { details })
    void openAgain(details, rests[deaths - 1])
  }
  const renew = (): void => {
    const old = current
    leave()
    old?.session.close()
    if (old) void openAgain('the session ended')
  }
  const expiry = createSessionExpiry({ clock, isQuiet: () => deps.isQuiet(), renew })

  return {
    async open() {
      try {
        await openOnce()
      } catch (error) {
        log.warn('voice session could not be opened', { error })
        if (isForGood(error) || isReplaceable) lose(detailsOf(error))
        else await openAgain(detailsOf(error))
      }
    },
    hear(payload) {
      if (closing.signal.aborted) return
      expected = Math.max(0, expected - 1)
      if (current) hearWith(current.session, payload)
      else backlog.frame(payload)
    },
    hearEarlier: backlog.earlier,
    expect(frames) {
      expected = frames
      backlog.expect(frames)
    },
    missed: (frames) => void (since += frames * frameMs),
    isThere: () => current !== null,
    dtmf(digit) {
      if (current) current.session.dtmf(digit)
      else backlog.dtmf(digit)
    },
    typed(text) {
      if (current) current.session.typed(text)
      else backlog.typed(text)
    },
    toolResult(...result) {
      backlog.result(...result)
      current?.session.toolResult(...result)
    },
    whisper(text) {
      whispers.push(text)
      current?.session.whisper(text)
    },
    recall(said) {
      if (current) current.session.recall(said)
      else recalled.push(said)
    },
    interrupt: (item) => current?.session.interrupt(item),
    played: (itemId) => current?.session.played(itemId),
    voicemail: () => current?.session.voicemail ?? null,
    sayLast(text) {
      current?.session.sayLast(text)
      return current !== null
    },
    heard: () => heard,
    since: () => since,
    quiet: () => expiry.quiet(),
    leave: backlog.leave,
    async hearOut() {
      isLast = true
      expiry.close()
      await Promise.race([last.promise, current?.session.hearOut()])
    },
    close() {
      if (closing.signal.aborted) return
      // Without a reason of its own an error would be made, with its stack, which nobody reads.
      closing.abort('closed')
      const old = current
      leave()
      old?.session.close()
    },
  }
}

/** The first session is waited for by somebody who hears nothing. One that comes late is closed. */
const inTime = (clock: Clock, opening: Promise<EngineSession>, within: number): Promise<EngineSession> =>
  deadline(clock, within, opening, () => {
    opening.then(
      (session) => session.close(),
      () => undefined, // It is told as one that came too late.
    )
    throw new EngineRefusal('the provider did not open a session in time', false)
  })

const detailsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
const isForGood = (error: unknown): boolean => !(error instanceof EngineRefusal && error.isRetryable)

/**
 * Owns the engine's session of a call: opens it, and opens another one when it dies or is about to end, so that the call goes on. What the caller
 * says meanwhile is kept for the new one, up to a bound; what was said before is its history.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import { frameMs } from '../../model/frame.ts'
import type { Json } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import {
  EngineRefusal,
  type EngineConfig,
  type EngineEvent,
  type EngineSession,
  type Said,
  type VoiceEngine,
} from '../../model/voice-engine.ts'

export type SessionKeeper = Pick<EngineSession, 'hear' | 'interrupt' | 'played' | 'dtmf' | 'toolResult'> & {
  /** Of the session there is; null without one. */
  voicemail(): string | null
  /** False: there is no session to say it. */
  sayLast(text: string): boolean
  /** Resolves when a session is there, or none can be had (then `lost` has been told). Never throws. */
  open(): Promise<void>
  /** Ms of the caller's line that the session has heard. */
  line(): number
  /** Nobody speaks: the moment to change sessions, if that is due. */
  quiet(): void
  /** Idempotent. */
  close(): void
}

type Deps = {
  readonly engine: VoiceEngine
  readonly clock: Clock
  readonly log: Log
  readonly config: EngineConfig
  /** What a session that is opened now has to know. */
  known(): { readonly history: readonly Said[]; readonly owesReply: boolean; readonly memory: Json }
  isQuiet(): boolean
  take(event: EngineEvent): void
  /** A session is there, and hears from now on what is `behind` ms old. */
  opened(behind: number): void
  /** No session can be had. */
  lost(details: string): void
}

/** Between attempts, after a session that died or could not be opened. */
const retryDelays = [0, 500, 2_000]
/** A caller who has not heard anything yet waits no longer for another attempt. */
const firstWithin = 6_000
/** The same, for one that is under way. */
const openWithin = 8_000
/** A session that lived as long did not die of its opening. */
const healthy = 60_000
/** A provider whose sessions die as fast as they are opened is down. */
const maxDeaths = 5
/** What an engine may say before its session is in our hands. */
const maxEarlyEvents = 10_000
/** 5 s of the caller's voice. */
const maxKept = 5_000 / frameMs
/** Tools that end while no session is there, or none that has spoken about them. */
const maxResults = 16
/** Keys that are pressed meanwhile. */
const maxKeys = 32
/** This long before a session ends by itself nobody waits for a pause any more. */
const lastMoment = 5_000

/** The session of now, and how the call came to it. */
type Kept = {
  session: EngineSession | null
  closed: boolean
  /** Counts sessions: one that is over says nothing any more. */
  life: number
  deaths: number
  everOpened: boolean
  readonly began: number
  /** Ms that the session has heard. */
  heard: number
  /** What came while there was no session. */
  frames: Uint8Array[]
  keys: string[]
  /** Of tools, since the agent spoke last: a session that dies before it spoke about them leaves them to the next. */
  results: Parameters<EngineSession['toolResult']>[]
}

export function createSessionKeeper(deps: Deps): SessionKeeper {
  const kept: Kept = {
    session: null,
    closed: false,
    life: 0,
    deaths: 0,
    everOpened: false,
    began: deps.clock.now(),
    heard: 0,
    frames: [],
    results: [],
    keys: [],
  }
  const take = (event: EngineEvent): void => {
    if (event.type === 'expiring') return expiry.begin(event.within)
    if (event.type === 'audio') kept.results = []
    if (event.type !== 'failed') return deps.take(event)
    expiry.close()
    died(deps, kept, event, again)
  }
  const again = (details: string): void => void openAgain(deps, kept, { details, take })
  const expiry = createExpiry(deps, () => {
    if (kept.closed || kept.session === null) return
    const old = kept.session
    kept.session = null
    kept.life++
    old.close()
    again('the session ended')
  })
  return {
    async open() {
      try {
        await openOnce(deps, kept, take)
      } catch (error) {
        deps.log.warn('voice session could not be opened', { error })
        const details = detailsOf(error)
        if (isForGood(error)) return kept.closed ? undefined : deps.lost(details)
        await openAgain(deps, kept, { details, take })
      }
    },
    hear(payload) {
      if (kept.closed) return
      if (kept.session) return hearNow(kept, kept.session, payload)
      kept.frames.push(payload.slice())
      if (kept.frames.length > maxKept) kept.frames.shift()
    },
    line: () => kept.heard,
    quiet: expiry.quiet,
    ...passedOn(kept),
    close() {
      if (kept.closed) return
      kept.closed = true
      expiry.close()
      kept.session?.close()
    },
  }
}

/** What goes to the session there is. */
function passedOn(kept: Kept) {
  return {
    interrupt: (item) => kept.session?.interrupt(item),
    played: (itemId) => kept.session?.played(itemId),
    dtmf(digit) {
      if (kept.session) kept.session.dtmf(digit)
      else if (kept.keys.length < maxKeys) kept.keys.push(digit)
    },
    voicemail: () => kept.session?.voicemail ?? null,
    sayLast(text) {
      kept.session?.sayLast(text)
      return kept.session !== null
    },
    toolResult(...result) {
      if (kept.results.length < maxResults) kept.results.push(result)
      kept.session?.toolResult(...result)
    },
  } satisfies Partial<SessionKeeper>
}

type Take = (event: EngineEvent) => void

/** Throws as the engine does. */
async function openOnce(deps: Deps, kept: Kept, take: Take): Promise<void> {
  const life = ++kept.life
  let early: EngineEvent[] | null = []
  const takeOfThis = (event: EngineEvent): void => {
    if (kept.closed || life !== kept.life) return
    if (early === null) take(event)
    else if (early.length < maxEarlyEvents) early.push(event)
  }
  const known = kept.everOpened ? deps.known() : {}
  // A result asks for a reply by itself.
  const due = kept.results.length > 0 ? { owesReply: false } : {}
  const opening = deps.engine.open({ ...deps.config, ...known, ...due }, takeOfThis)
  const session = await (kept.everOpened ? opening : inTime(deps.clock, opening))
  if (kept.closed) return session.close()
  kept.everOpened = true
  kept.session = session
  kept.heard = 0
  deps.opened(kept.frames.length * frameMs)
  const said = early
  early = null
  said.forEach(takeOfThis)
  // What it said may be that it is dead.
  if (kept.session !== session) return
  for (const payload of kept.frames.splice(0)) hearNow(kept, session, payload)
  for (const result of kept.results) session.toolResult(...result)
  for (const key of kept.keys.splice(0)) session.dtmf(key)
}

/** The first session is waited for by somebody who hears nothing. One that comes late is closed. */
async function inTime(clock: Clock, opening: Promise<EngineSession>): Promise<EngineSession> {
  const { promise, reject } = Promise.withResolvers<never>()
  let isLate = false
  const cancel = clock.after(openWithin, () => {
    isLate = true
    reject(new EngineRefusal('the provider did not open a session in time', false))
  })
  void opening.then(
    (session) => isLate && session.close(),
    () => undefined,
  )
  return Promise.race([opening, promise]).finally(cancel)
}

function hearNow(kept: Kept, session: EngineSession, payload: Uint8Array): void {
  kept.heard += frameMs
  session.hear(payload)
}

async function openAgain(
  deps: Deps,
  kept: Kept,
  { details, take }: { readonly details: string; readonly take: Take },
): Promise<void> {
  let reason = details
  for (const delay of retryDelays) {
    if (kept.deaths > maxDeaths || (!kept.everOpened && deps.clock.now() - kept.began > firstWithin)) break
    if (delay > 0) await new Promise<void>((resolve) => void deps.clock.after(delay, resolve))
    if (kept.closed) return
    try {
      return await openOnce(deps, kept, take)
    } catch (error) {
      reason = detailsOf(error)
      if (isForGood(error)) break
    }
  }
  if (!kept.closed) deps.lost(reason)
}

function died(
  { log, lost }: Deps,
  kept: Kept,
  { details, isRetryable }: Extract<EngineEvent, { type: 'failed' }>,
  again: (details: string) => void,
): void {
  kept.session = null
  kept.life++
  kept.deaths = kept.heard > healthy ? 1 : kept.deaths + 1
  if (!isRetryable) return lost(details)
  log.warn('a voice session died and is opened again', { details })
  again(details)
}

/** A session that will end is given up in the next pause, or at the last moment. */
function createExpiry({ clock, isQuiet }: Deps, renew: () => void) {
  let isDue = false
  let cancel: Cancel = () => {}
  const end = (): void => {
    isDue = false
    cancel()
    renew()
  }
  const quiet = (): void => {
    if (isDue && isQuiet()) end()
  }
  return {
    quiet,
    begin(within: number): void {
      isDue = true
      cancel()
      cancel = clock.after(Math.max(0, within - lastMoment), end)
      quiet()
    },
    close(): void {
      isDue = false
      cancel()
    },
  }
}

const detailsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
const isForGood = (error: unknown): boolean => !(error instanceof EngineRefusal && error.isRetryable)

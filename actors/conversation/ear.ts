/**
 * Owns that one side of a call is understood by an engine that only hears: what comes before its session is there waits for it, its times become those of
 * the line, and a session that is lost is followed by another one. docs/supervision.md.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import { frameMs } from '../../model/frame.ts'
import type { Log } from '../../model/log.ts'
import {
  EngineRefusal,
  type AttendConfig,
  type AttendEvent,
  type Attending,
  type VoiceEngine,
} from '../../model/voice-engine.ts'

/** A final text; `from` and `to` are on the clock. */
export type EarText = Pick<Extract<AttendEvent, { type: 'user_text' }>, 'text' | 'from' | 'to' | 'confidence'>

export type Ear = {
  /** 20 ms of `attendedSound`; `isNext` false: something before it was lost. */
  hear(sound: Uint8Array, isNext: boolean): void
  /** What is being said is heard out. Bounded; never rejects. */
  hearOut(): Promise<void>
  /** Idempotent. */
  close(): void
}

type Deps = {
  readonly clock: Clock
  readonly log: Log
  readonly engine: Required<Pick<VoiceEngine, 'attend'>>
  /** Whom it hears; for the log. */
  readonly who: string
  readonly config: AttendConfig
  understood(text: EarText): void
}

/** Frames that wait for the session. */
const mostWaiting = 10_000 / frameMs
const hearOutWithin = 4_000
/** Ms until the next session is opened. */
const againAfter = 1_000
/** Of sessions that lived for less than `livesFor`, one after the other. */
const mostFailures = 5
const livesFor = 30_000

export function createEar({ clock, log, engine, who, config, understood }: Deps): Ear {
  let session: Attending | null = null
  let isClosed = false
  let failures = 0
  let again: Cancel = () => undefined
  const waiting: Uint8Array[] = []
  /** Frames of this session, of those that were not left out. */
  let heard = 0
  /** When the first of them was said. */
  let since = 0

  const close = (): void => {
    isClosed = true
    again()
    waiting.length = 0
    session?.close()
    session = null
  }
  const letGo = (isRetryable: boolean, told: Readonly<Record<string, unknown>>): void => {
    session?.close()
    session = null
    heard = waiting.length
    since = clock.now() - heard * frameMs
    failures++
    const goesOn = isRetryable && failures <= mostFailures
    log.warn('who speaks in a call that a supervisor has taken over is not understood', { who, goesOn, ...told })
    if (!goesOn) return close()
    again = clock.after(againAfter, () => void (opening = open()))
  }
  const take = (event: AttendEvent, began: number): void => {
    if (event.type === 'used') return
    if (event.type === 'failed') {
      if (clock.now() - began >= livesFor) failures = 0
      return letGo(event.isRetryable, { details: event.details })
    }
    if (!event.isFinal || event.text === '') return
    const { text, confidence } = event
    understood({ text, confidence, from: since + event.from, to: since + event.to })
  }
  const open = async (): Promise<void> => {
    const began = clock.now()
    let isMine = true
    try {
      const opened = await engine.attend(config, (event) => {
        if (isClosed || !isMine) return
        isMine = event.type !== 'failed'
        take(event, began)
      })
      if (isClosed || !isMine) return opened.close()
      session = opened
      for (const sound of waiting.splice(0)) opened.hear(sound)
    } catch (error) {
      if (!isClosed && isMine) letGo(error instanceof EngineRefusal && error.isRetryable, { error })
    }
  }
  let opening = open()

  return {
    hear(sound, isNext) {
      if (isClosed) return
      if (!isNext || heard === 0) since = clock.now() - (heard + 1) * frameMs
      heard++
      if (session) return session.hear(sound)
      waiting.push(sound)
      if (waiting.length <= mostWaiting) return
      waiting.shift()
      heard--
      since += frameMs
    },
    async hearOut() {
      const heardOut = opening.then(() => session?.hearOut())
      await deadline(clock, hearOutWithin, heardOut, goOn)
      close()
    },
    close,
  }
}

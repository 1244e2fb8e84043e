/**
 * Owns that a caller is understood while a person speaks with them in the agent's place: an engine hears what supervisors hear of the caller and says
 * nothing, and each of its final texts is a turn. docs/supervision.md.
 */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import { decodeFrame, frameMs, samplesPerFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import { storableText } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import { attendedSound } from '../../model/voice-engine.ts'
import type { AttendConfig, AttendEvent, Attending, VoiceEngine } from '../../model/voice-engine.ts'
import type { CallFact } from '../call/call-event.ts'

export type Attendance = {
  /** The line is closed, or about to be: what is being said is heard out. Bounded; idempotent; never rejects. */
  stop(): Promise<void>
  /** Idempotent. */
  close(): void
}

type Deps = {
  readonly callId: CallId
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly engine: Pick<VoiceEngine, 'name'> & Required<Pick<VoiceEngine, 'attend'>>
  post(fact: CallFact): void
}

/** Of the caller's half of what supervisors hear. */
const callersBytes = samplesPerFrame(attendedSound) * 2
/** Frames that wait for the session. */
const mostWaiting = 10_000 / frameMs
const hearOutWithin = 4_000
/** Of one turn. */
const maxText = 10_000

/** `answeredAt`: ms since the epoch. */
export function createAttendance(
  { callId, bus, clock, log, engine, post }: Deps,
  { config, answeredAt }: { readonly config: AttendConfig; readonly answeredAt: number },
): Attendance {
  let session: Attending | null = null
  let isClosed = false
  let stopping: Promise<void> | null = null
  const waiting: Uint8Array[] = []
  /** Frames, of those that were not left out. */
  let heard = 0
  /** When the first of them was said. */
  let since = 0
  let nextSeq = -1

  const hear = (message: Uint8Array): void => {
    const frame = decodeFrame(message)
    if (frame === null || frame.payload.length !== 2 * callersBytes) return
    // The first one, or behind some that were lost on the way.
    if (frame.seq !== nextSeq) since = clock.now() - (heard + 1) * frameMs
    nextSeq = frame.seq + 1
    heard++
    const sound = frame.payload.subarray(0, callersBytes)
    if (session) return session.hear(sound)
    waiting.push(sound)
    if (waiting.length <= mostWaiting) return
    waiting.shift()
    heard--
    since += frameMs
  }
  const close = (): void => {
    isClosed = true
    hearing.close()
    waiting.length = 0
    session?.close()
  }
  const take = (event: AttendEvent): void => {
    if (isClosed || event.type === 'used') return
    if (event.type === 'failed') {
      log.warn('a caller is not understood any more while a supervisor speaks', { details: event.details })
      return close()
    }
    if (!event.isFinal || event.text === '') return
    const { confidence } = event
    const at = (ms: number): number => Math.max(0, Math.round(since - answeredAt + ms))
    const said = { text: storableText(event.text, maxText), from: at(event.from), to: at(event.to) }
    post({ type: 'turn_committed', turn: { role: 'user', ...said, confidence, source: engine.name } })
  }
  const open = async (): Promise<void> => {
    const opened = await engine.attend(config, take)
    if (isClosed) return opened.close()
    session = opened
    for (const sound of waiting.splice(0)) opened.hear(sound)
  }
  const hearing = bus.subscribe(subjectsOf(callId).heard, ({ payload }) => hear(payload))
  const opening = open().catch((error: unknown) => {
    log.warn('a caller is not understood while a supervisor speaks', { error })
    close()
  })

  const hearOut = async (): Promise<void> => {
    hearing.close()
    await deadline(
      clock,
      hearOutWithin,
      opening.then(() => session?.hearOut()),
      goOn,
    )
    close()
  }
  return { stop: () => (stopping ??= hearOut()), close }
}

/**
 * Owns that caller and supervisor are understood while the supervisor speaks in the agent's place: an engine hears each of both sides of what supervisors
 * hear, says nothing, and each of its final texts is a turn. docs/supervision.md.
 */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import { decodeFrame, samplesPerFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import { storableText } from '../../model/json.ts'
import type { Log } from '../../model/log.ts'
import { supervisorSource } from '../../model/supervision.ts'
import { attendedSound, type AttendConfig, type VoiceEngine } from '../../model/voice-engine.ts'
import type { CallFact } from '../call/call-event.ts'
import { createEar, type EarText } from './ear.ts'

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

type Start = {
  readonly config: AttendConfig
  /** Ms since the epoch. */
  readonly answeredAt: number
  /** What is heard on the agent's side before it is settled is not the supervisor. */
  readonly standsIn: Promise<void>
}

/** Of one half of what supervisors hear. */
const sideBytes = samplesPerFrame(attendedSound) * 2
/** Of one turn. */
const maxText = 10_000

export function createAttendance(
  { callId, bus, clock, log, engine, post }: Deps,
  { config, answeredAt, standsIn }: Start,
): Attendance {
  let stopping: Promise<void> | null = null
  let nextSeq = -1
  let isStoodIn = false
  const standIn = (): void => void (isStoodIn = true)
  standsIn.then(standIn, standIn)

  const say =
    (role: 'user' | 'agent', source: string) =>
    ({ text, from, to, confidence }: EarText): void => {
      const at = (ms: number): number => Math.max(0, Math.round(ms - answeredAt))
      const said = { text: storableText(text, maxText), from: at(from), to: at(to) }
      post({ type: 'turn_committed', turn: { role, ...said, confidence, source } })
    }
  const caller = createEar({ clock, log, engine, config, who: 'caller', understood: say('user', engine.name) })
  const supervisor = createEar({
    clock,
    log,
    engine,
    config,
    who: 'supervisor',
    understood: say('agent', supervisorSource),
  })
  const ears = [caller, supervisor]
  const silence = new Uint8Array(sideBytes)

  const hearing = bus.subscribe(subjectsOf(callId).heard, ({ payload: message }) => {
    const frame = decodeFrame(message)
    if (frame === null || frame.payload.length !== 2 * sideBytes) return
    const isNext = frame.seq === nextSeq
    nextSeq = frame.seq + 1
    caller.hear(frame.payload.subarray(0, sideBytes), isNext)
    supervisor.hear(isStoodIn ? frame.payload.subarray(sideBytes) : silence, isNext)
  })
  const hearOut = async (): Promise<void> => {
    hearing.close()
    await Promise.all(ears.map((ear) => ear.hearOut()))
  }
  return {
    stop: () => (stopping ??= hearOut()),
    close() {
      hearing.close()
      for (const ear of ears) ear.close()
    },
  }
}

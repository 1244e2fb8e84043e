/** Owns how long a caller waited for the agent's answer, stage by stage, from the end of their speech to the first packet. */
import { TurnLatency } from '../../model/call.ts'
import type { Clock } from '../../model/clock.ts'
import type { CallId } from '../../model/ids.ts'
import { engineLabel, noTelemetry, type Telemetry } from '../../model/telemetry.ts'

export type TurnTiming = {
  /** The caller's turn is over; they have been silent for so many ms. */
  stopped(ago: number): void
  recognised(): void
  /** The engine knows what it says or does. */
  decided(): void
  audio(itemId: string): void
  /** The leg has sent the first packet after a pause. */
  sounding(): void
  /** Of an item that answered the caller and was heard; once. */
  take(itemId: string): TurnLatency | null
  /** The item was never heard. */
  forget(itemId: string): void
}

type Marks = { -readonly [Stage in keyof TurnLatency]: TurnLatency[Stage] }

/** Items that have not been committed yet. */
const maxItems = 64

export type TurnTimingDeps = {
  readonly callId?: CallId
  readonly clock: Clock
  readonly engine: { readonly name: string }
  readonly telemetry?: Telemetry
}

export function createTurnTiming({ clock, engine, callId, telemetry = noTelemetry }: TurnTimingDeps): TurnTiming {
  const beganOf = new WeakMap<Marks, number>()
  const answers = new Map<string, Marks>()
  let silentSince = 0
  let open: Marks | null = null
  let early: { readonly itemId: string; readonly at: number; heardAt: number | null } | null = null
  const since = (): number => Math.max(0, Math.round(clock.now() - silentSince))
  /** A provider may find the end of a turn sooner than we do, and answer before we have told it. */
  const answerEarly = (marks: Marks): void => {
    if (!early || early.at < silentSince) return
    marks.firstAudio = Math.round(early.at - silentSince)
    marks.decided = marks.firstAudio
    marks.endOfTurn = Math.min(marks.endOfTurn ?? marks.firstAudio, marks.firstAudio)
    if (answers.size < maxItems) answers.set(early.itemId, marks)
    if (early.heardAt === null) return
    marks.firstPacket = Math.round(early.heardAt - silentSince)
    open = null
  }

  return {
    stopped(ago) {
      silentSince = clock.now() - Math.max(0, ago)
      open = { endOfTurn: since(), recognised: null, decided: null, firstAudio: null, firstPacket: null }
      beganOf.set(open, silentSince)
      answerEarly(open)
      early = null
    },
    recognised() {
      if (open) open.recognised ??= since()
    },
    decided() {
      if (open) open.decided ??= since()
    },
    audio(itemId) {
      if (!open && early?.itemId !== itemId && !answers.has(itemId)) early = { itemId, at: clock.now(), heardAt: null }
      if (!open || open.firstAudio !== null) return
      open.firstAudio = since()
      open.decided ??= open.firstAudio
      if (answers.size < maxItems) answers.set(itemId, open)
    },
    sounding() {
      if (!open && early) early.heardAt ??= clock.now()
      if (!open || open.firstAudio === null) return
      open.firstPacket = since()
      open = null
    },
    take(itemId) {
      const marks = answers.get(itemId) ?? null
      answers.delete(itemId)
      if (marks) tell(telemetry, { marks, began: beganOf.get(marks) ?? 0, engine: engine.name, callId })
      return marks && { ...marks }
    },
    forget: (itemId) => void answers.delete(itemId),
  }
}

const stages = TurnLatency.keyof().options

type ToldTurn = {
  readonly marks: TurnLatency
  /** When the caller's speech ended. */
  readonly began: number
  readonly engine: string
  readonly callId: CallId | undefined
}

function tell(telemetry: Telemetry, { marks, began, engine: name, callId }: ToldTurn): void {
  if (!telemetry.isOn) return
  const engine = engineLabel(name)
  const about = callId ? { callId } : {}
  const seen = stages.flatMap((stage) => (marks[stage] === null ? [] : [{ stage, ms: marks[stage] }]))
  const inOrder = seen.toSorted((one, other) => one.ms - other.ms)
  const whole = telemetry.span('turn.answer', { engine }, about, began)
  const within = { ...about, ...(whole.traceparent && { within: whole.traceparent }) }
  for (const [index, { stage, ms }] of inOrder.entries()) {
    telemetry.observe('turn.latency', ms, { stage, engine })
    telemetry.span('turn.stage', { stage }, within, began + (inOrder[index - 1]?.ms ?? 0)).end('ok', began + ms)
  }
  whole.end('ok', began + (inOrder.at(-1)?.ms ?? 0))
}

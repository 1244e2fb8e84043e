/** Owns how a leg tells, while its call runs, how well sound gets through: to whoever listens in any process, and to nobody if nobody does. */
import type { z } from 'zod'
import { LegQuality, toCallQuality } from './call-quality.ts'
import type { CallId } from './ids.ts'

/** Ms between two tellings of a leg, which carry a ToldQuality. */
export const qualityToldEvery = 5_000
/** Of so many tellings a leg counts: peers report about every five seconds, so that one of them has a report. */
const tellingsCounted = 2

/** `ofMs`: what was counted in the newest so many ms. Absent: in the call so far, as legs of a version of before tell it. */
export const ToldQuality = LegQuality.extend({ ofMs: LegQuality.shape.packetMs.optional() })
export type ToldQuality = Readonly<z.infer<typeof ToldQuality>>

/** It is no subject `call.…`, which would be heard in the process of the leg only. */
export const qualitySubjectOf = (callId: CallId): string => `quality.${callId}`
export const allQualities = 'quality.*'
/** The call of such a subject. */
export const callOfQuality = (subject: string): CallId => subject.slice('quality.'.length) as CallId

/** What is worth looking at while a call runs, of the worse of both ways, and no more exactly than one reads it. */
export type LiveQuality = {
  readonly mos: number | null
  /** From 0 to 1. */
  readonly loss: number | null
  readonly jitterMs: number | null
  readonly lateFrames: number
  /** Seconds that it is of; null: of the call so far. */
  readonly seconds: number | null
}

/** Of a leg that counts from the beginning of its call; asked at each telling. */
export function createRecentQuality(): (soFar: LegQuality) => ToldQuality {
  /** Oldest first. */
  const before: LegQuality[] = []
  return (soFar) => {
    const since = before.length < tellingsCounted ? null : before.shift()
    before.push(soFar)
    const ofMs = since ? tellingsCounted * qualityToldEvery : before.length * qualityToldEvery
    return { ...(since ? countedSince(since, soFar) : soFar), ofMs }
  }
}

function countedSince(before: LegQuality, now: LegQuality): LegQuality {
  const { received, sent } = now
  return {
    ...now,
    received: received && wayOf(before.received, received),
    sent: sent && wayOf(before.sent, sent),
    concealedMs: Math.max(0, now.concealedMs - before.concealedMs),
    lateFrames: Math.max(0, now.lateFrames - before.lateFrames),
  }
}

type Way = NonNullable<LegQuality['sent']>

/** Null: nothing came, or nothing was reported. */
function wayOf(before: Way | null, now: Way): Way | null {
  const packets = now.packets - (before?.packets ?? 0)
  // Counted anew: by another transport.
  if (packets < 0) return now
  // What was late had counted as lost (RFC 3550, 6.4.1).
  return packets === 0 ? null : { ...now, packets, lost: Math.max(0, now.lost - (before?.lost ?? 0)) }
}

export function toLiveQuality({ ofMs, ...leg }: ToldQuality): LiveQuality {
  const { mos, received, sent, lateFrames } = toCallQuality(leg)
  const ways = [received, sent].filter((way) => way !== null)
  const jitters = ways.flatMap(({ jitterMs }) => jitterMs ?? [])
  return {
    mos: mos === null ? null : Math.round(mos * 10) / 10,
    loss: ways.length === 0 ? null : Math.round(Math.max(...ways.map(({ loss }) => loss)) * 1_000) / 1_000,
    jitterMs: jitters.length === 0 ? null : Math.round(Math.max(...jitters)),
    lateFrames,
    seconds: ofMs === undefined ? null : Math.round(ofMs / 1_000),
  }
}

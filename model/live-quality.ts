/** Owns how a leg tells, while its call runs, how well sound gets through: to whoever listens in any process, and to nobody if nobody does. */
import { toCallQuality, type LegQuality } from './call-quality.ts'
import type { CallId } from './ids.ts'

/** Ms between two tellings of a leg, which carry a LegQuality of the call so far. */
export const qualityToldEvery = 5_000

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
}

export function toLiveQuality(leg: LegQuality): LiveQuality {
  const { mos, received, sent, lateFrames } = toCallQuality(leg)
  const ways = [received, sent].filter((way) => way !== null)
  const jitters = ways.flatMap(({ jitterMs }) => jitterMs ?? [])
  return {
    mos: mos === null ? null : Math.round(mos * 10) / 10,
    loss: ways.length === 0 ? null : Math.round(Math.max(...ways.map(({ loss }) => loss)) * 1_000) / 1_000,
    jitterMs: jitters.length === 0 ? null : Math.round(Math.max(...jitters)),
    lateFrames,
  }
}

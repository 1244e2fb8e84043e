/** Owns the words of a call: direction, statuses, turns. docs/contract/rest.md "States of a call" and "Transcript". */
import { z } from 'zod'
import { TerminalStatus } from './outcome.ts'

export const Direction = z.enum(['inbound', 'outbound'])
export type Direction = z.infer<typeof Direction>

export const Transport = z.enum(['webrtc', 'sip_trunk'])
export type Transport = z.infer<typeof Transport>

/** What the resource shows; every terminal state reads `completed`. */
export const CallStatus = z.enum(['scheduled', 'queued', 'in_progress', 'completed'])
export type CallStatus = z.infer<typeof CallStatus>

/** What call.status_update and the signaling socket show. */
export const ProgressStatus = z.enum(['scheduled', 'queued', 'ringing', 'in_progress', ...TerminalStatus.options])
export type ProgressStatus = z.infer<typeof ProgressStatus>

/** A call that rings is dialed and not over: the resource has no `ringing`, so it reads `in_progress`. */
export function callStatusOf(progress: ProgressStatus): CallStatus {
  if (progress === 'scheduled' || progress === 'queued') return progress
  return progress === 'ringing' || progress === 'in_progress' ? 'in_progress' : 'completed'
}

export const PostProcessingStatus = z.enum(['none', 'in_progress', 'completed', 'failed'])
export type PostProcessingStatus = z.infer<typeof PostProcessingStatus>

export const Speaker = z.enum(['user', 'agent'])
export type Speaker = z.infer<typeof Speaker>

/** How long a caller waited for an answer: ms from the end of their speech to each stage. */
export const TurnLatency = z.object({
  /** The engine took it that the turn is over. */
  endOfTurn: z.number().int().nonnegative(),
  /** What was said is known. */
  recognised: z.number().int().nonnegative().nullable(),
  /** What is to be said, or done, is known. */
  decided: z.number().int().nonnegative().nullable(),
  firstAudio: z.number().int().nonnegative().nullable(),
  /** The caller hears the answer. */
  firstPacket: z.number().int().nonnegative().nullable(),
})
export type TurnLatency = z.infer<typeof TurnLatency>

/** One committed turn. `from` and `to` are milliseconds since the call was answered; `text` is what was really heard by the other side. */
export const Turn = z.object({
  role: Speaker,
  text: z.string(),
  from: z.number().int().nonnegative(),
  to: z.number().int().nonnegative(),
  /** 0–1; null for engines that do not report it. */
  confidence: z.number().min(0).max(1).nullable(),
  /** The engine that produced the text; of a supervisor's words `supervisor`. */
  source: z.string().nullable(),
  /** Of an answer of the agent. */
  latency: TurnLatency.nullish(),
})
export type Turn = z.infer<typeof Turn>

/** Of a call that is answered: `off`, nothing of it is recorded (any more); `on` after a pause. */
export const RecordingState = z.enum(['on', 'paused', 'off'])
export type RecordingState = z.infer<typeof RecordingState>

/** What a call was asked for, or promised, and does not do; it goes on. */
export const CallWarning = z.object({
  type: z.enum([
    'INSTRUCTIONS_NOT_FOLLOWED',
    'RECORDING_INCOMPLETE',
    'EXTRACTION_FAILED',
    'EXTRACTION_INCOMPLETE',
    'NEXT_ACTION_INCOMPLETE',
    'DISCLOSURE_MISSING',
    'DISCLOSURE_REWORDED',
    'DATABASE_WAS_AWAY',
    'TRANSCRIPT_COMPLETED_LATE',
  ]),
  message: z.string(),
})
export type CallWarning = z.infer<typeof CallWarning>

/** 3 723 000 ms reads `01:02:03`. */
export function toClockOffset(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  return parts.map((part) => String(part).padStart(2, '0')).join(':')
}

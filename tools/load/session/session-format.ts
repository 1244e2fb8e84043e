/**
 * Owns what a session file is: JSON Lines, version 1. The first line says what was recorded, each further one is a message of the signaling, a packet of
 * sound, a piece of sound that packets refer to, or what is expected of the call when it is made again. docs/load-sessions.md tells it to people.
 */
import { z } from 'zod'
import { ClientMessage, ServerMessage } from '../../../model/signaling.ts'

export const sessionVersion = 1

/** Of a file, its lines, and one of them. */
export const maxSessionBytes = 64 * 1024 * 1024
export const maxSessionLines = 500_000
export const maxLineBytes = 128 * 1024
/** Of times within a session, ms. */
const maxAt = 24 * 3_600_000

const At = z.number().min(0).max(maxAt)
const By = z.enum(['caller', 'service'])

export const SessionHead = z.strictObject({
  parleySession: z.literal(sessionVersion),
  kind: z.enum(['sip', 'web']),
  /** How it came to be. */
  source: z.enum(['call', 'pcap', 'hand']),
  /** Of the sound. */
  codec: z.enum(['opus', 'pcmu', 'pcma', 'g722']),
  payloadType: z.number().int().min(0).max(127),
  clockRateHz: z.union([z.literal(8000), z.literal(48000)]),
  /** Of SIP. */
  transport: z.enum(['udp', 'tcp', 'tls']).optional(),
  recordedAt: z.iso.datetime().optional(),
  name: z.string().max(200).optional(),
})
export type SessionHead = z.infer<typeof SessionHead>

const SipLine = z.strictObject({ type: z.literal('sip'), at: At, by: By, message: z.string().min(1).max(65_536) })
const SignalLine = z.union([
  z.strictObject({ type: z.literal('signal'), at: At, by: z.literal('caller'), message: ClientMessage }),
  z.strictObject({ type: z.literal('signal'), at: At, by: z.literal('service'), message: ServerMessage }),
])
/** A payload that packets refer to by its number; it stands before the first of them. */
const SoundLine = z.strictObject({
  type: z.literal('sound'),
  ref: z.number().int().min(0).max(maxSessionLines),
  payload: z.base64().max(4_000),
})
/** What the service sent need not say what was in it. */
const RtpLine = z.strictObject({
  type: z.literal('rtp'),
  at: At,
  by: By,
  seq: z.number().int().min(0).max(65_535),
  ts: z.number().int().min(0).max(4_294_967_295),
  pt: z.number().int().min(0).max(127),
  marker: z.boolean().optional(),
  ref: z.number().int().min(0).optional(),
})
const Within = z.number().int().min(1).max(600_000)
/** One in each line. */
const ExpectLine = z.strictObject({
  type: z.literal('expect'),
  /** Ms from when the call is due to its answer. */
  answerWithin: Within.optional(),
  /** Ms from the answer to the first sound of the service. */
  audioWithin: Within.optional(),
  transcriptContains: z.string().min(1).max(1_000).optional(),
  outcome: z.string().min(1).max(100).optional(),
})

export type SipLine = z.infer<typeof SipLine>
export type SignalLine = z.infer<typeof SignalLine>
export type SoundLine = z.infer<typeof SoundLine>
export type RtpLine = z.infer<typeof RtpLine>
export type ExpectLine = z.infer<typeof ExpectLine>
export type SessionLine = SipLine | SignalLine | SoundLine | RtpLine | ExpectLine

/** By their `type`. */
export const lineSchemas = {
  sip: SipLine,
  signal: SignalLine,
  sound: SoundLine,
  rtp: RtpLine,
  expect: ExpectLine,
} as const

export const expectations = ['answerWithin', 'audioWithin', 'transcriptContains', 'outcome'] as const

export type Expected = {
  readonly answerWithin: number | null
  readonly audioWithin: number | null
  readonly transcriptContains: readonly string[]
  readonly outcome: string | null
}

export type Session = {
  /** What errors name it by. */
  readonly file: string
  readonly head: SessionHead
  readonly sip: readonly SipLine[]
  readonly signals: readonly SignalLine[]
  readonly rtp: readonly RtpLine[]
  readonly sounds: ReadonlyMap<number, Uint8Array>
  readonly expected: Expected
}

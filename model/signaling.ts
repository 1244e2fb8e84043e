/**
 * Owns the messages of the signaling socket: one JSON object per text frame. docs/contract/signaling.md "Messages of the client" and "Messages
 * of the service".
 */
import { z } from 'zod'
import { CallWarning, ProgressStatus, Speaker } from './call.ts'
import { maxTypedText } from './leg.ts'
import { ErrorBody } from './problem.ts'

export const maxSignalingFrameBytes = 64 * 1024

const Candidate = z.object({
  candidate: z.string().max(2000),
  sdpMid: z.string().max(64).nullish(),
  sdpMLineIndex: z.number().int().min(0).max(255).nullish(),
  usernameFragment: z.string().max(256).nullish(),
})

export const ClientMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('offer'), sdp: z.string().min(1) }),
  /** RTCIceCandidateInit; null is the end of candidates. */
  z.object({ type: z.literal('candidate'), candidate: Candidate.nullable() }),
  z.object({ type: z.literal('bye') }),
  z.object({ type: z.literal('dtmf'), digits: z.string().regex(/^[0-9A-D*#]{1,32}$/) }),
  /** To the agent, as if it had been said. */
  z.object({ type: z.literal('text'), text: z.string().trim().min(1).max(maxTypedText) }),
  z.object({ type: z.literal('ping') }),
])
export type ClientMessage = z.infer<typeof ClientMessage>

export const ServerMessage = z.discriminatedUnion('type', [
  /** `newOffer`: the client has come to another process; its sound begins anew, by an offer of a new RTCPeerConnection. */
  z.object({
    type: z.literal('ready'),
    callId: z.string(),
    sessionId: z.string(),
    resumeToken: z.string(),
    newOffer: z.literal(true).optional(),
  }),
  z.object({ type: z.literal('answer'), sdp: z.string() }),
  z.object({ type: z.literal('candidate'), candidate: Candidate.nullable() }),
  z.object({ type: z.literal('status'), status: ProgressStatus, ts: z.string() }),
  /** With isFinal false the text may still change; `turnIndex` says which turn it becomes. */
  z.object({
    type: z.literal('transcript'),
    role: Speaker,
    text: z.string(),
    isFinal: z.boolean(),
    turnIndex: z.number().int(),
    ts: z.string(),
  }),
  /** The agent was interrupted and fell silent. */
  z.object({ type: z.literal('interrupted') }),
  z.object({ type: z.literal('error'), error: ErrorBody }),
  /** What the call was asked for and does not do. */
  z.object({ type: z.literal('warning'), warning: CallWarning, ts: z.string() }),
  /** The call is over; the socket closes next. */
  z.object({ type: z.literal('bye'), reason: z.string() }),
  z.object({ type: z.literal('pong') }),
])
export type ServerMessage = z.infer<typeof ServerMessage>

/** The browser of a call has come to the process that says so, which made `by` up: who had it before lets go of it without a word to the call. */
export const SessionMoved = z.object({ by: z.string() })

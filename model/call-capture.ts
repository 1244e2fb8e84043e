/** Owns what is asked for when the sound of a running call is to be captured, and what its leg answers. docs/contract/rest.md "Captures". */
import { z } from 'zod'
import type { AccountId, CallId } from './ids.ts'

/** The media type of a capture. */
export const captureType = 'application/vnd.tcpdump.pcap'

/** Of its file, beside the recording of the call. */
export const captureKeyOf = (accountId: AccountId, callId: CallId): string => `${accountId}/${callId}.pcap`

export const CapturedRtp = z.enum(['headers', 'sound'])
export type CapturedRtp = z.infer<typeof CapturedRtp>

export const CaptureRequest = z.strictObject({
  rtp: CapturedRtp.describe('headers: of each packet all but what it carries. sound: all of it.'),
  minutes: z.number().int().min(1).max(60).default(10).describe('So long at most. Default: 10.'),
})
export type CaptureRequest = z.infer<typeof CaptureRequest>

export const CallCapture = z.object({
  callId: z.string(),
  rtp: CapturedRtp.describe('What is captured from now on.'),
  until: z.string().describe('When it ends, if the call does not end before. ISO 8601, UTC.'),
})
export type CallCapture = z.infer<typeof CallCapture>

export type CaptureCall = (accountId: AccountId, callId: CallId, asked: CaptureRequest) => Promise<CallCapture>

/** From whoever captures a call to the leg of it. */
export const CaptureOrder = z.object({ key: z.string(), rtp: CapturedRtp, ms: z.number().positive() })
export type CaptureOrder = z.infer<typeof CaptureOrder>

export const CaptureReply = z.discriminatedUnion('type', [
  z.object({ type: z.literal('capturing'), rtp: CapturedRtp, leftMs: z.number().nonnegative() }),
  z.object({ type: z.literal('refused'), details: z.string() }),
])
export type CaptureReply = z.infer<typeof CaptureReply>

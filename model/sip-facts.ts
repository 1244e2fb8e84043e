/**
 * Owns what SIP says of a call besides its numbers: facts of an inbound INVITE, and the headers that an outbound one takes along. Whoever
 * calls may have written any of it. docs/contract/webhooks.md "call.worker_request".
 */
import { z } from 'zod'
import { oneLine } from './one-line.ts'
import { repeatedIn } from './repeated-names.ts'

/** Of an inbound phone call, as the INVITE had it; personal. */
export const SipFacts = z.object({
  callId: z.string(),
  requestUri: z.string(),
  to: z.string(),
  /** Absent when the caller asked for privacy. */
  from: z.string().optional(),
  /** The number or user that was dialed, as it stood. */
  called: z.string().optional(),
  /** What the carrier found out about the caller's number (RFC 8224, 3GPP TS 24.229 section 7.2A.20). */
  verstat: z.string().optional(),
  /** The trunk is one whose word on the caller is believed (`trustsIdentity`). */
  trusted: z.boolean(),
  /** X-…, User-to-User, Diversion, P-Asserted-Identity, Identity and the like. Several fields of one name are one text with commas between. */
  headers: z.record(z.string(), z.string()),
})
export type SipFacts = z.infer<typeof SipFacts>

const maxHeaders = 16
const maxNameLength = 64
const maxValueLength = 512
/** Of names and values together: an INVITE is one message to the SIP server, and those are bounded. */
const maxLength = 4_000

/** On the INVITE of an outbound call. Only X-…, so that none changes what the call is. */
export const CallHeaders = z.record(z.string(), z.string()).superRefine((headers, context) => {
  const names = Object.keys(headers)
  const repeated = repeatedIn(names.map((name) => name.toLowerCase()))
  const refuse = (path: string[], message: string): void => context.addIssue({ code: 'custom', path, message })
  for (const [index, name] of names.entries()) {
    const fault = nameFaultOf(name) ?? valueFaultOf(headers[name] ?? '')
    if (fault !== null) refuse([name], fault)
    else if (repeated.has(index)) refuse([name], 'is there twice; names of headers are the same in any case')
  }
  if (names.length > maxHeaders) refuse([], `must have ${maxHeaders} fields at most`)
  if (Object.entries(headers).join('').length > maxLength)
    refuse([], `must have ${maxLength} characters at most, in all`)
})
export type CallHeaders = z.infer<typeof CallHeaders>

/** RFC 3261 section 25.1: a header name is a token. */
function nameFaultOf(name: string): string | null {
  if (!/^x-[A-Za-z0-9\-.!%*_+`'~]+$/i.test(name)) return 'must be a SIP header name that begins with X-'
  return name.length <= maxNameLength ? null : `must have ${maxNameLength} characters at most`
}

function valueFaultOf(value: string): string | null {
  if (!oneLine(value) || !value.isWellFormed()) return 'must be one line without control characters'
  return value.length <= maxValueLength ? null : `must have ${maxValueLength} characters at most`
}

/**
 * Owns what a SIP answer to our INVITE means for the call, and what a call that ends before its answer tells the caller. RFC 3261 §21,
 * RFC 3326 and Q.850 (Reason), RFC 8197 (607), RFC 8688 (608), ATIS-1000099 (603 Network Blocked).
 */
import type { Outcome } from '../../model/outcome.ts'

export type FinalAnswer = {
  readonly status: number
  readonly reason: string
  /** Q.850 cause of its Reason header; null without one. */
  readonly cause: number | null
}

const busy: Outcome = { status: 'busy' }
const noAnswer: Outcome = { status: 'no_answer' }
/** The network could not bring the call to anybody. */
const carrierFailed: Outcome = { status: 'failed', reason: 'carrier_call_failed' }
/** Something between us and the trunk: it does not know us, or does not understand us. */
const sipFailed: Outcome = { status: 'failed', reason: 'sip_call_failed' }

export const unreachable = sipFailed

/**
 * A person who declines (603, 607) has been reached and did not answer: `no_answer`. `busy` would make callers' systems try again within
 * the minute. 608, and 603 with "Network Blocked", come from a system on the way that blocked the call before it rang.
 */
const byStatus: Readonly<Record<number, Outcome>> = {
  401: sipFailed,
  403: sipFailed,
  404: carrierFailed,
  407: sipFailed,
  408: noAnswer,
  410: carrierFailed,
  480: noAnswer,
  484: carrierFailed,
  485: carrierFailed,
  486: busy,
  487: noAnswer,
  600: busy,
  603: noAnswer,
  604: carrierFailed,
  607: noAnswer,
  608: carrierFailed,
}

/** Answers that gateways give for many things; the cause of the telephone network behind them says which. */
const vague: ReadonlySet<number> = new Set([403, 480, 487, 500, 502, 503, 504, 603])

const byCause: Readonly<Record<number, Outcome>> = {
  /** Unallocated number, no route to network, no route to destination. */
  1: carrierFailed,
  2: carrierFailed,
  3: carrierFailed,
  17: busy,
  /** No user responding, no answer from user (alerted), subscriber absent, call rejected. */
  18: noAnswer,
  19: noAnswer,
  20: noAnswer,
  21: noAnswer,
  /** Number changed, destination out of order, invalid number format. */
  22: carrierFailed,
  27: carrierFailed,
  28: carrierFailed,
}

export function outcomeOf({ status, reason, cause }: FinalAnswer): Outcome {
  if (status === 603 && /network blocked/i.test(reason)) return carrierFailed
  const told = vague.has(status) && cause !== null ? byCause[cause] : undefined
  const known = told ?? byStatus[status]
  if (known) return known
  // The rest of 4xx blames our request, 3xx and 5xx the way to the callee, 6xx says that the callee takes no call.
  return status >= 400 && status < 500 && !pathTrouble.has(status) ? sipFailed : carrierFailed
}

/** Not here, loop, too many hops: 4xx that the network says of itself. */
const pathTrouble: ReadonlySet<number> = new Set([481, 482, 483])

/** Worth trying another gateway: this one is out of order or overloaded, the callee was not asked. RFC 3263 §4.3. */
export const speaksOfGateway = ({ status, cause }: FinalAnswer, rang: boolean): boolean =>
  !rang &&
  !(cause !== null && byCause[cause]) &&
  (status === 408 || status === 500 || status === 502 || status === 503 || status === 504)

/** What a caller hears whose call ends before it was answered, by the terminal status of the call. */
export function answerTo(reason: string | undefined): { readonly status: number; readonly reason: string } {
  if (reason === 'busy') return { status: 486, reason: 'Busy Here' }
  if (reason === 'failed' || reason === 'service_stopping') return { status: 503, reason: 'Service Unavailable' }
  // canceled, no_answer, completed, a leg that gave up: the call is not available.
  return { status: 480, reason: 'Temporarily Unavailable' }
}

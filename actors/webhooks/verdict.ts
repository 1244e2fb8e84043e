/**
 * Owns what an attempt means for its delivery: done, when to try again, given up, or the subscription is over. Pure. docs/contract/webhooks.md
 * "Retries".
 */
import type { EventType } from '../../model/events.ts'
import { jittered } from '../../model/retry.ts'
import type { SendResult } from './sender.ts'

export type Verdict =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'retry'; readonly at: number }
  | { readonly kind: 'exhausted' }
  /** 410: given up, and nothing shall be sent there again. */
  | { readonly kind: 'disable' }

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Waits after the first, second, … attempt. */
const endedWaits = [5 * second, minute, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour, 24 * hour]
/** With four timeouts of 10 s these still fit into `newsLifetime`. */
const newsWaits = [2 * second, 4 * second, 9 * second]
/** What a call.transcript or call.status_update is worth waiting for: call.ended stands behind it in the lane. */
export const newsLifetime = minute

const longestRetryAfter = 24 * hour

export type Attempted = {
  readonly eventType: EventType
  /** When the event was generated. */
  readonly eventAt: number
  /** 1 for the first. */
  readonly attempt: number
  readonly result: SendResult
  readonly now: number
  /** 0 ≤ random < 1. */
  readonly random: number
}

export function verdictOf({ eventType, eventAt, attempt, result, now, random }: Attempted): Verdict {
  if (result.kind === 'answered' && result.status >= 200 && result.status < 300) return { kind: 'delivered' }
  if (result.kind === 'answered' && result.status === 410) return { kind: 'disable' }
  const ended = eventType === 'call.ended'
  const wait = (ended ? endedWaits : newsWaits)[attempt - 1]
  if (wait === undefined) return { kind: 'exhausted' }
  const asked = result.kind === 'answered' ? Math.min(result.retryAfter ?? 0, longestRetryAfter) : 0
  const at = Math.round(now + Math.max(jittered(wait, random), asked))
  if (!ended && at > eventAt + newsLifetime) return { kind: 'exhausted' }
  return { kind: 'retry', at }
}

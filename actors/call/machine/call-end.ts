/**
 * Owns what the fact that ended a call says of its end: who ended it, the cause that the other side gave, and when its media ended, which may
 * be long before anybody noticed. Pure.
 */
import type { EndedBy, Outcome } from '../../../model/outcome.ts'
import type { CallFact, LegEnd } from '../call-event.ts'

/** Part of a call's birth: those of before it have none, and end as they always did, so that their logs replay alike. */
export const endRules = 2

export type CallEnd = {
  readonly by: EndedBy
  /** As in LegEvent. */
  readonly cause: string | null
  /** Of the media; ms since the epoch. */
  readonly at: number
  /** False: the media went on until the leg was closed. */
  readonly isSettled: boolean
}

type Of<Type extends CallFact['type']> = Extract<CallFact, { type: Type }>

export function endOf(fact: CallFact, outcome: Outcome | null, now: number): CallEnd {
  if (fact.type === 'leg_disconnected') return toldEnd(fact, endedByOf(fact), now)
  if (fact.type === 'dial_failed') return toldEnd(fact, fact.endedBy ?? 'service', now)
  // The agent passed the caller on, or nobody could talk to the caller.
  if (fact.type === 'transferred') return toldEnd(fact, outcome?.status === 'failed' ? 'service' : 'agent', now)
  return { by: deciderOf(fact), cause: null, at: now, isSettled: false }
}

const toldEnd = ({ endCause = null, silentFor = 0 }: LegEnd, by: EndedBy, now: number): CallEnd => ({
  by,
  cause: endCause,
  at: now - silentFor,
  isSettled: true,
})

function deciderOf(fact: CallFact): EndedBy {
  if (fact.type === 'hang_up_requested') return fact.by ?? 'service'
  return fact.type === 'agent_finished' || fact.type === 'voicemail_detected' ? 'agent' : 'service'
}

/** An edge names who it was only where the cause alone would say it wrong. */
export function endedByOf({ endedBy, cause }: Of<'leg_disconnected'>): EndedBy {
  if (endedBy) return endedBy
  if (cause === 'hung_up') return 'caller'
  return cause === 'media_lost' ? 'network' : 'service'
}

/** The end once the leg is closed, `silentFor` ms after its media ended; the caller's last words may have been heard out since. */
export function closedEnd(end: CallEnd, { silentFor = 0, endedAt }: Of<'leg_closed'>, now: number): CallEnd {
  return end.isSettled ? end : { ...end, at: Math.max(end.at, (endedAt ?? now) - silentFor), isSettled: true }
}

/** Of a call whose leg went although nobody hung up. */
export const outcomeOfCut = (fact: Of<'leg_disconnected'>): Outcome => ({
  status: 'failed',
  reason: endedByOf(fact) === 'network' ? 'media_lost' : 'internal_error',
})

/**
 * Owns when the leg of a call was last known to be there. It is how long ago a call really ended whose leg says nothing any more, because its
 * process was killed: that is found out many seconds later.
 */
import type { Clock } from '../../../model/clock.ts'
import type { CallFact } from '../call-event.ts'

export type LegSightings = {
  /** Something of the leg came: a frame, an event, an answer. */
  seen(): void
  /** The fact, with the age of the end when who found it knows none. */
  aged(fact: CallFact): CallFact
}

/** `leftFor`: ms since the former actor was last alive, until when the leg was there; null: there was none, the call is new here. */
export function createLegSightings(clock: Pick<Clock, 'now'>, leftFor: number | null): LegSightings {
  let seenAt = clock.now() - (leftFor ?? 0)
  return {
    seen: () => void (seenAt = clock.now()),
    aged(fact) {
      if ((fact.type !== 'leg_disconnected' && fact.type !== 'leg_closed') || fact.silentFor !== undefined) return fact
      return { ...fact, silentFor: Math.max(0, clock.now() - seenAt) }
    },
  }
}

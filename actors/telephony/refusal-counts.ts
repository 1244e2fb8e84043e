/** Owns which refused calls are alike, and how many of each wait to be written. Bounded: what is more is counted and nothing else. Pure. */
import { storableText } from '../../model/json.ts'
import type { Refusal } from '../../model/telephony.ts'
import type { CountedRefusal } from '../../store/call-refusals.ts'

/** Alike ones of so many ms are one row. */
const together = 60_000
/** Of one minute. */
const maxKinds = 1_000
/** Numbers are text from unknown senders. */
const maxText = 100
const maxDetails = 500

type Kind = Omit<CountedRefusal, 'count' | 'lastAt'> & { unwritten: number; lastAt: number }

export type RefusalCounts = {
  /** The first of its kind in this minute as it is written down; null: it was counted with others, or dropped. */
  add(refusal: Refusal, id: string, now: number): Refusal | null
  /** What is to be written; it counts as written from here on. */
  take(): readonly CountedRefusal[]
  /** It could not be written. */
  giveBack(rows: readonly CountedRefusal[]): void
  /** How many were dropped since it was asked last. */
  takeDropped(): number
  /** What is written and past its minute. */
  forgetOld(now: number): void
}

export function createRefusalCounts(): RefusalCounts {
  const kinds = new Map<string, Kind>()
  let dropped = 0
  return {
    add(given, id, now) {
      const refusal = bounded(given)
      const key = keyOf(refusal)
      const known = kinds.get(key)
      if (known && (known.unwritten > 0 || known.firstAt + together > now)) {
        known.unwritten += 1
        known.lastAt = now
        return null
      }
      if (!known && kinds.size >= maxKinds) {
        dropped += 1
        return null
      }
      kinds.set(key, { ...refusal, id, unwritten: 1, firstAt: now, lastAt: now })
      return refusal
    },
    take() {
      const waiting = [...kinds.values()].filter(({ unwritten }) => unwritten > 0)
      const rows = waiting.map(({ unwritten, ...kind }) => ({ ...kind, count: unwritten }))
      for (const kind of waiting) kind.unwritten = 0
      return rows
    },
    giveBack(rows) {
      for (const row of rows) {
        const kind = kinds.get(keyOf(row))
        if (kind?.id === row.id) kind.unwritten += row.count
      }
    },
    takeDropped() {
      const count = dropped
      dropped = 0
      return count
    },
    forgetOld(now) {
      for (const [key, { firstAt, unwritten }] of kinds)
        if (unwritten === 0 && firstAt + together <= now) kinds.delete(key)
    },
  }
}

const clip = (text: string | null): string | null => text && storableText(text, maxText)

const bounded = (refusal: Refusal): Refusal => ({
  ...refusal,
  details: storableText(refusal.details, maxDetails),
  address: clip(refusal.address),
  calling: clip(refusal.calling),
  called: clip(refusal.called),
})

/** A scanner takes a new port, and a new name for itself, every time. */
const keyOf = ({ accountId, trunkId, direction, reason, address, called }: Refusal): string =>
  JSON.stringify([accountId, trunkId, direction, reason, address?.replace(/:\d+$/, ''), called])

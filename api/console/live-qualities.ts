/**
 * Owns how well sound gets through in calls that run, as their legs tell it: listened for while somebody watches, in memory, and forgotten when a leg
 * tells no more.
 */
import { fromBytes } from '../../model/bus-json.ts'
import type { Bus, Subscription } from '../../model/bus.ts'
import type { Clock } from '../../model/clock.ts'
import type { CallId } from '../../model/ids.ts'
import {
  allQualities,
  callOfQuality,
  qualityToldEvery,
  ToldQuality,
  toLiveQuality,
  type LiveQuality,
} from '../../model/live-quality.ts'

/** Of all accounts: a deployment has not more. */
const mostCalls = 20_000
/** A telling or two may be lost. */
const goodFor = 3 * qualityToldEvery

type Told = { readonly at: number; readonly payload: Uint8Array; read: LiveQuality | null | undefined }

export type LiveQualities = {
  /** The result ends it. */
  listen(): () => void
  /** Null: nothing was told of late. */
  of(callId: CallId): LiveQuality | null
}

export function createLiveQualities({ bus, clock }: { readonly bus: Bus; readonly clock: Clock }): LiveQualities {
  /** Oldest first. */
  const told = new Map<CallId, Told>()
  let listeners = 0
  let subscription: Subscription | null = null

  function hear(callId: CallId, payload: Uint8Array): void {
    const at = clock.now()
    told.delete(callId)
    told.set(callId, { at, payload, read: undefined })
    for (const [id, oldest] of told) {
      if (at - oldest.at <= goodFor && told.size <= mostCalls) break
      told.delete(id)
    }
  }

  return {
    listen() {
      subscription ??= bus.subscribe(allQualities, ({ subject, payload }) => hear(callOfQuality(subject), payload))
      listeners++
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        listeners--
        if (listeners > 0) return
        subscription?.close()
        subscription = null
        told.clear()
      }
    },
    of(callId) {
      const newest = told.get(callId)
      if (!newest || clock.now() - newest.at > goodFor) return null
      if (newest.read === undefined) newest.read = readFrom(newest.payload)
      return newest.read
    },
  }
}

/** Of a peer of another version it may be anything. */
function readFrom(payload: Uint8Array): LiveQuality | null {
  const read = ToldQuality.safeParse(fromBytes(payload))
  return read.success ? toLiveQuality(read.data) : null
}

/** Owns what all media of this process shares: the beat, the codecs, and how a leg is made, for a browser's line or a telephone's. */
import { createLegSweep } from '../actors/rounds/leg-sweep.ts'
import type { CallId } from '../model/ids.ts'
import type { LegSignaling } from '../model/rtp-transport.ts'
import { createLeg, type Leg } from '../media/leg/leg.ts'
import { createOpusLibrary } from '../media/codecs/opus.ts'
import { createTicker, type Ticker } from '../media/ticker/ticker.ts'
import type { Core } from './core.ts'

export type MediaSide = {
  readonly ticker: Ticker
  /** Calls with a leg here; `fresh` are those that got it in the last seconds. */
  count(): { readonly calls: number; readonly fresh: number }
  createLeg(line: {
    readonly callId: CallId
    readonly signaling: LegSignaling | null
    readonly connectWithin: number
    readonly onClosed: () => void
  }): Leg
}

export const now = (): number => performance.now()

/** Ms. */
const freshFor = 5_000

/** `inbandKeys`: as in LegDeps. */
export function openMediaSide(core: Core, closing: AsyncDisposableStack, inbandKeys = false): MediaSide {
  const { bus, recordings, log, clock, telemetry } = core
  const ticker = createTicker({ now, after: (ms, action) => clock.after(ms, action), telemetry })
  closing.defer(() => ticker.close())
  const shared = { bus, ticker, opus: createOpusLibrary(), recordings, log, telemetry, now, inbandKeys }
  /** In the order in which they were made. */
  const legs = new Map<CallId, { readonly leg: Leg; readonly since: number }>()
  const legSweep = createLegSweep(core, {
    all: () => [...legs.keys()],
    close: (callId, reason) => void legs.get(callId)?.leg.close(reason),
  })
  closing.defer(() => legSweep.close())
  return {
    ticker,
    count() {
      const freshSince = now() - freshFor
      let fresh = 0
      for (const { since } of legs.values()) if (since > freshSince) fresh++
      return { calls: legs.size - fresh, fresh }
    },
    createLeg(line) {
      const onClosed = () => {
        if (legs.get(line.callId)?.leg === leg) legs.delete(line.callId)
        line.onClosed()
      }
      const leg: Leg = createLeg({ ...shared, ...line, onClosed })
      legs.set(line.callId, { leg, since: now() })
      return leg
    },
  }
}

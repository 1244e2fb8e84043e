/**
 * Owns how the leg of a call is told what to record: the newest order counts, and is given again when the leg does not answer. A leg that never
 * does is given up by its call within seconds.
 */
import type { Bus } from '../../../model/bus.ts'
import type { RecordingState } from '../../../model/call.ts'
import type { RecordedParts } from '../../../model/leg.ts'
import type { Log } from '../../../model/log.ts'
import { reachLeg } from '../../node/leg-link.ts'
import type { CallEnd } from './performer-deps.ts'

export type RecordingOrders = {
  /** As the call has decided by now: a talk that is being prepared asks again when it is. */
  isPaused(): boolean
  /** What the call had decided when it ordered a talk; no order to the leg. */
  begin(state: RecordingState | undefined): void
  /** Resolves when the leg does so, or will not. */
  set(parts: RecordedParts): Promise<void>
}

const attempts = 3

export function createRecordingOrders(
  { bus, log }: { readonly bus: Bus; readonly log: Log },
  { callId, epoch }: Pick<CallEnd, 'callId' | 'epoch'>,
): RecordingOrders {
  let newest = 0
  let isPaused = false
  return {
    isPaused: () => isPaused,
    begin: (state) => void (isPaused = state === 'paused'),
    async set(parts) {
      isPaused = parts === 'none'
      const order = ++newest
      for (let attempt = 0; attempt < attempts && order === newest; attempt++) {
        const reply = await reachLeg(bus, callId, { type: 'record', epoch, parts })
        if (reply.type === 'accepted' || reply.type === 'gone') return
        if (reply.type !== 'silent' && reply.type !== 'away') break
      }
      if (order === newest) log.error('the leg of a call does not record as it was told', { parts })
    },
  }
}

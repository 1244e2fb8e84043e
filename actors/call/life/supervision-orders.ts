/**
 * Owns how the leg of a call, and whoever carries the sound of its supervisors, are told who listens and who speaks: the newest order counts, and is given
 * again when the leg does not answer. A leg that cannot let a supervisor speak gives the call back to the agent.
 */
import { subjectsOf, type Bus } from '../../../model/bus.ts'
import { toBytes } from '../../../model/bus-json.ts'
import type { Log } from '../../../model/log.ts'
import type { Supervised } from '../../../model/supervision.ts'
import { reachLeg } from '../../node/leg-link.ts'
import type { CallEnd } from './performer-deps.ts'

export type SupervisionOrders = {
  /** `first`: what must be over before. Resolves when the leg does so, or will not. */
  set(wanted: Supervised, first: Promise<void>): Promise<void>
  /** Nobody is listened to any more. */
  end(): void
}

const attempts = 3
const nobody: Supervised = { supervisors: [], voice: null }

export function createSupervisionOrders(
  { bus, log }: { readonly bus: Bus; readonly log: Log },
  { callId, epoch, post }: Pick<CallEnd, 'callId' | 'epoch' | 'post'>,
): SupervisionOrders {
  let newest = 0
  let told = nobody
  const tell = (wanted: Supervised): void => {
    told = wanted
    bus.publish(subjectsOf(callId).supervised, toBytes(wanted))
  }
  return {
    async set(wanted, first) {
      const order = ++newest
      tell(wanted)
      await first
      const { supervisors, voice } = wanted
      const command = { type: 'supervise', epoch, listens: supervisors.length > 0, voice: voice !== null } as const
      for (let attempt = 0; attempt < attempts && order === newest; attempt++) {
        const reply = await reachLeg(bus, callId, command)
        if (reply.type === 'accepted' || reply.type === 'gone') return
        if (reply.type !== 'silent' && reply.type !== 'away') break
      }
      if (order !== newest) return
      log.error('the leg of a call does not let supervisors hear and speak as it was told', { voice })
      if (voice !== null) post({ type: 'voice_lost' })
    },
    end() {
      newest++
      if (told.supervisors.length > 0) tell(nobody)
    },
  }
}

/**
 * Owns which calls begin here although the database does not know them: those of workers that are known, a few a second, and no more at a time than the account
 * and the worker may have. Places that calls of before, or of other processes, take are not seen.
 */
import type { Clock } from '../../model/clock.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { InboundCall } from '../../model/telephony.ts'
import { createRateLimit, perSecond } from '../../net/token-bucket.ts'
import type { CallWarning } from '../../model/call.ts'
import { keptBirthOf } from '../call/birth/kept-birth.ts'
import type { KnownWorker } from './known-arrivals.ts'
import type { Birthplace } from './receive-call.ts'

type Deps = {
  readonly clock: Clock
  readonly log: Log
  readonly nodeId: NodeId
  readonly router: Birthplace
}

export type BirthsWhileAway = {
  /** Null: it cannot begin here. */
  bear(call: InboundCall, worker: KnownWorker, writing: Writing): Promise<CallId | null>
  /** Its actor has begun. */
  begun(callId: CallId): void
}

/** `late`: what may still come of writing the call, under this id. */
type Writing = { readonly callId: CallId; readonly sessionId: string; readonly late: Promise<unknown> }

/** Calls a second, and calls that the database does not know, at a time. */
const [pace, most] = [perSecond(10), 500]

export function createBirthsWhileAway({ clock, log, nodeId, router }: Deps): BirthsWhileAway {
  const mayBegin = createRateLimit(pace)
  const running = new Map<CallId, Whose>()
  const count = (fits: (of: Whose) => boolean): number => [...running.values()].filter(fits).length
  const hasPlace = ({ accountId, workerId, limits }: KnownWorker): boolean =>
    running.size < most &&
    count((of) => of.accountId === accountId) < limits.account &&
    count((of) => of.workerId === workerId) < (limits.worker ?? Infinity)

  return {
    async bear(call, worker, { callId, sessionId, late }) {
      if (!router.bear || !hasPlace(worker) || !mayBegin(clock.now())) return null
      const now = clock.now()
      const knownFor = Math.round((now - Math.min(worker.at, call.route.knownAt ?? now)) / 1_000)
      const ids = { callId, sessionId, nodeId, now, warnings: [warningOf(knownFor)] }
      const { script, hook } = worker
      running.set(callId, worker)
      try {
        await router.bear({ birth: keptBirthOf(call, ids), worker, late, script, hook })
      } catch (error) {
        running.delete(callId)
        log.error('a call that came while the database is away could not be kept', { error })
        return null
      }
      log.warn('a call begins while the database is away', { callId, knownFor })
      // From then on the database counts it.
      const written = (): void => void running.delete(callId)
      router.written?.(callId)?.then(written, written)
      return callId
    },
    begun(callId) {
      if (running.has(callId)) void router.gone?.(callId).then(() => running.delete(callId))
    },
  }
}

type Whose = Pick<KnownWorker, 'workerId' | 'accountId'>

const warningOf = (knownFor: number): CallWarning => ({
  type: 'DATABASE_WAS_AWAY',
  message: `The database did not answer when the call came: it began by what had been known ${knownFor} s before, without tools, and without knowing the caller.`,
})

/**
 * Owns what is known of arriving calls while the database cannot be asked: where each led when it answered last, how its worker was configured, and where
 * its callers go when nobody can talk. Learned from calls that came, asked for again every minute, so that it is hardly older than the outage; what nobody
 * called for a day is forgotten. A question that the database refused since is known no more.
 */
import type { Clock } from '../../model/clock.ts'
import type { AccountId, WorkerId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { Arrival, InboundRoute, RefusedArrival } from '../../model/telephony.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import type { MatchingSubscription } from '../../store/subscriptions.ts'
import { createRounds } from '../rounds/rounds.ts'

export type KnownWorker = {
  readonly accountId: AccountId
  readonly workerId: WorkerId
  readonly language: string
  /** With what the account says for all of its workers. */
  readonly config: WorkerConfig
  /** Null: nowhere. */
  readonly redirectTo: string | null
  /** The scripts of its inbound calls; null: it has none. */
  readonly script: string | null
  /** Who is asked before its calls begin; null: nobody. */
  readonly hook: MatchingSubscription | null
  /** Ms since the epoch: so it was then. */
  readonly at: number
  readonly limits: { readonly account: number; readonly worker: number | null }
}

export type KnownArrivals = {
  /** As the database has just answered. */
  learn(arrival: Arrival, found: InboundRoute | RefusedArrival): void
  /** With when it was so. */
  find(arrival: Arrival): InboundRoute | null
  worker(workerId: WorkerId): KnownWorker | null
  /** What was learned is asked for again now. */
  refreshed(): Promise<void>
  close(): Promise<void>
}

type Deps = {
  readonly clock: Clock
  readonly log: Log
  readonly route: (arrival: Arrival) => Promise<InboundRoute | RefusedArrival>
  /** Of those that are active; the others are left out. */
  readonly readWorkers: (workers: readonly Asked[]) => Promise<readonly KnownWorker[]>
}
export type Asked = Pick<KnownWorker, 'accountId' | 'workerId'>

type Known = {
  readonly arrival: Arrival
  readonly route: InboundRoute
  readonly at: number
  /** When it was called last. */
  readonly calledAt: number
}

const refreshEvery = 60_000
const forgetAfter = 24 * 3_600_000
const mostArrivals = 1_000
/** Characters of all scripts together. */
const mostScript = 16 << 20
/** Of one query. */
const together = 40

export function createKnownArrivals({ clock, log, route, readWorkers }: Deps): KnownArrivals {
  const known = new Map<string, Known>()
  /** Whether they may be kept or not: one that is too long is not asked for again with each call. */
  let asked = new Set<WorkerId>()
  let workers: ReadonlyMap<WorkerId, KnownWorker> = new Map()

  const set = (key: string, news: Known): void => {
    // The one that was called least lately goes first.
    known.delete(key)
    for (const oldest of known.size >= mostArrivals ? [...known.keys()].slice(0, 1) : []) known.delete(oldest)
    known.set(key, news)
  }
  const refresh = async (): Promise<boolean> => {
    const now = clock.now()
    for (const [key, { calledAt }] of known) if (now - calledAt > forgetAfter) known.delete(key)
    const all = [...known]
    for (let from = 0; from < all.length; from += together)
      await Promise.all(
        all.slice(from, from + together).map(async ([key, { arrival }]) => {
          const found = await route(arrival)
          const last = known.get(key)
          if ('sipStatus' in found) known.delete(key)
          else if (last) known.set(key, { ...last, route: found, at: now })
        }),
      )
    const ofRoutes = new Map([...known.values()].map((entry) => [entry.route.workerId, askedOf(entry.route)]))
    asked = new Set(ofRoutes.keys())
    const read = ofRoutes.size === 0 ? [] : await readWorkers([...ofRoutes.values()])
    workers = new Map(withinBound(read, log).map((worker) => [worker.workerId, worker]))
    return false
  }
  const rounds = createRounds({ clock, log, every: refreshEvery, look: refresh })

  return {
    learn(arrival, found) {
      const key = keyOf(arrival)
      if ('sipStatus' in found) return void known.delete(key)
      const now = clock.now()
      const isNew = !asked.has(found.workerId)
      set(key, { arrival, route: found, at: now, calledAt: now })
      if (!isNew) return
      asked.add(found.workerId)
      rounds.wake()
    },
    find(arrival) {
      const last = known.get(keyOf(arrival))
      return last ? { ...last.route, knownAt: last.at } : null
    },
    worker: (workerId) => workers.get(workerId) ?? null,
    refreshed: rounds.idle,
    close: rounds.close,
  }
}

/** Who calls is nothing to the route. */
const keyOf = ({ address, called, dialed }: Arrival): string => JSON.stringify([address, called, dialed ?? called])

const askedOf = ({ workerId, trunk: { accountId } }: InboundRoute): Asked => ({ workerId, accountId })

function withinBound(read: readonly KnownWorker[], log: Log): KnownWorker[] {
  let left = mostScript
  const kept = read.filter(({ script }) => (left -= script?.length ?? 0) >= 0)
  if (kept.length < read.length)
    log.warn('not all scripts are kept for the time that the database is away', {
      workers: read.length,
      kept: kept.length,
    })
  return kept
}

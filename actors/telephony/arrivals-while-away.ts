/**
 * Owns what becomes of calls that arrive while the database does not answer: they are routed as they were when it did, and begin by what is known of their
 * worker. Who cannot begin is sent where the worker names a number for that; everybody else is told to come again. docs/design/database-away.md "New calls"
 */
import { deadline } from '../../model/deadline.ts'
import type { Clock } from '../../model/clock.ts'
import type { CallId, NewId, NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { Arrival, InboundCall, InboundRoute, RefusedArrival, Telephony } from '../../model/telephony.ts'
import { databaseUnreachable } from '../../store/database-unreachable.ts'
import { readKnownWorkers } from '../../store/known-workers.ts'
import type { Sql } from '../../store/sql.ts'
import { redirectTargetOf } from '../call/redirect-target.ts'
import { createBirthsWhileAway } from './births-while-away.ts'
import { createKnownArrivals, type Asked, type KnownArrivals, type KnownWorker } from './known-arrivals.ts'
import type { Birthplace, IdentifiedCall } from './receive-call.ts'

/** Ms that a caller waits for the database: whose route is known, whose is not, and not either while others have waited in vain. */
const [patience, longestPatience] = [1_000, 4_000]
/** Ms that a call whose worker is known waits to be written. */
const birthPatience = 2_000
/** Ms for which a database that did not answer is taken to be away still. */
const awayFor = 10_000

type Deps = {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly refusalOf: Telephony['refusalOf']
  readonly newId: NewId
  readonly nodeId: NodeId
  readonly router: Birthplace
}

type Received = { readonly callId: CallId } | RefusedArrival
type Ways = {
  route(arrival: Arrival): Promise<InboundRoute | RefusedArrival>
  receive(call: IdentifiedCall): Promise<Received>
}

export type ArrivalsWhileAway = Pick<Ways, 'route'> &
  Pick<KnownArrivals, 'refreshed' | 'close'> & {
    receive(call: InboundCall): Promise<Received>
    /** The call has begun, if it has. */
    begun(callId: CallId): void
  }

export function createArrivalsWhileAway(deps: Deps, { route, receive }: Ways): ArrivalsWhileAway {
  const { clock } = deps
  const births = createBirthsWhileAway(deps)
  const known = createKnownArrivals({ ...deps, route, readWorkers: (asked) => readWorkers(deps, asked) })

  let missedAt = -Infinity
  /** Null: it does not answer. */
  const unlessAway = async <Value>(work: Promise<Value>, ms: number): Promise<Value | null> => {
    const missed = (): null => {
      missedAt = clock.now()
      return null
    }
    work.catch(ignored)
    try {
      const value = await deadline(clock, ms, work, missed)
      if (value !== null) missedAt = -Infinity
      return value
    } catch (error) {
      if (databaseUnreachable(error)) return missed()
      throw error
    }
  }
  return {
    async route(arrival) {
      const last = known.find(arrival)
      const isBrief = last !== null || clock.now() - missedAt < awayFor
      const found = await unlessAway(route(arrival), isBrief ? patience : longestPatience)
      if (found === null) return last ?? notKnown
      known.learn(arrival, found)
      return found
    },
    async receive(call) {
      const worker = known.worker(call.route.workerId)
      const ids = { callId: deps.newId<'call'>(), sessionId: deps.newId() }
      // Who was routed without it is not written by it either.
      const writing = call.route.knownAt === undefined ? receive({ ...call, ids }) : null
      const received = writing && (await unlessAway(writing, worker ? birthPatience : longestPatience))
      if (received) return received
      const late = writing ?? Promise.resolve()
      const callId = worker && (await births.bear(call, worker, { ...ids, late }))
      return callId === null ? withoutDatabase(deps, call, worker) : { callId }
    },
    begun: births.begun,
    refreshed: known.refreshed,
    close: known.close,
  }
}

const notKnown: RefusedArrival = {
  reason: 'database_away',
  details:
    'The database does not answer, and no call to this number came from there lately, so that it is not known whose it is.',
  accountId: null,
  trunkId: null,
  sipStatus: 503,
  retryAfterSeconds: 10,
}

function withoutDatabase({ clock, log }: Deps, { route }: InboundCall, worker: KnownWorker | null): RefusedArrival {
  const { accountId, id: trunkId } = route.trunk
  const knownForMs = clock.now() - (route.knownAt ?? clock.now())
  const refused = { reason: 'database_away', accountId, trunkId } as const
  if (worker?.redirectTo == null)
    return {
      ...refused,
      sipStatus: 503,
      retryAfterSeconds: 10,
      details: 'The database does not answer, and the worker names no serviceDownRedirectNumber that is known here.',
    }
  log.warn('the database does not answer: a caller is sent to the number for that', { trunkId, knownForMs })
  const details = 'The database does not answer: the caller was sent to the serviceDownRedirectNumber of the worker.'
  return { ...refused, sipStatus: 302, redirectTo: worker.redirectTo, details }
}

async function readWorkers(deps: Deps, asked: readonly Asked[]): Promise<KnownWorker[]> {
  const at = deps.clock.now()
  const rows = await readKnownWorkers(deps.sql, asked)
  return Promise.all(
    rows.map(async ({ accountLimit, workerLimit, ...row }) => ({
      ...row,
      at,
      limits: { account: accountLimit, worker: workerLimit },
      redirectTo: await redirectTargetOf(deps, row.accountId, row.config),
    })),
  )
}

const ignored = (): void => {}

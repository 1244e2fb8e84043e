/**
 * Owns how long anybody waits for the database, and that nothing becomes true after they stopped. Each query and each transaction has a
 * deadline, with its wait for a connection; past it its caller has a QueryDeadline, and what it wrote is never committed:
 * - A statement by itself would be carried out whenever a frozen server reads it. So each one that writes is a transaction, unless its deadline stands
 *   in it (in-time.ts).
 * - In front of COMMIT goes a guard that the server evaluates: no more time may have passed since the transaction began than was left of the
 *   deadline when its beginning was answered. A server that finds both in its socket an hour later fails at the guard, and rolls back.
 * - A server that answers no query, although its own statement_timeout must have ended it, is frozen or out of reach: all connections are
 *   given up and opened anew. What went over those to other callers has its own deadline to end by.
 */
import type { Log } from '../model/log.ts'
import { openConnectionPool, type Begun, type ConnectionPool, type Query } from './connection-pool.ts'
import { createServerClock, isBefore, readServer } from './in-time.ts'
import type { ConnectOptions, Fragment, Sql, Transaction } from './sql.ts'

class QueryDeadline extends Error {
  override readonly name = 'QueryDeadline'
  readonly code = 'QUERY_DEADLINE'
  constructor(limit: number) {
    super(`the database gave no answer within ${limit / 1000} s`)
  }
}

type TimelyOptions = Omit<ConnectOptions, 'statementTimeout' | 'opened'> & {
  /** Ms that a query or a transaction may take, and a statement of it on the server. */
  readonly limit: number
  readonly log: Log
}

/** Ms beyond the statement_timeout in which the server tells of it. */
const grace = 1_000
/** Ms in which the answer to a COMMIT comes back in time. */
const wayBack = 100
/** Of the limit: what a question for the server's clock may take. */
const shareOfWay = 1 / 10

/** What of a promise decides it. */
type Settling = { resolve(value: unknown): void; reject(error: unknown): void }

/** The same on any connection. */
type Make = (on: Sql | Transaction) => unknown

/** Offers what this program uses of `Sql`: queries, fragments, values, transactions, the end. */
export function createTimelySql({ limit, log, ...options }: TimelyOptions): Sql {
  const pooled = { ...options, statementTimeout: limit }
  let pool = openConnectionPool(pooled)
  let ended: Promise<void> | null = null
  const leaving = new Set<Promise<void>>()

  const giveUp = (stuck: ConnectionPool): void => {
    if (stuck !== pool || ended) return
    log.error('the database gives no answer; its connections are given up', { afterMs: 2 * limit + grace })
    pool = openConnectionPool(pooled)
    const left = stuck.close(limit).finally(() => leaving.delete(left))
    leaving.add(left)
  }
  const watch = (asked: Settling, of: ConnectionPool, isSent: () => boolean): void => {
    let stuck: NodeJS.Timeout | undefined
    const stop = late(limit, () => {
      reject(new QueryDeadline(limit))
      if (isSent()) stuck = setTimeout(giveUp, limit + grace, of).unref()
    })
    const { resolve, reject } = asked
    asked.resolve = (value) => {
      stop()
      clearTimeout(stuck)
      resolve(value)
    }
    asked.reject = (error) => {
      stop()
      clearTimeout(stuck)
      reject(error)
    }
  }
  const settle = (asked: Settling, { done, isSent }: Begun): void => {
    watch(asked, pool, isSent)
    done.then(
      (value) => asked.resolve(value),
      (error: unknown) => asked.reject(error),
    )
  }
  /** `made` belongs to the pool of now, and is asked when somebody awaits it. */
  const timely = (made: unknown, needsTransaction: () => boolean, make: Make): unknown => {
    if (!isQuery(made)) return made
    const [of, { handler }] = [pool, made]
    made.handler = (asked) => {
      if (needsTransaction()) return settle(asked, write(pool, limit, make))
      if (of !== pool) return settle(asked, read(pool, make))
      watch(asked, of, () => asked.state !== null)
      handler(asked)
    }
    return made
  }
  const ask = (...given: Given): unknown => {
    const carriesDeadline = given.some((part) => guards.has(part))
    const made = timely(pool.sql(...given), () => !carriesDeadline && !readsOf(given[0]), making(given))
    return carriesDeadline ? toldLate(made as Query, limit, clock.forget) : made
  }
  const clock = createServerClock(async () => (await readServer(ask as unknown as Sql))[0]!, limit * shareOfWay)
  const guards = new WeakSet<object>()
  const inTime = (): Fragment => {
    const by = clock.at(performance.now() + limit - wayBack)
    if (by === null) return pool.sql`true`
    const guard = isBefore(pool.sql, by)
    guards.add(guard)
    return guard
  }
  const unsafe = (...given: Parameters<Sql['unsafe']>): unknown =>
    timely(
      pool.sql.unsafe(...given),
      () => !onlyReads([given[0]]),
      (on) => on.unsafe(...given),
    )
  const begin = (...given: readonly unknown[]): Promise<unknown> => {
    const asked = Promise.withResolvers<unknown>()
    settle(asked, transact(pool, limit, given.at(-1) as (tx: Transaction) => unknown))
    return asked.promise
  }
  const end = async (ms: number): Promise<void> => {
    await Promise.all([pool.close(ms), ...leaving])
  }
  const { json, array, typed, types } = pool.sql
  const own = { unsafe, begin, inTime, end: ({ timeout = limit / 1000 } = {}) => (ended ??= end(timeout * 1000)) }
  return Object.assign(ask, { json, array, typed, types, options: pool.sql.options, ...own }) as unknown as Sql
}

type Given = [first: TemplateStringsArray, ...rest: never[]]

const making =
  (given: Given): Make =>
  (on) =>
    (on as Sql)(...given)

const isQuery = (made: unknown): made is Query => made instanceof Promise

/** A statement with its deadline in it, which fails by it. */
function toldLate(query: Query, limit: number, isLate: () => void): Query {
  const { reject } = query
  query.reject = (error) => {
    if (!isDivisionByZero(error)) return reject(error)
    isLate()
    reject(new QueryDeadline(limit))
  }
  return query
}

/** An answer that came in while this thread stood still is read before anybody is late. */
function late(ms: number, passed: () => void): () => void {
  let waiting = true
  const timer = setTimeout(() => setImmediate(() => waiting && passed()), ms)
  return () => {
    waiting = false
    clearTimeout(timer)
  }
}

function read(pool: ConnectionPool, make: Make): Begun {
  const query = (make(pool.sql) as Query).execute()
  return { done: query, isSent: () => query.state !== null }
}

/** Statement, guard and COMMIT go out together. */
function write(pool: ConnectionPool, limit: number, make: Make): Begun {
  const by = performance.now() + limit
  let result: Query | null = null
  let guard: Query | null = null
  const { done, isSent } = pool.begin((tx) => {
    const left = leftUntil(by, limit)
    result = (make(tx) as Query).execute()
    guard = guardOf(tx, left)
  })
  const written = async (): Promise<unknown> => {
    await done
    const value = await result
    await passed(guard, limit)
    return value
  }
  return { done: written(), isSent }
}

/**
 * With its connection a transaction is over. Whatever the work does then, the driver is told of no end: it would send the COMMIT or ROLLBACK over
 * a socket that is gone, or over the next one of the same connection, and throws where nobody can catch it.
 */
function transact(pool: ConnectionPool, limit: number, work: (tx: Transaction) => unknown): Begun {
  const by = performance.now() + limit
  const life = { isLost: false }
  let guard: Query | null = null
  const { done, isSent } = pool.begin(async (tx) => {
    const left = leftUntil(by, limit)
    try {
      const given = work(boundTransaction(tx, life, () => performance.now() > by && new QueryDeadline(limit)))
      const value: unknown = await (Array.isArray(given) ? Promise.all(given) : given)
      leftUntil(by, limit)
      if (life.isLost) return await never
      guard = guardOf(tx, left)
      return value
    } catch (error) {
      if (life.isLost) return never
      throw error
    }
  })
  const committed = async (): Promise<unknown> => {
    try {
      const value = await done
      await passed(guard, limit)
      return value
    } finally {
      life.isLost = true
    }
  }
  return { done: committed(), isSent }
}

const never = new Promise<never>(() => {})

function leftUntil(by: number, limit: number): number {
  const left = by - performance.now() - wayBack
  if (left <= 0) throw new QueryDeadline(limit)
  return left
}

/** `left`: ms from when the answer to BEGIN was here. The transaction had begun before that, so that who passes is in time by both clocks. */
function guardOf(tx: Transaction, left: number): Query {
  const query = tx`select 1 / (clock_timestamp() < now() + ${Math.trunc(left)}::int * interval '1 ms')::int`
  return (query as unknown as Query).execute()
}

const isDivisionByZero = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === '22012'

/** The COMMIT behind a guard that failed says that all is well: it has rolled back. */
async function passed(guard: Query | null, limit: number): Promise<void> {
  try {
    await guard
  } catch (error) {
    throw isDivisionByZero(error) ? new QueryDeadline(limit) : error
  }
}

/** After a failure nothing more of the transaction is sent: Postgres would refuse it, and the connection may be gone. */
function boundTransaction(
  tx: Transaction,
  life: { isLost: boolean },
  lateness: () => QueryDeadline | false,
): Transaction {
  let failure: { readonly error: unknown } | null = null
  const make = tx as unknown as (...given: readonly unknown[]) => unknown
  const ask = (...given: readonly unknown[]): unknown => {
    const made = make(...given)
    if (!isQuery(made)) return made
    const { handler, reject } = made
    made.reject = (error) => {
      failure ??= { error }
      if (isOfConnection(error)) life.isLost = true
      reject(error)
    }
    made.handler = (asked) => {
      const late = lateness()
      if (life.isLost || failure || late) return asked.reject(failure?.error ?? (late || new LostTransaction()))
      handler(asked)
    }
    return made
  }
  return Object.assign(ask, tx) as unknown as Transaction
}

class LostTransaction extends Error {
  override readonly name = 'LostTransaction'
  readonly code = 'CONNECTION_CLOSED'
  constructor() {
    super('the connection of a transaction was closed')
  }
}

/** Of the driver (`CONNECTION_…`), of the system, of TLS. What the driver finds wrong with a value leaves the connection as it is. */
function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return 'syscall' in error || ('code' in error && /^(?:CONNECTION_|ERR_SSL|ERR_TLS|EPROTO)/.test(String(error.code)))
}

/** A statement that is written in the program is one list of texts, however often it is asked. */
const known = new WeakMap<readonly string[], boolean>()

function readsOf(texts: readonly string[]): boolean {
  const before = known.get(texts)
  if (before !== undefined) return before
  const reads = onlyReads(texts)
  known.set(texts, reads)
  return reads
}

/** Data-changing statements may stand in a `with` too. `select … for update` holds its locks no longer than itself. */
function onlyReads(texts: readonly string[]): boolean {
  return (
    /^\s*(?:select|show|with)\b/i.test(texts[0] ?? '') &&
    !texts.some((text) => /\b(?:insert\s+into|update|delete\s+from|merge\s+into)\b/i.test(text))
  )
}

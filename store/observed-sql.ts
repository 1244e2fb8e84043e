/**
 * Owns what is told of the database: how long a transaction waits for a connection, and how long a query takes. The driver tells nobody, so
 * each query tells it itself: it is given to its `handler` once, when it is first awaited, and comes back by `resolve` or `reject` (driver
 * 3.4.9; fragments of other queries are never awaited). Plain queries share connections and wait for none as long as one is free.
 */
import type { Telemetry } from '../model/telemetry.ts'
import type { Sql, Transaction } from './sql.ts'

/** Queries that are under way, or wait for a connection. */
export type QueryLoad = { underWay: number }

/** The same connection, told of. */
export function observedSql(sql: Sql, telemetry: Telemetry, load: QueryLoad = { underWay: 0 }): Sql {
  const begin = (...given: readonly unknown[]): unknown => {
    const asked = performance.now()
    const work = given.at(-1) as (tx: Transaction) => unknown
    const begun = (tx: Transaction): unknown => {
      telemetry.observe('db.connection_wait', performance.now() - asked, noLabels)
      return work(watched(tx, { tell: tellerOf('transaction', telemetry), load }))
    }
    return (sql.begin as (...given: readonly unknown[]) => unknown)(...given.slice(0, -1), begun)
  }
  return Object.assign(watched(sql, { tell: tellerOf('pool', telemetry), load }), { begin }) as Sql
}

const noLabels = {}

type Result = 'ok' | 'failed'
type Teller = (result: Result, began: number) => void
type Watcher = { readonly tell: Teller; readonly load: QueryLoad }

function tellerOf(within: 'pool' | 'transaction', telemetry: Telemetry): Teller {
  const labels = { ok: { within, result: 'ok' }, failed: { within, result: 'failed' } } as const
  return (result, began) => telemetry.observe('db.query', performance.now() - began, labels[result])
}

/** What of a query is the driver's own. */
type Query = {
  handler(query: Query): void
  resolve(value: unknown): void
  reject(error: unknown): void
}

/** What else the function carries (`json`, `unsafe`, `end`) stays as it is. */
function watched<Of extends Sql | Transaction>(sql: Of, to: Watcher): Of {
  const make = sql as unknown as (...given: readonly unknown[]) => unknown
  const ask = (...given: readonly unknown[]): unknown => {
    const made = make(...given)
    if (isQuery(made)) watch(made, to)
    return made
  }
  return Object.assign(ask, sql) as unknown as Of
}

const isQuery = (made: unknown): made is Query => made instanceof Promise

function watch(query: Query, { tell, load }: Watcher): void {
  const { handler, resolve, reject } = query
  query.handler = (asked) => {
    const began = performance.now()
    load.underWay++
    query.resolve = (value) => {
      load.underWay--
      tell('ok', began)
      resolve(value)
    }
    query.reject = (error) => {
      load.underWay--
      tell('failed', began)
      reject(error)
    }
    handler(asked)
  }
}

/**
 * Owns how a statement that is a transaction by itself carries its deadline: by the clock of the server, which was asked a moment before. One that is
 * read too late fails where the deadline stands in it, and has written nothing.
 *
 * The answer was here after the server had read its clock, so that who passes is in time by both clocks, whatever the way took. A server that was
 * started since, or is another one, has another clock: it fails as well. One whose clock is put forward fails once, and is asked anew; one whose clock is
 * put back passes later by as much, until it is asked again.
 */
import type { Fragment, Sql, Transaction } from './sql.ts'

/** True; an error where it is evaluated too late. Of a transaction of several statements, and where nothing has a deadline, only true. */
export const inTime = (sql: Sql | Transaction): Fragment =>
  (sql as { inTime?: () => Fragment }).inTime?.() ?? (sql as Sql)`true`

export type ServerReading = {
  /** Ms since the epoch, by its clock. */
  readonly now: number
  /** When it was started, to the microsecond: no other one was. */
  readonly server: string
}

export type ServerClock = {
  /** What the server's clock says at this time of `performance.now()`, or sooner. Null: it is not known just now. */
  at(time: number): ServerReading | null
  /** It says something else. */
  forget(): void
}

/** Ms after which it is asked again, by whoever needs it next. */
const freshFor = 1_000
const lastsFor = 10_000

/** `longestWay`: an answer that took longer tells too little. */
export function createServerClock(ask: () => Promise<ServerReading>, longestWay: number): ServerClock {
  let known: { readonly reading: ServerReading; readonly read: number } | null = null
  let asking = false

  const askNow = async (): Promise<void> => {
    asking = true
    const asked = performance.now()
    try {
      const reading = await ask()
      const read = performance.now()
      if (read - asked <= longestWay) known = { reading, read }
    } catch {
      // Whoever needs it has the same database, and is told.
    } finally {
      asking = false
    }
  }
  return {
    at(time) {
      const age = known === null ? Infinity : performance.now() - known.read
      if (age > freshFor && !asking) void askNow()
      if (known === null || age > lastsFor) return null
      const { reading, read } = known
      return { ...reading, now: Math.trunc(reading.now + time - read) }
    },
    forget: () => void (known = null),
  }
}

/** Of the server that is asked: this clock, and who it is. */
export const readServer = (sql: Sql) => sql<ServerReading[]>`
  select clock_timestamp() as now, pg_postmaster_start_time()::text as server`

export const isBefore = (sql: Sql, { now, server }: ServerReading): Fragment =>
  sql`(1 / (clock_timestamp() < ${now} and pg_postmaster_start_time()::text = ${server})::int = 1)`

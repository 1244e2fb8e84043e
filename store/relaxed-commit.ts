/**
 * Owns which commits do not wait for the disk: those of writes that may be lost when Postgres itself dies, because they are made anew within seconds or
 * tell nothing that anybody relies on. Every other commit waits.
 */
import type { Sql, Transaction } from './sql.ts'

/**
 * A first part of a `with`, named `relaxed`, one row: the statement reads it, and the transaction that it stands in commits without a flush. It must write
 * nothing else.
 */
export const relaxedCommit = (sql: Sql | Transaction) =>
  sql`relaxed as materialized (select set_config('synchronous_commit', 'off', true))`

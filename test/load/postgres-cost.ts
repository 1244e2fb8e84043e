/** Owns what the service has Postgres do: commits, and what of its log is written and forced to the disk. Read while nothing else works on the server. */
import type { Sql } from '../../store/sql.ts'
import { readPostgresCpu } from './postgres-cpu.ts'

/** So far. NaN where this version of the server does not tell. */
export type PostgresCost = {
  readonly cpuMs: number
  readonly commits: number
  readonly fsyncs: number
  readonly walBytes: number
  /** Of calls: each has one more version. */
  readonly steps: number
}

const newestViews = 180_000

export async function readPostgresCost(sql: Sql): Promise<PostgresCost> {
  const cpuMs = await readPostgresCpu(sql)
  const [row] = await sql<{ commits: number; walBytes: number; steps: number; version: number }[]>`
    select
      (select xact_commit from pg_stat_database where datname = current_database())::float8 as commits,
      (select wal_bytes from pg_stat_wal)::float8 as wal_bytes,
      (select coalesce(sum(version), 0) from calls)::float8 as steps,
      current_setting('server_version_num')::int as version`
  const { commits = Number.NaN, walBytes = Number.NaN, steps = Number.NaN, version = 0 } = row ?? {}
  return { cpuMs, commits, walBytes, steps, fsyncs: await readFsyncs(sql, version) }
}

/** Since 18 what is written of the log is told with all other writes. */
async function readFsyncs(sql: Sql, version: number): Promise<number> {
  const [row] = await sql.unsafe<{ fsyncs: number }[]>(
    version >= newestViews
      ? "select sum(fsyncs)::float8 as fsyncs from pg_stat_io where object = 'wal'"
      : 'select wal_sync::float8 as fsyncs from pg_stat_wal',
  )
  return row?.fsyncs ?? Number.NaN
}

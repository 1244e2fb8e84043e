/** Owns what Postgres costs: the CPU of all of its processes that are seen from inside. It works for nobody else meanwhile. */
import { readFileSync } from 'node:fs'
import type { Sql } from '../../store/sql.ts'

const msPerTick = 10

/** So far, ms: connections and what works in the background. NaN where the system does not tell. */
export async function readPostgresCpu(sql: Sql): Promise<number> {
  const rows = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity where backend_type <> 'autovacuum worker' and backend_type <> 'parallel worker'`
  return rows.map(({ pid }) => cpuOfProcess(pid)).reduce((sum, cpu) => sum + cpu, 0)
}

function cpuOfProcess(pid: number): number {
  try {
    // proc(5): user and system time are the 14th and 15th field; the 2nd, in parentheses, may hold spaces.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * msPerTick
  } catch {
    return Number.NaN // No /proc here.
  }
}

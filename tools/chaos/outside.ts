/** Owns what can be seen of a run from outside: rows of the database, UDP ports that processes hold, and lines of their logs. */
import { createReadStream, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { AccountId, NodeId } from '../../model/ids.ts'
import { nodeOfSession } from '../../store/nodes.ts'
import type { Sql } from '../../store/sql.ts'
import type { CallRow } from './judge.ts'

export type KnownCall = CallRow & { readonly fromNumber: string | null; readonly toNumber: string | null }

/** Of the account, those that began at this time or later. */
export async function readCalls(sql: Sql, accountId: AccountId, since: number): Promise<KnownCall[]> {
  return sql<KnownCall[]>`
    select id, outcome, failed_reason, ended_by, finished, from_number, to_number,
      (extract(epoch from ended_at) * 1000)::float8 as ended_at,
      coalesce((select array_agg(text order by turn_index) from transcript_turns t where t.call_id = c.id and role = 'user'), '{}') as heard
    from calls c where account_id = ${accountId} and created_at >= to_timestamp(${since / 1000}::float8)`
}

/** What of the account is still under way. */
export async function countPending(
  sql: Sql,
  accountId: AccountId,
): Promise<{ readonly calls: number; readonly deliveries: number }> {
  const [row] = await sql<{ calls: number; deliveries: number }[]>`
    select (select count(*)::int from calls where account_id = ${accountId} and not finished) as calls,
      (select count(*)::int from deliveries where account_id = ${accountId} and status = 'pending') as deliveries`
  return row ?? { calls: 0, deliveries: 0 }
}

/** Calls that have an actor at this node, or had one when it died, and lines of telephones that it carries. */
export async function countLeft(sql: Sql, node: NodeId): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select (select count(*)::int from calls where owner = ${node} and not finished)
      + (select count(*)::int from sip_dialogs where node_id = ${node}) as count`
  return row?.count ?? 0
}

/** As whom a process is known in the database, by its connections there. */
export async function nodeOfProcess(sql: Sql, pid: number): Promise<NodeId | null> {
  const rows = await sql<{ name: string }[]>`
    select application_name as name from pg_stat_activity where client_port = any(${tcpPortsOf(pid)}::int[])`
  return rows.map(({ name }) => nodeOfSession(name)).find((node) => node !== null) ?? null
}

/** Local ones of its sockets. */
function tcpPortsOf(pid: number): number[] {
  try {
    const held = new Set(inodesOf(pid))
    const lines = ['tcp', 'tcp6'].flatMap((table) => fieldsIn(readFileSync(`/proc/${pid}/net/${table}`, 'latin1')))
    return lines.flatMap((fields) =>
      held.has(fields[9] ?? '') ? [Number.parseInt(fields[1]?.split(':').at(-1) ?? '', 16)] : [],
    )
  } catch {
    // It has ended.
    return []
  }
}

/** UDP sockets that a process holds: one for each browser's and two for each telephone's sound, and some that stay. Null: it is gone. */
export function countUdpSockets(pid: number): number | null {
  try {
    const inodes = new Set(
      ['udp', 'udp6'].flatMap((table) =>
        fieldsIn(readFileSync(`/proc/${pid}/net/${table}`, 'latin1')).map((fields) => fields[9] ?? ''),
      ),
    )
    return inodesOf(pid).filter((inode) => inodes.has(inode)).length
  } catch {
    // It has ended.
    return null
  }
}

/** CPU that a process has taken so far, its threads together, ms. 0: it is gone. */
export function cpuOf(pid: number): number {
  try {
    // The name of the program, in parentheses, may have anything in it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * msPerTick
  } catch {
    // It has ended.
    return 0
  }
}

/** USER_HZ is 100 wherever Linux runs. */
const msPerTick = 10

/** Of each socket of a table. */
const fieldsIn = (table: string): string[][] =>
  table
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))

/** Of the sockets that a process holds. */
const inodesOf = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((fd) => /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1] ?? [])

function linkOf(file: string): string {
  try {
    return readlinkSync(file)
  } catch {
    // Closed meanwhile.
    return ''
  }
}

/** Where the lines of a process go. */
type LogFile = { readonly name: string; readonly logFile: string }

const mostOfALine = 240

/** The last lines of these with the text in them, in the order of time, as people read them. */
export async function linesWith(processes: readonly LogFile[], text: string, most: number): Promise<string[]> {
  const found: { readonly time: number; readonly line: string }[] = []
  for (const { name, logFile } of processes)
    for await (const line of createInterface({ input: createReadStream(logFile) }))
      if (line.includes(text)) found.push(readable(name, line, text))
  return found
    .toSorted((a, b) => a.time - b.time)
    .slice(-most)
    .map(({ line }) => line)
}

function readable(name: string, line: string, text: string): { readonly time: number; readonly line: string } {
  try {
    const { time, level, msg, pid: _pid, hostname: _host, ...fields } = JSON.parse(line) as Record<string, unknown>
    const others = JSON.stringify(fields, (_key, value: unknown) => (value === text ? undefined : value))
    const at = new Date(Number(time)).toISOString().slice(11, 23)
    return {
      time: Number(time),
      line: `${at} ${name} ${String(level)}: ${String(msg)} ${others}`.slice(0, mostOfALine),
    }
  } catch {
    // No line of the service: a stack that it died with.
    return { time: Number.MAX_SAFE_INTEGER, line: `${name}: ${line}`.slice(0, mostOfALine) }
  }
}

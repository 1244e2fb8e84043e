/**
 * Owns the leases of the processes that run calls: a node is alive while its lease runs. The clock of the database measures it, for all of
 * them: a node whose own clock is a few seconds behind would else seem dead to the others, and lose its calls again and again.
 */
import type { NodeId } from '../model/ids.ts'
import { releaseDeliveries } from './deliveries.ts'
import { inTime } from './in-time.ts'
import { relaxedCommit } from './relaxed-commit.ts'
import type { Fragment, Sql } from './sql.ts'

/** Ms that a lease runs from its last renewal: so long before its end a dead node was last known to be alive. */
export const leaseLength = 5_000

/** What a process knows of the others beside their leases, by what it hears of them (actors/node/node-beats.ts). */
export type NodeSightings = {
  /** Dead, unless they have said here that they cannot be heard. */
  readonly silent: readonly NodeId[]
  /** Alive, whatever their leases say. */
  readonly heard: readonly NodeId[]
  /** Those of the silent whose connection to the bus has ended: their processes have, or are cut off from it. Absent: none. */
  readonly left?: readonly NodeId[]
}

export const nothingSeen: NodeSightings = { silent: [], heard: [] }

/**
 * Begins or renews, for so many ms from now. One that is lost with the server's memory is renewed within a second. `isOffBus`: the node can be heard
 * by nobody, and its silence means nothing.
 */
export async function renewLease(sql: Sql, nodeId: NodeId, length: number, isOffBus = false): Promise<void> {
  await sql`
    with ${relaxedCommit(sql)}
    insert into nodes (id, lease_until, off_bus)
    select ${nodeId}, clock_timestamp() + ${length}::int * interval '1 ms', ${isOffBus} from relaxed where ${inTime(sql)}
    on conflict (id) do update set lease_until = excluded.lease_until, off_bus = excluded.off_bus`
}

export async function endLease(sql: Sql, nodeId: NodeId): Promise<void> {
  await sql`delete from nodes where id = ${nodeId}`
}

/** What the sessions of a process that runs calls or has lines are called: the server ends them as soon as the system has ended the process. */
export const sessionNameOf = (nodeId: NodeId): string => `${sessionPrefix}${nodeId}`
const sessionPrefix = 'parley '

/** Null: it is no such session. */
export const nodeOfSession = (name: string): NodeId | null =>
  /^parley ([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/.exec(name) ? (name.slice(sessionPrefix.length) as NodeId) : null

/** `node`: a column. A pooler in between keeps sessions, or gives them to others: then leases decide, or what the bus says. */
export const hasSession = (sql: Sql, node: Fragment) => sql`
  exists (select from pg_stat_activity where application_name = ${sessionPrefix}::text || ${node})`

/** Ms without a renewal, of which there is one each second. */
export const overdue = 2_500

/** Of silent nodes those that could have said that they cannot be heard, and did not, nor renewed their lease. */
export async function hasFallen(sql: Sql, silent: readonly NodeId[]): Promise<boolean> {
  const living = await sql`
    select from nodes where id = any(${[...silent]}::text[])
      and (off_bus or lease_until > clock_timestamp() + ${leaseLength - overdue}::int * interval '1 ms')`
  return living.count < silent.length
}

/** Forgets nodes that have been dead for so many ms; their calls have been taken over. */
export async function forgetDeadNodes(sql: Sql, age: number): Promise<void> {
  await sql`delete from nodes where lease_until < clock_timestamp() - ${age}::int * interval '1 ms'`
}

/** A node whose lease has run out: `death` is another one when it came back and died again. */
type DeadNode = { readonly id: NodeId; readonly death: string }

const deaths = (sql: Sql) => sql`id || ' ' || extract(epoch from lease_until)`

export async function listDeadNodes(sql: Sql): Promise<DeadNode[]> {
  return sql<DeadNode[]>`select id, ${deaths(sql)} as death from nodes where lease_until <= clock_timestamp()`
}

/** There is a dead node beside those whose deaths are known. */
export const hasDeadNodes = (sql: Sql, known: readonly string[]) => sql`
  exists (select from nodes where lease_until <= clock_timestamp() and ${deaths(sql)} <> all(${[...known]}::text[]))`

/**
 * What these nodes had claimed is due at once, and not when the claims run out. Their own attempts are fenced by the claim that follows. Jobs that
 * are claimed were due by the clock of their node, which may be somewhat ahead of the database's.
 */
export async function releaseClaims(sql: Sql, nodeIds: readonly NodeId[]): Promise<void> {
  const ids = [...nodeIds]
  const free = { claimedBy: null, claimedUntil: null }
  await sql`
    update jobs set ${sql(free)} where claimed_by = any(${ids}::text[]) and run_at <= now() + interval '1 minute'`
  await sql`update document_jobs set claim = null, ${sql(free)} where claimed_by = any(${ids}::text[])`
  await releaseDeliveries(sql, ids)
}

/** Owns the leases of the processes that run calls: a node is alive while its lease runs. */
import type { NodeId } from '../model/ids.ts'
import type { Sql } from './sql.ts'

/** Begins or renews. */
export async function renewLease(sql: Sql, nodeId: NodeId, until: number): Promise<void> {
  await sql`
    insert into nodes (id, lease_until) values (${nodeId}, ${until})
    on conflict (id) do update set lease_until = excluded.lease_until`
}

export async function endLease(sql: Sql, nodeId: NodeId): Promise<void> {
  await sql`delete from nodes where id = ${nodeId}`
}

/** Forgets nodes that have been dead for long; their calls have been taken over. */
export async function forgetDeadNodes(sql: Sql, before: number): Promise<void> {
  await sql`delete from nodes where lease_until < ${before}`
}

/** Owns the rows of the dialogs of answered phone calls: who has them, and how those of a process that died come to another one. */
import { DialogFacts } from '../model/sip-dialog.ts'
import type { AccountId, CallId, NodeId, TrunkId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import { hasSession, leaseLength, overdue, type NodeSightings } from './nodes.ts'
import { inTime } from './in-time.ts'
import { relaxedCommit } from './relaxed-commit.ts'
import type { Sql } from './sql.ts'

export type HeldDialog = { readonly callId: CallId; readonly trunkId: TrunkId; readonly dialog: DialogFacts }

export type DialogChanges = { readonly held: readonly HeldDialog[]; readonly over: readonly CallId[] }

/** No call is in both. What another node has by now stays as it is. Lost with the memory of the server: the peers of a process that dies then are not told. */
export async function writeDialogs(sql: Sql, nodeId: NodeId, { held, over }: DialogChanges): Promise<void> {
  await sql`
    with ${relaxedCommit(sql)}, given as (
      select * from jsonb_to_recordset(${sql.json(held as unknown as Json)}) as r("callId" text, "trunkId" text, dialog jsonb)
    ), gone as (
      delete from sip_dialogs where call_id = any(${[...over]}::text[]) and node_id = ${nodeId} and ${inTime(sql)})
    insert into sip_dialogs (call_id, node_id, trunk_id, dialog)
    select "callId", ${nodeId}, "trunkId", dialog from relaxed, given
    where exists (select from calls where calls.id = "callId") and ${inTime(sql)} order by "callId"
    on conflict (call_id) do update set dialog = excluded.dialog, trunk_id = excluded.trunk_id
    where sip_dialogs.node_id = excluded.node_id`
}

/** Who has dialogs that their process has left to whoever inherits them. */
export const nobody = '' as NodeId

export async function leaveDialogs(sql: Sql, nodeId: NodeId, callIds: readonly CallId[]): Promise<void> {
  await sql`
    update sip_dialogs set node_id = ${nobody} where call_id = any(${[...callIds]}::text[]) and node_id = ${nodeId}`
}

export type OrphanedDialog = {
  readonly callId: CallId
  readonly owner: NodeId
  /** Ms since the owner was last known to be alive; null where nothing tells. */
  readonly leftFor: number | null
  /** Its process has no connection any more, neither to the bus nor to the database. */
  readonly hasEnded: boolean
}

/**
 * Of nodes whose lease is over, of silent ones that have not renewed theirs for a while (who has only lost the bus goes on with its calls, and with
 * its lease), and of those that have ended: a busy one keeps its connections, however late it is, and one that the bus has lost keeps those to the
 * database. By the clock of the database, which measures the leases.
 */
export function listOrphanedDialogs(
  sql: Sql,
  { nodeId, sightings, limit }: { nodeId: NodeId; sightings: NodeSightings; limit: number },
): Promise<OrphanedDialog[]> {
  const { silent, heard, left = [] } = sightings
  return sql<OrphanedDialog[]>`
    with ended as materialized (
      select id from unnest(${[...left]}::text[]) as of_left (id) where not ${hasSession(sql, sql`id`)})
    select call_id, node_id as owner, greatest(0, case when isfinite(lease_until) then
        extract(epoch from clock_timestamp() - lease_until) * 1000 + ${leaseLength} end)::float8 as left_for,
      node_id in (select id from ended) as has_ended
    from sip_dialogs left join nodes on nodes.id = node_id
    where node_id <> ${nodeId}
      and node_id <> all(${[...heard]}::text[])
      and (lease_until is null or lease_until <= clock_timestamp() or (node_id = any(${[...silent]}::text[])
        and not off_bus and (lease_until <= clock_timestamp() + ${leaseLength - overdue}::int * interval '1 ms'
          or node_id in (select id from ended))))
    order by call_id limit ${limit}`
}

/** Living or not. */
export async function othersHaveDialogs(sql: Sql, nodeId: NodeId): Promise<boolean> {
  return (await sql`select from sip_dialogs where node_id <> ${nodeId} limit 1`).count > 0
}

export type InheritedDialog = HeldDialog & {
  readonly accountId: AccountId
  readonly heirs: number
  /** Its call has been answered, and its end is not decided. */
  readonly isTalking: boolean
}

/** Those of them that are still their owner's become this node's: each goes to one of all who ask. */
export async function inheritDialogs(
  sql: Sql,
  nodeId: NodeId,
  orphans: readonly Pick<OrphanedDialog, 'callId' | 'owner'>[],
): Promise<InheritedDialog[]> {
  const rows = await sql<(InheritedDialog & { dialog: unknown })[]>`
    with orphans as (
      select sip_dialogs.call_id
      from sip_dialogs join unnest(${orphans.map(({ callId }) => callId)}::text[], ${orphans.map(({ owner }) => owner)}::text[])
        as asked (call_id, owner) on asked.call_id = sip_dialogs.call_id and asked.owner = sip_dialogs.node_id
      order by sip_dialogs.call_id for update of sip_dialogs skip locked)
    update sip_dialogs set node_id = ${nodeId}, heirs = heirs + 1 from orphans, calls
    where sip_dialogs.call_id = orphans.call_id and calls.id = sip_dialogs.call_id
    returning sip_dialogs.call_id, calls.account_id, sip_dialogs.trunk_id, dialog, heirs,
      (calls.progress = 'in_progress' and calls.outcome is null) as is_talking`
  // One of a version to come that cannot be read is left to a node that can.
  return rows.flatMap((row) => {
    const { data } = DialogFacts.safeParse(row.dialog)
    return data ? [{ ...row, dialog: data }] : []
  })
}

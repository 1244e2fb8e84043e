/** Owns what arriving calls are routed by, read in one statement for all that arrive in the same moment. */
import type { AccountId } from '../model/ids.ts'
import type { NumberOwner } from './account-numbers.ts'
import { candidatesOf, type InboundCandidate } from './inbound-routes.ts'
import type { Sql } from './sql.ts'
import { knownSourcesOf, type KnownSource } from './trunk-addresses.ts'

/** Texts without control characters, well-formed. */
export type RouteQuestion = {
  readonly address: string
  /** It is of this machine. */
  readonly isOwnMachine: boolean
  /** Numbers and users that the call names, the best first. */
  readonly called: readonly string[]
  /** What was really dialed, the best first. */
  readonly dialed: readonly string[]
}

export type RouteFacts = {
  /** Of what was dialed, as listNumberOwners tells it. */
  readonly owners: readonly NumberOwner[]
  readonly sources: readonly KnownSource[]
  /** Whose call it is by the first dialed number that counts; null: by none. */
  readonly accountId: AccountId | null
  /** As listInboundCandidates tells them: of this account, for what the call names; without one, of any that has what was dialed as an extension. */
  readonly candidates: readonly InboundCandidate[]
}

/** In the order of the questions. What is told of one knows nothing of the others. */
export async function findRouteFacts(sql: Sql, questions: readonly RouteQuestion[]): Promise<RouteFacts[]> {
  const address = sql`asked.address`
  const called = sql`case when owner.account_id is null then asked.dialed else asked.called end`
  const candidates = candidatesOf(sql, { called, address, accountId: sql`owner.account_id` })
  // Not jsonb_to_recordset: of that the planner expects a hundred rows, and compiles what costs a hundred times as much as one call does.
  const asked = questions.map((question) => JSON.stringify(question))
  const rows = await sql<(RouteFacts & { readonly place: number })[]>`
    select place, owner.owners, owner.account_id, source.sources, candidate.candidates
    from unnest(${asked}::text[]) with ordinality as question(json, place)
    cross join lateral jsonb_to_record(json::jsonb)
      as asked(address inet, "isOwnMachine" boolean, called text[], dialed text[])
    cross join lateral (
      select array_agg(account_id) as account_ids, coalesce(json_agg(json_build_object(
        'accountId', account_id, 'trunkId', trunk_id, 'name', name, 'numberFormat', number_format)), '[]') as sources
      from (${knownSourcesOf(sql, address)}) s) source
    cross join lateral (
      select coalesce(json_agg(json_build_object('number', number, 'accountId', account_id, 'counts', counts)), '[]') as owners,
        (array_agg(account_id order by array_position(asked.dialed, number)) filter (where counts))[1] as account_id
      from (
        -- The sources name one trunk of each account before the second of any.
        select number, account_id, (assigned_at is not null or asked."isOwnMachine" or not exists (
          select from unnest(source.account_ids) as other(id) where other.id <> account_numbers.account_id)) as counts
        from account_numbers where number = any(asked.dialed)) o) owner
    cross join lateral (
      select coalesce(json_agg(json_build_object(
        'trunk', json_build_object(
          'id', id, 'accountId', account_id, 'name', name, 'config', config, 'password', password, 'tlsKey', tls_key),
        'workerId', worker_id, 'workerName', worker_name, 'isActive', is_active, 'toNumber', to_number, 'rule', rule)), '[]') as candidates
      from (${candidates}) c) candidate
    order by place`
  return rows.map(({ place: _, ...facts }) => facts)
}

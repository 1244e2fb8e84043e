/**
 * Owns what has been deleted and whose many rows go by and by: a walk forward through them, a few at a time, each transaction with how far it has
 * come, so that a process that ends leaves the rest to another. Nothing of it is in any read from the moment it was ordered.
 */
import type { AccountId } from '../model/ids.ts'
import { removePartOfAccount } from './account-rows.ts'
import type { Sql, Transaction } from './sql.ts'

export type RemovalKind = 'subscription' | 'trunk' | 'person' | 'account'
export type Removal = {
  readonly id: number
  readonly kind: RemovalKind
  readonly accountId: AccountId
  readonly subjectId: string
}

/** Ms that a request may walk itself: what has few rows has none left when its deletion is answered. */
export const removalWithin = 250

/** In the transaction that deletes the subject. */
export async function orderRemoval(
  tx: Transaction,
  { kind, accountId, subjectId }: Omit<Removal, 'id'>,
): Promise<Removal> {
  const [row] = await tx<Removal[]>`
    insert into removals (account_id, kind, subject_id) values (${accountId}, ${kind}, ${subjectId})
    on conflict (kind, subject_id) do update set account_id = excluded.account_id
    returning id, kind, account_id, subject_id`
  return row as Removal
}

const isUnclaimed = (sql: Sql, now: number) => sql`(claimed_until is null or claimed_until <= ${now})`

/** Something waits to be removed, and nobody works on it. */
export const removalsWait = (sql: Sql, now: number) => sql`exists (select from removals where ${isUnclaimed(sql, now)})`

/** One that nobody works on, for so many ms. Null: there is none. */
export async function claimRemoval(sql: Sql, now: number, lease: number): Promise<Removal | null> {
  const [row] = await sql<Removal[]>`
    update removals set claimed_until = ${now + lease} where id = (
      select id from removals where ${isUnclaimed(sql, now)}
      order by claimed_until nulls first, id limit 1 for update skip locked)
    returning id, kind, account_id, subject_id`
  return row ?? null
}

/** Until all is gone, or `ms` are over: then another goes on, who was `left` last after those that were left before. */
export async function walkRemoval(
  sql: Sql,
  removal: Removal,
  ms = Infinity,
  left: number | null = null,
): Promise<void> {
  const end = performance.now() + ms
  while (!(await removeSome(sql, removal)) && performance.now() < end) continue
  await sql`update removals set claimed_until = ${left} where id = ${removal.id}`
}

type Next = { readonly id: string; readonly place: string }

type Walk = {
  /** Ids of rows behind `after`, in the order of the walk; `place` is what the next walk is behind. */
  readonly next: (tx: Transaction, removal: Removal, after: string) => PromiseLike<Next[]>
  readonly remove: (tx: Transaction, ids: string[]) => Promise<unknown>
}

/** What a step of a running call may have to wait for: its own row, as long as so many are written. */
const callsAtOnce = 100
const rowsAtOnce = 1_000

const walks: Readonly<Record<Exclude<RemovalKind, 'account'>, Walk>> = {
  subscription: {
    next: (tx, { subjectId }, after) => tx<Next[]>`
      select id, id as place from deliveries where subscription_id = ${subjectId} and id > ${after} order by id limit ${rowsAtOnce} for update`,
    remove: (tx, ids) => tx`delete from deliveries where id = any(${ids})`,
  },
  person: {
    next: (tx, { accountId, subjectId }, after) => tx<Next[]>`
      select id, id as place from calls where account_id = ${accountId} and person_id = ${subjectId} and id > ${after}
      order by id limit ${callsAtOnce} for no key update`,
    remove: (tx, ids) => tx`update calls set person_id = null where id = any(${ids})`,
  },
  // In the order of their index; what was unlinked has left it, so that those of one moment are found again.
  trunk: {
    next: (tx, { subjectId }, after) => tx<Next[]>`
      select id, coalesce(slot_granted_at, created_at)::text as place from calls
      where trunk_id = ${subjectId} and coalesce(slot_granted_at, created_at) >= ${after || '-infinity'}::text::timestamptz
      order by coalesce(slot_granted_at, created_at) limit ${callsAtOnce}`,
    // Locked in one order, as by who gives places to calls.
    async remove(tx, ids) {
      await tx`select from calls where id = any(${ids}) order by id for no key update`
      await tx`update calls set trunk_id = null where id = any(${ids})`
    },
  },
}

/** True when it was the last part. */
function removeSome(sql: Sql, removal: Removal): Promise<boolean> {
  return sql.begin(async (tx) => {
    const [row] = await tx<{ afterId: string }[]>`select after_id from removals where id = ${removal.id} for update`
    // Another process has finished it.
    if (!row) return true
    if (removal.kind === 'account') return !(await removePartOfAccount(tx, removal.accountId)) && end(tx, removal)
    const { next, remove } = walks[removal.kind]
    const rows = await next(tx, removal, row.afterId)
    const last = rows.at(-1)
    if (last) {
      await remove(
        tx,
        rows.map(({ id }) => id),
      )
      await tx`update removals set after_id = ${last.place} where id = ${removal.id}`
      return false
    }
    return end(tx, removal)
  })
}

async function end(tx: Transaction, removal: Removal): Promise<true> {
  await finish(tx, removal)
  await tx`delete from removals where id = ${removal.id}`
  return true
}

/** What is left when all calls or deliveries have gone is little. */
async function finish(tx: Transaction, { kind, accountId, subjectId }: Removal): Promise<void> {
  if (kind === 'subscription')
    await tx`delete from webhook_subscriptions where account_id = ${accountId} and id = ${subjectId}`
  if (kind === 'account') await tx`delete from accounts where id = ${accountId}`
  if (kind === 'trunk')
    await tx`update call_refusals set trunk_id = null where account_id = ${accountId} and trunk_id = ${subjectId}`
}

/** Of `calls`: a link to what is being removed is none. */
export const linkColumns = (sql: Sql | Transaction) => sql`
  case when calls.person_id in (select subject_id from removals where kind = 'person') then null else calls.person_id end as person_id,
  case when calls.trunk_id in (select subject_id from removals where kind = 'trunk') then null else calls.trunk_id end as trunk_id`

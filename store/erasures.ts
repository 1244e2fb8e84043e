/**
 * Owns the rows of erasures: whom to look for while one is under way, how far it has come, and what was done. Nothing of the person is left in it when
 * it is completed. One process at a time works on one.
 */
import { createHash } from 'node:crypto'
import type { Customer } from '../model/customer.ts'
import type { Direction } from '../model/call.ts'
import { nothingErased, type ErasedCounts, type ErasureFacts } from '../model/erasure.ts'
import type { AccountId, CallId, NewId, PersonId } from '../model/ids.ts'
import type { PersonFacts } from '../model/person.ts'
import { Problem } from '../model/problem.ts'
import { isOver } from './delete-calls.ts'
import { findPerson } from './persons.ts'
import type { Sql, Transaction } from './sql.ts'

/** What a person is known by. What another person of the account has too is left out: it stays with the other. */
export type PersonTraces = {
  readonly personId: PersonId
  readonly firstName: string
  readonly lastName: string
  /** False: another person is called the same. */
  readonly isNameOwn: boolean
  readonly externalId: string | null
  readonly phoneNumber: string | null
  readonly email: string | null
  /** Pages of the person's own. */
  readonly urls: readonly string[]
}

/** By what a call is known as a person's. */
export type CallOwnership = {
  readonly id: CallId
  readonly direction: Direction
  readonly personId: PersonId | null
  readonly fromNumber: string | null
  readonly toNumber: string | null
  readonly customer: Customer | null
  readonly isOver: boolean
}

export type ErasureRow = ErasureFacts & {
  readonly accountId: AccountId
  /** Null: it is completed. */
  readonly traces: PersonTraces | null
  /** The erasure goes on behind it; null: with the first call. */
  readonly afterCall: CallId | null
}

const erasureColumns = (sql: Sql | Transaction) =>
  sql`id, account_id, traces, after_call, erased, remaining, created_at, completed_at`

const ownershipColumns = (sql: Sql | Transaction) =>
  sql`id, direction, person_id, from_number, to_number, customer, ${isOver(sql)} as is_over`

/** An id tells nobody who it was; its hash not even which row. */
const hashOf = (accountId: AccountId, personId: PersonId): Buffer =>
  createHash('sha256').update(`${accountId} ${personId}`).digest()

type Beginning = {
  readonly accountId: AccountId
  readonly personId: PersonId
  /** Of calls that are not over. */
  readonly belongs: (call: CallOwnership, traces: PersonTraces) => boolean
  readonly newId: NewId
  readonly now: number
}

/**
 * Takes the person away, and writes down what is left to do. Null: there is no such person, and never was an erasure. Throws Problem CONFLICT while a
 * call of the person is not over.
 */
export async function beginErasure(
  sql: Sql,
  { accountId, personId, belongs, newId, now }: Beginning,
): Promise<ErasureRow | null> {
  return sql.begin(async (tx) => {
    await tx`select from persons where account_id = ${accountId} and id = ${personId} for update`
    const hash = hashOf(accountId, personId)
    const [former] = await tx<ErasureRow[]>`
      select ${erasureColumns(tx)} from erasures where account_id = ${accountId} and person_hash = ${hash}`
    if (former) return former
    const person = await findPerson(tx, accountId, personId)
    if (!person) return null
    const traces = await tracesOf(tx, person)
    const unfinished = await tx<CallOwnership[]>`
      select ${ownershipColumns(tx)} from calls where account_id = ${accountId} and not finished`
    const running = unfinished.filter((call) => belongs(call, traces)).length
    if (running > 0) throw notOver(running)
    const erased: ErasedCounts = { ...nothingErased, persons: 1 }
    const [begun] = await tx<ErasureRow[]>`
      insert into erasures (id, account_id, person_hash, traces, erased, created_at)
      values (${newId()}, ${accountId}, ${hash}, ${tx.json(traces)}, ${tx.json(erased)}, ${now})
      returning ${erasureColumns(tx)}`
    await tx`delete from persons where account_id = ${accountId} and id = ${personId}`
    return begun as ErasureRow
  })
}

function notOver(running: number): Problem {
  const calls = running === 1 ? 'a call that is' : `${running} calls that are`
  return new Problem('CONFLICT', `The person has ${calls} not over: hang up what runs, cancel what waits, or wait.`)
}

async function tracesOf(tx: Transaction, person: PersonFacts): Promise<PersonTraces> {
  const { accountId, id, firstName, lastName, phoneNumber, email } = person
  const other = tx`from persons where account_id = ${accountId} and id <> ${id}`
  const [shared] = await tx<{ name: boolean; number: boolean; mail: boolean }[]>`
    select
      exists (select ${other} and lower(first_name) = lower(${firstName}) and lower(last_name) = lower(${lastName})) as name,
      exists (select ${other} and phone_number = ${phoneNumber}) as number,
      exists (select ${other} and lower(email) = lower(${email})) as mail`
  return {
    personId: id,
    firstName,
    lastName,
    isNameOwn: shared?.name === false,
    externalId: person.externalId,
    phoneNumber: shared?.number ? null : phoneNumber,
    email: shared?.mail ? null : email,
    urls: [person.facebookUrl, person.linkedInUrl].filter((url) => url !== null),
  }
}

/** The oldest that nobody works on, with a claim for `lease` ms. Null: there is none. */
export async function claimErasure(sql: Sql, now: number, lease: number): Promise<ErasureRow | null> {
  const [row] = await sql<ErasureRow[]>`
    update erasures set claimed_until = ${now + lease} where id = (
      select id from erasures where completed_at is null and (claimed_until is null or claimed_until <= ${now})
      order by created_at, id limit 1 for update skip locked)
    returning ${erasureColumns(sql)}`
  return row ?? null
}

export type ErasureProgress = {
  readonly erased: ErasedCounts
  readonly afterCall: CallId | null
  readonly claimedUntil: number
}

export async function noteProgress(sql: Sql | Transaction, id: string, progress: ErasureProgress): Promise<void> {
  await sql`
    update erasures set erased = ${sql.json(progress.erased)}, after_call = ${progress.afterCall},
      claimed_until = ${progress.claimedUntil}
    where id = ${id} and completed_at is null`
}

export async function completeErasure(
  sql: Sql,
  id: string,
  { erased, remaining, now }: Pick<ErasureFacts, 'erased' | 'remaining'> & { readonly now: number },
): Promise<void> {
  await sql`
    update erasures set erased = ${sql.json(erased)}, remaining = ${sql.json(remaining)}, completed_at = ${now},
      traces = null, after_call = null, claimed_until = null
    where id = ${id}`
}

export async function findErasure(sql: Sql, accountId: AccountId, id: string): Promise<ErasureRow | null> {
  const [row] = await sql<ErasureRow[]>`
    select ${erasureColumns(sql)} from erasures where account_id = ${accountId} and id = ${id}`
  return row ?? null
}

export function listLinkedCalls(
  sql: Sql,
  { accountId, personId, limit }: { accountId: AccountId; personId: PersonId; limit: number },
): Promise<CallOwnership[]> {
  return sql<CallOwnership[]>`
    select ${ownershipColumns(sql)} from calls
    where account_id = ${accountId} and person_id = ${personId} and ${isOver(sql)} order by id limit ${limit}`
}

/** All calls of an account that tell of anybody, a part at a time. Null: from the first. */
export function listCallsAfter(
  sql: Sql,
  { accountId, after, limit }: { accountId: AccountId; after: CallId | null; limit: number },
): Promise<CallOwnership[]> {
  return sql<CallOwnership[]>`
    select ${ownershipColumns(sql)} from calls where account_id = ${accountId} and id > ${after ?? ''} and erased_at is null
    order by id limit ${limit}`
}

/**
 * Owns confirmations: outbound calls that were prepared and wait for a human being's word. A token is stored as its hash, works once, for ten minutes, and for
 * the client and the user that it was given to. docs/contract/mcp.md "Calls and confirmations".
 */
import type { AccountId, CallId, NewId } from '../model/ids.ts'
import {
  confirmationLifetime,
  maxPendingConfirmations,
  type ConfirmationHolder,
  type ConfirmationKind,
  type ConfirmationState,
  type Confirming,
  type PlannedCall,
} from '../model/outbound-calls.ts'
import { Problem } from '../model/problem.ts'
import type { Sql, Transaction } from './sql.ts'
import { createToken, hashOfToken } from './token.ts'

export type NewConfirmation = {
  readonly holder: ConfirmationHolder
  readonly clientName: string
  readonly kind: ConfirmationKind
  readonly calls: readonly PlannedCall[]
  /** As a person reads it. */
  readonly summary: string
  readonly newId: NewId
  readonly now: number
}

/** `token` is told here once, and never again. */
export type IssuedConfirmation = { readonly id: string; readonly token: string; readonly expiresAt: number }

export type Confirmation = {
  readonly id: string
  readonly accountId: AccountId
  readonly userId: string
  readonly clientId: string
  /** As it says itself. */
  readonly clientName: string
  readonly kind: ConfirmationKind
  readonly summary: string
  readonly state: ConfirmationState
  readonly callCount: number
  readonly callIds: readonly CallId[]
  readonly createdAt: number
  readonly expiresAt: number
}

const columns = [
  'id',
  'account_id',
  'user_id',
  'client_id',
  'client_name',
  'kind',
  'summary',
  'state',
  'call_count',
  'call_ids',
  'created_at',
  'expires_at',
]
/** Of a confirmation that can still lead to a call, in its time. */
const open = ['pending', 'approved']
/** What a settled one leaves of whom it was about. */
const settledColumns = (sql: Sql | Transaction) => sql`calls = '[]', summary = ''`

/** The argument by which a token is given. */
export const tokenArgument = { single: 'confirmation_token', batch: 'batch_confirmation_token' } as const

/** Throws Problem CONFLICT when the client has as many pending ones for the user as it may. */
export async function issueConfirmation(sql: Sql, confirmation: NewConfirmation): Promise<IssuedConfirmation> {
  const { holder, clientName, kind, calls, summary, newId, now } = confirmation
  const id = newId<'confirmation'>()
  const token = createToken()
  const expiresAt = now + confirmationLifetime
  await sql.begin(async (tx) => {
    await requireRoomFor(tx, holder, now)
    await tx`
      insert into confirmations ${tx({
        id,
        ...holder,
        clientName,
        kind,
        tokenHash: hashOfToken(token),
        calls: tx.json(calls as never),
        summary,
        callCount: calls.length,
        createdAt: now,
        expiresAt,
      })}`
  })
  return { id, token, expiresAt }
}

/** Several at once wait for each other, so that none gets past the bound. */
async function requireRoomFor(tx: Transaction, holder: ConfirmationHolder, now: number): Promise<void> {
  const { accountId, userId, clientId } = holder
  await tx`select pg_advisory_xact_lock(hashtextextended(${`confirmations ${accountId} ${userId} ${clientId}`}, 0))`
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from confirmations
    where ${heldBy(tx, holder)} and state = any(${open}::text[]) and expires_at > ${now}`
  if ((row?.count ?? 0) < maxPendingConfirmations) return
  throw new Problem(
    'CONFLICT',
    `There are ${maxPendingConfirmations} pending confirmations, as many as there may be. Confirm or cancel some, or wait until they expire.`,
  )
}

export type TakenConfirmation = { readonly id: string; readonly calls: readonly PlannedCall[] }

/**
 * What the token stands for, taken in this transaction: whoever comes with the same one waits for its end, and gets it if nothing was committed. Throws
 * Problem NOT_FOUND for a token that this holder was not given, CONFLICT for one that cannot be used.
 */
export async function takeConfirmation(
  tx: Transaction,
  { holder, kind, token, mustBeApproved = false }: Confirming,
  now: number,
): Promise<TakenConfirmation> {
  const [row] = await tx<(Confirmation & { calls: PlannedCall[] })[]>`
    select ${tx(columns)}, calls from confirmations
    where token_hash = ${hashOfToken(token)} and ${heldBy(tx, holder)} for update`
  const path = tokenArgument[kind]
  if (!row) throw unknownToken(path)
  const fault = faultOf(row, { kind, mustBeApproved, now })
  if (fault !== null) throw unusable(fault, path)
  await tx`
    update confirmations set state = 'consumed', settled_at = ${now}, ${settledColumns(tx)} where id = ${row.id}`
  return { id: row.id, calls: row.calls }
}

/** In the transaction that took it. */
export async function notePlacedCalls(tx: Transaction, id: string, callIds: readonly CallId[]): Promise<void> {
  await tx`update confirmations set call_ids = ${[...callIds]}::text[] where id = ${id}`
}

/** Again changes nothing. Throws Problem NOT_FOUND, and CONFLICT when it led to calls already. */
export async function revokeConfirmation(
  sql: Sql,
  holder: ConfirmationHolder,
  token: string,
  now: number,
): Promise<Confirmation> {
  return sql.begin(async (tx) => {
    const [row] = await tx<Confirmation[]>`
      select ${tx(columns)} from confirmations where token_hash = ${hashOfToken(token)} and ${heldBy(tx, holder)} for update`
    if (!row) throw unknownToken('token')
    if (row.state === 'consumed') throw unusable(usedWords(row), 'token')
    if (open.includes(row.state))
      await tx`
        update confirmations set state = 'revoked', settled_at = ${now}, ${settledColumns(tx)} where id = ${row.id}`
    return { ...row, state: open.includes(row.state) ? 'revoked' : row.state }
  }) as Promise<Confirmation>
}

/** Characters of a summary that a list shows: that of a hundred calls may be as long as a book, and there may be a hundred of them. */
const listedSummary = 2_000

export type PendingConfirmation = Confirmation & { readonly isCut: boolean }

/** Of this client and user, oldest first, with the beginnings of their summaries; what has expired is not pending. */
export function listPendingConfirmations(
  sql: Sql,
  holder: ConfirmationHolder,
  now: number,
): Promise<PendingConfirmation[]> {
  const others = columns.filter((name) => name !== 'summary')
  return sql<PendingConfirmation[]>`
    select ${sql(others)}, left(summary, ${listedSummary}) as summary, length(summary) > ${listedSummary} as is_cut
    from confirmations
    where ${heldBy(sql, holder)} and state = any(${open}::text[]) and expires_at > ${now}
    order by created_at, id limit ${maxPendingConfirmations}`
}

/** What a token stands for, without taking it. Null: this holder was not given it. */
export async function findByConfirmationToken(
  sql: Sql,
  holder: ConfirmationHolder,
  token: string,
): Promise<Confirmation | null> {
  const [row] = await sql<Confirmation[]>`
    select ${sql(columns)} from confirmations where token_hash = ${hashOfToken(token)} and ${heldBy(sql, holder)}`
  return row ?? null
}

/** Can it still lead to a call? */
export const isOpen = ({ state, expiresAt }: Pick<Confirmation, 'state' | 'expiresAt'>, now: number): boolean =>
  open.includes(state) && expiresAt > now

/** For the user it was prepared for; null for anybody else. */
export async function findConfirmationOf(sql: Sql, userId: string, id: string): Promise<Confirmation | null> {
  const [row] = await sql<Confirmation[]>`
    select ${sql(columns)} from confirmations where id = ${id} and user_id = ${userId}`
  return row ?? null
}

type Decided = Pick<ConfirmationHolder, 'accountId' | 'userId'> & { readonly id: string }

/** The user's word. What was denied stays so; what is settled or expired stays as it is. False: the word came too late. */
export async function decideConfirmation(
  sql: Sql,
  { id, accountId, userId }: Decided,
  word: 'approved' | 'denied',
  now: number,
): Promise<boolean> {
  const settled = word === 'denied' ? sql`, settled_at = ${now}, ${settledColumns(sql)}` : sql``
  const { count } = await sql`
    update confirmations set state = ${word} ${settled}
    where id = ${id} and account_id = ${accountId} and user_id = ${userId} and state = any(${open}::text[])
      and expires_at > ${now}`
  return count === 1
}

/**
 * Deletes those that nobody confirmed in time, and settled ones that expired before `before`, up to `limit`; how many. Several processes may do this at
 * once.
 */
export async function forgetConfirmations(
  sql: Sql,
  { before, now, limit }: { before: number; now: number; limit: number },
): Promise<number> {
  const { count } = await sql`
    delete from confirmations where ctid = any(array(
      select ctid from confirmations
      where expires_at < ${now} and (expires_at < ${before} or state = any(${open}::text[]))
      limit ${limit} for update skip locked))`
  return count
}

const heldBy = (sql: Sql | Transaction, { accountId, userId, clientId }: ConfirmationHolder) =>
  sql`account_id = ${accountId} and user_id = ${userId} and client_id = ${clientId}`

/** A plain hash is enough, because tokens are 256 random bits and cannot be guessed. */

/** Of a client, a user or an account that the token does not belong to, it is told like one that does not exist. */
const unknownToken = (path: string): Problem => {
  const message = 'must be a token that this client was given for this user'
  return new Problem('NOT_FOUND', 'There is no such confirmation.', [{ path, message }])
}

const unusable = (fault: string, path: string): Problem =>
  new Problem('CONFLICT', `The confirmation ${fault}.`, [{ path, message: fault }])

const usedWords = ({ callIds }: Confirmation): string =>
  `was used already; it placed ${callIds.length === 1 ? 'the call' : 'the calls'} ${callIds.join(', ')}`

type Use = { readonly kind: ConfirmationKind; readonly mustBeApproved: boolean; readonly now: number }

/** Why it cannot be used; null: it can. */
function faultOf(confirmation: Confirmation, { kind, mustBeApproved, now }: Use): string | null {
  const { state, expiresAt } = confirmation
  if (confirmation.kind !== kind)
    return `stands for ${confirmation.kind === 'batch' ? 'a batch: use confirm_phone_call_batch' : 'one call: use confirm_phone_call'}`
  if (state === 'consumed') return usedWords(confirmation)
  if (state === 'revoked') return 'was revoked; prepare the call again'
  if (state === 'denied') return 'was denied by the user'
  if (expiresAt <= now) return 'has expired; prepare the call again'
  if (mustBeApproved && state !== 'approved') return 'has not been approved by the user yet'
  return null
}

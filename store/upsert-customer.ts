/**
 * Owns which person the customer object of a call is: found by its externalId, else by its number, and brought up to date, or made. What is blank
 * changes nothing. docs/contract/rest.md "Customers".
 */
import { z } from 'zod'
import type { CustomerInput } from '../model/customer.ts'
import type { AccountId, NewId } from '../model/ids.ts'
import { Person, type PersonFacts } from '../model/person.ts'
import { Problem } from '../model/problem.ts'
import { givenColumns } from './given-columns.ts'
import { spellingsOf } from './person-numbers.ts'
import type { Transaction } from './sql.ts'

export type SentCustomer = {
  readonly accountId: AccountId
  /** Its phoneNumber is E.164, or no number. */
  readonly customer: CustomerInput
  /** E.164 of `customer.phoneNumber`; null: it has none. */
  readonly phoneNumber: string | null
  /** E.164; who is called without a number of their own has this one. */
  readonly dialed: string | null
  readonly newId: NewId
  readonly now: number
}

const columnNames = Object.keys(Person.shape)

/** Null: the customer has neither an externalId nor a number, by which they would be found again. */
export async function upsertCustomer(tx: Transaction, sent: SentCustomer): Promise<PersonFacts | null> {
  const key = keyOf(sent)
  if (key.externalId === null && key.number === null) return null
  const known = await find(tx, key)
  if (known) return (await update(tx, known, sent)) ?? insert(tx, key, sent)
  await hold(tx, [key])
  const made = await find(tx, key)
  return (made && (await update(tx, made, sent))) ?? insert(tx, key, sent)
}

type Named = Pick<SentCustomer, 'accountId' | 'customer' | 'phoneNumber' | 'dialed'>

/** Before several are stored in one transaction: another one that names some of them in another order would else wait for this one, and this one for it. */
export const holdCustomers = (tx: Transaction, customers: readonly Named[]): Promise<void> =>
  hold(tx, customers.map(keyOf))

type Key = { readonly accountId: AccountId; readonly externalId: string | null; readonly number: string | null }

function keyOf({ accountId, customer: { externalId }, phoneNumber, dialed }: Named): Key {
  return { accountId, externalId: externalId?.trim() ? externalId : null, number: phoneNumber ?? dialed }
}

/**
 * The externalId decides. Else of those with the number a customer or lead, the oldest; where the customer has an externalId, one that has none yet:
 * two externalIds are two persons, whatever their number. A contact of a worker is none of its customers.
 */
async function find(tx: Transaction, { accountId, externalId, number }: Key): Promise<PersonFacts | null> {
  const [named] = externalId === null ? [] : await findByExternalId(tx, accountId, externalId)
  if (named || number === null) return named ?? null
  const [numbered] = await tx<PersonFacts[]>`
    select ${tx(columnNames)} from persons
    where account_id = ${accountId} and phone_number = any(${spellingsOf(number)}::text[]) and type <> 'phone_contact'
      and (${externalId === null} or external_id is null)
    order by created_at, id limit 1`
  return numbered ?? null
}

const findByExternalId = (tx: Transaction, accountId: AccountId, externalId: string): Promise<PersonFacts[]> =>
  tx<PersonFacts[]>`
    select ${tx(columnNames)} from persons where account_id = ${accountId} and external_id = ${externalId}`

/** Until the transaction ends nobody else makes a person of this externalId or number: of two calls with a new customer one does. */
async function hold(tx: Transaction, keys: readonly Key[]): Promise<void> {
  const names = keys.flatMap(({ accountId, externalId, number }) => [
    ...(externalId === null ? [] : [`person ${accountId} externalId ${externalId}`]),
    ...(number === null ? [] : [`person ${accountId} phoneNumber ${number}`]),
  ])
  // In one order for everybody.
  const sorted = [...new Set(names)].toSorted()
  await tx`select pg_advisory_xact_lock(hashtextextended(name, 0)) from unnest(${sorted}::text[]) as given (name)`
}

/** Null: it has been deleted meanwhile. Throws Problem CONFLICT when somebody else has just taken the externalId. */
async function update(tx: Transaction, known: PersonFacts, sent: SentCustomer): Promise<PersonFacts | null> {
  const { type, ...given } = detailsOf(sent)
  const wanted = {
    ...given,
    ...(known.type !== 'phone_contact' && { type }),
    ...(sent.phoneNumber === null && known.phoneNumber === null && { phoneNumber: sent.dialed }),
  }
  const changed = Object.entries(wanted).filter(([name, value]) => known[name as keyof PersonFacts] !== value)
  if (changed.length === 0) return known
  const columns = givenColumns({ ...Object.fromEntries(changed), updatedAt: sent.now })
  const changing = tx<PersonFacts[]>`
    update persons set ${tx(columns)} where account_id = ${known.accountId} and id = ${known.id}
    returning ${tx(columnNames)}`
  const [row] = await changing.catch(conflictOf)
  return row ?? null
}

async function insert(tx: Transaction, key: Key, sent: SentCustomer): Promise<PersonFacts> {
  const { accountId, newId, now } = sent
  const names = { firstName: '', lastName: '', phoneNumber: key.number }
  const row = { ...names, ...detailsOf(sent), id: newId<'person'>(), accountId, createdAt: now, updatedAt: now }
  const [made] = await tx<PersonFacts[]>`
    insert into persons ${tx(row)} on conflict (account_id, external_id) do nothing returning ${tx(columnNames)}`
  // Over REST somebody was faster.
  const [other] = made || key.externalId === null ? [] : await findByExternalId(tx, accountId, key.externalId)
  const person = made ?? (other && (await update(tx, other, sent)))
  if (!person) throw conflict()
  return person
}

/** What the customer tells of themselves. Mail is sent to what is stored, so that it must be an address. */
function detailsOf({ customer, phoneNumber }: SentCustomer): Partial<PersonFacts> & Pick<CustomerInput, 'type'> {
  const { type, phoneNumber: _, email, ...texts } = customer
  const told = Object.entries(texts).filter(([, text]) => text !== undefined && text.trim() !== '')
  return {
    ...Object.fromEntries(told),
    ...(z.email().max(320).safeParse(email).success && { email: email ?? null }),
    ...(phoneNumber !== null && { phoneNumber }),
    type,
  }
}

const conflict = (): Problem =>
  new Problem('CONFLICT', 'Another person has this externalId.', [
    { path: 'customer.externalId', message: 'belongs to another person' },
  ])

function conflictOf(error: unknown): never {
  const taken = error instanceof Error && 'constraint_name' in error && error.constraint_name === 'persons_external_id'
  throw taken ? conflict() : error
}

/** Owns which person a call is linked to, and what it tells of them: who has the number, or whom the creator of the call names. */
import { CustomerInput } from '../../../model/customer.ts'
import type { AccountId, PersonId } from '../../../model/ids.ts'
import type { PersonFacts } from '../../../model/person.ts'
import { Problem } from '../../../model/problem.ts'
import { withoutNulls } from '../../../model/without-nulls.ts'
import { readNumber } from '../../../net/read-number.ts'
import { countryToRead } from '../../../store/accounts.ts'
import { findPerson, findPersonByPhone, findPersonsByPhone } from '../../../store/persons.ts'
import type { Transaction } from '../../../store/sql.ts'
import { upsertCustomer, type SentCustomer } from '../../../store/upsert-customer.ts'

export type KnownPerson = { readonly personId: PersonId | null; readonly customer: CustomerInput | null }

const nobody: KnownPerson = { personId: null, customer: null }

export async function findKnownPerson(
  tx: Transaction,
  accountId: AccountId,
  phoneNumber: string | null,
): Promise<KnownPerson> {
  const person = phoneNumber === null ? null : await findPersonByPhone(tx, accountId, phoneNumber)
  return person ? { personId: person.id, customer: customerOf(person) } : nobody
}

/** The same of many numbers, in their order. */
export async function findKnownPersons(
  tx: Transaction,
  accountId: AccountId,
  phoneNumbers: readonly (string | null)[],
): Promise<KnownPerson[]> {
  const asked = new Set(phoneNumbers.filter((number) => number !== null))
  const found = asked.size === 0 ? null : await findPersonsByPhone(tx, accountId, [...asked])
  return phoneNumbers.map((number) => {
    const person = number === null ? undefined : found?.get(number)
    return person ? { personId: person.id, customer: customerOf(person) } : nobody
  })
}

/** Of a person who is named by id. What is sent of them is told in this call only, and not stored. Throws Problem VALIDATION_FAILED. */
export async function knownPersonOf(
  tx: Transaction,
  { accountId, personId, customer }: NamedPerson,
): Promise<KnownPerson> {
  const person = await findPerson(tx, accountId, personId)
  if (!person) throw noSuchPerson()
  const told = customerOf(person)
  const sent = customer && withoutBlanks(customer)
  return { personId, customer: sent ? { ...told, ...sent } : told }
}

type NamedPerson = {
  readonly accountId: AccountId
  readonly personId: PersonId
  readonly customer: CustomerInput | undefined
}

export const noSuchPerson = (): Problem =>
  new Problem('VALIDATION_FAILED', 'The person does not exist.', [
    { path: 'personId', message: 'must be a person of the account' },
  ])

/** E.164; null: the customer has none, or text that is no number, which stays with the call as it is. */
export async function readCustomerNumber(
  tx: Transaction,
  accountId: AccountId,
  customer: CustomerInput | undefined,
): Promise<string | null> {
  const text = customer?.phoneNumber
  if (text === undefined || !/\d/.test(text)) return null
  return readNumber(text, await countryToRead(tx, accountId, [text]))
}

/** Whom the creator of a call names is stored, and linked. The call tells of them what was sent, and what is stored besides. */
export async function linkCustomer(tx: Transaction, named: SentCustomer): Promise<KnownPerson> {
  const { customer, phoneNumber } = named
  const person = await upsertCustomer(tx, named)
  const sent = { ...customer, ...(phoneNumber !== null && { phoneNumber }) }
  return { personId: person?.id ?? null, customer: { ...(person && customerOf(person)), ...withoutBlanks(sent) } }
}

/** Contacts are not customers. */
const customerOf = (person: PersonFacts): CustomerInput | null =>
  CustomerInput.strip().safeParse(withoutBlanks(withoutNulls(person))).data ?? null

function withoutBlanks<Fields extends object>(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => typeof value !== 'string' || value.trim() !== ''),
  ) as Fields
}

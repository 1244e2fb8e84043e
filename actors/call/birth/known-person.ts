/** Owns who a telephone number belongs to, as far as the account knows: the person that a call is linked to, and what it tells of them. */
import { CustomerInput } from '../../../model/customer.ts'
import type { AccountId, PersonId } from '../../../model/ids.ts'
import type { PersonFacts } from '../../../model/person.ts'
import { withoutNulls } from '../../../model/without-nulls.ts'
import { findPersonByPhone } from '../../../store/persons.ts'
import type { Transaction } from '../../../store/sql.ts'

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

/** Contacts are not customers. */
const customerOf = (person: PersonFacts): CustomerInput | null =>
  CustomerInput.strip().safeParse(withoutNulls(person)).data ?? null

/** Owns how a worker names one of its contacts: by name, id or address. docs/contract/rest.md "Persons" (`phone_contact`). */
import type { PersonFacts } from '../../model/person.ts'
import { canonicalNumber } from '../../net/read-number.ts'

export type Match =
  | { readonly kind: 'one'; readonly contact: PersonFacts }
  | { readonly kind: 'none' }
  /** The name fits several; an id or an address does not. */
  | { readonly kind: 'several' }

const maxNamed = 20

const nameOf = ({ firstName, lastName }: PersonFacts): string => `${firstName} ${lastName}`.trim()

/** `number`: `to` as E.164, where it is a telephone number. Exact handles go before parts of a name, so that whoever is called "Ada" can be reached beside "Ada Lovelace". */
export function matchContact(contacts: readonly PersonFacts[], to: string, number: string | null = null): Match {
  const wanted = plain(to)
  const exact = contacts.filter((contact) => handlesOf(contact).includes(wanted) || hasNumber(contact, number))
  const matches = exact.length > 0 ? exact : contacts.filter((contact) => partsOf(contact).includes(wanted))
  const [contact] = matches
  if (!contact) return { kind: 'none' }
  return matches.length === 1 ? { kind: 'one', contact } : { kind: 'several' }
}

/** For the sentence that tells who can be named instead. */
export function namesOf(contacts: readonly PersonFacts[]): string {
  if (contacts.length === 0) return 'nobody'
  const names = contacts.slice(0, maxNamed).map(nameOf)
  const more = contacts.length - names.length
  return more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ')
}

const handlesOf = (contact: PersonFacts): string[] =>
  [contact.id, nameOf(contact), contact.email, contact.phoneNumber].flatMap((handle) => (handle ? [plain(handle)] : []))

const hasNumber = ({ phoneNumber }: PersonFacts, number: string | null): boolean =>
  number !== null && phoneNumber !== null && canonicalNumber(phoneNumber) === number

const partsOf = ({ firstName, lastName }: PersonFacts): string[] => [plain(firstName), plain(lastName)]

/** Spoken names come in any case and spacing. */
const plain = (text: string): string => text.normalize('NFC').trim().replace(/\s+/g, ' ').toLowerCase()

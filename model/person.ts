/**
 * Owns persons: leads and customers that a worker calls or recognises, and the contacts it may pass a caller on to. docs/contract/rest.md
 * "Persons".
 */
import { z } from 'zod'
import { toIso } from './clock.ts'
import type { AccountId, PersonId, WorkerId } from './ids.ts'
import { Language } from './language.ts'
import { FilterText, pageOf, Paging } from './paging.ts'
import { WrittenNumber } from './phone-number.ts'
import { withoutNulls } from './without-nulls.ts'

export const PersonType = z.enum(['lead', 'customer', 'phone_contact'])
export type PersonType = z.infer<typeof PersonType>

const text = z.string().min(1).max(500).nullable().optional()
/** Null takes a value away. */
const details = {
  externalId: text,
  email: z.email().max(320).nullable().optional(),
  phoneNumber: WrittenNumber.nullable().optional(),
  language: Language.nullable().optional(),
  companyName: text,
  city: text,
  country: text,
  postalCode: text,
  streetAddress: text,
  stateOrProvince: text,
  jobTitle: text,
  facebookUrl: text,
  websiteUrl: text,
  linkedInUrl: text,
  notes: z.string().max(20_000).nullable().optional(),
} as const
const name = z.string().min(1).max(200)
const tags = z.array(z.string().min(1).max(100)).max(100)

export const PersonRequest = z.strictObject({
  type: PersonType,
  firstName: name,
  lastName: name,
  ...details,
  tags: tags.optional(),
  /** Attaches the person to a worker; a `phone_contact` without one is nobody's contact. */
  workerId: z.string().nullable().optional(),
})
export type PersonRequest = z.infer<typeof PersonRequest>
/** What is not named stays. */
export const PersonChange = PersonRequest.partial()
export type PersonChange = z.infer<typeof PersonChange>

/** All are made, or none is. */
export const PersonBatch = z.strictObject({ persons: z.array(PersonRequest).min(1).max(100) })
export type PersonBatch = z.infer<typeof PersonBatch>

/** What a person may tell of themselves during a call: nothing by which they are found, and not where mail to them goes. */
export const CallerChange = z
  .strictObject({ firstName: name, lastName: name, ...details })
  .omit({ externalId: true, phoneNumber: true, email: true, notes: true })
  .partial()
export type CallerChange = z.infer<typeof CallerChange>

export const Person = z.object({
  id: z.string(),
  accountId: z.string(),
  type: PersonType,
  firstName: z.string(),
  lastName: z.string(),
  ...(Object.fromEntries(Object.keys(details).map((key) => [key, z.string().optional()])) as {
    [Key in keyof typeof details]: z.ZodOptional<z.ZodString>
  }),
  tags: z.array(z.string()),
  workerId: z.string().optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type Person = z.infer<typeof Person>

export const PersonPage = pageOf(Person)

/**
 * `query`: all of its words occur in names, email, phone number or company, whatever their accents and case. The others are compared whole, email
 * in any case, a phone number in any spelling.
 */
export const PersonQuery = Paging.extend({
  type: PersonType.optional(),
  workerId: FilterText.optional(),
  query: FilterText.optional(),
  phoneNumber: WrittenNumber.optional(),
  email: FilterText.optional(),
  externalId: FilterText.optional(),
  tag: FilterText.optional(),
})
export type PersonQuery = z.infer<typeof PersonQuery>

export type PersonDetails = { readonly [Key in keyof typeof details]: string | null }

export type PersonFacts = PersonDetails & {
  readonly id: PersonId
  readonly accountId: AccountId
  readonly type: PersonType
  readonly firstName: string
  readonly lastName: string
  readonly tags: readonly string[]
  readonly workerId: WorkerId | null
  readonly createdAt: number
  readonly updatedAt: number
}

export function toPerson({
  id,
  accountId,
  type,
  firstName,
  lastName,
  tags: given,
  createdAt,
  updatedAt,
  ...rest
}: PersonFacts): Person {
  const times = { createdAt: toIso(createdAt), updatedAt: toIso(updatedAt) }
  return { id, accountId, type, firstName, lastName, tags: [...given], ...withoutNulls(rest), ...times }
}

/** Owns the customer object of requests and answers. docs/contract/rest.md "Customers". */
import { z } from 'zod'
import { oneLine } from './one-line.ts'

const text = z.string().max(500).optional()

export const CustomerInput = z.strictObject({
  externalId: text,
  type: z.enum(['customer', 'lead']),
  /** Dialed when the call names no number. */
  phoneNumber: z.string().max(500).refine(oneLine, 'must be one line').optional(),
  firstName: text,
  lastName: text,
  email: text,
  streetAddress: text,
  country: text,
  postalCode: text,
  stateOrProvince: text,
  city: text,
  language: text,
  jobTitle: text,
  facebookUrl: text,
  websiteUrl: text,
  linkedInUrl: text,
})
export type CustomerInput = z.infer<typeof CustomerInput>

/** As an answer shows it. Of a customer that was sent with the call and is no stored person a call has the id null. */
export const Customer = CustomerInput.extend({ id: z.string().optional(), accountId: z.string().optional() })
export type Customer = z.infer<typeof Customer>

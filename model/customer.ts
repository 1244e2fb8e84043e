/** Owns the customer object of requests and answers. rest-api-and-webhooks.md, Customer object. */
import { z } from 'zod'

const text = z.string().max(500).optional()

export const CustomerInput = z.strictObject({
  externalId: text,
  type: z.enum(['customer', 'lead']),
  phoneNumber: text,
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

/** As an answer shows it. A customer that was sent with the call and is no stored person has no id. */
export const Customer = CustomerInput.extend({ id: z.string().optional(), accountId: z.string().optional() })
export type Customer = z.infer<typeof Customer>

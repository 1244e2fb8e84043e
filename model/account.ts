/** Owns accounts as answers show them. rest-api-and-webhooks.md, Account. */
import { z } from 'zod'
import { toIso } from './clock.ts'
import type { AccountId } from './ids.ts'

export const Account = z.object({
  id: z.string(),
  name: z.string(),
  slug: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type Account = z.infer<typeof Account>

export type AccountFacts = {
  readonly id: AccountId
  readonly name: string
  readonly slug: string
  readonly createdAt: number
  readonly updatedAt: number
}

export function toAccount({ id, name, slug, createdAt, updatedAt }: AccountFacts): Account {
  return { id, name, slug, createdAt: toIso(createdAt), updatedAt: toIso(updatedAt) }
}

/** Owns what users of an account have allowed applications, as the account sees it. docs/contract/rest.md "Grants". */
import { z } from 'zod'
import { toIso } from './clock.ts'
import type { UserId } from './ids.ts'
import type { McpScope } from './mcp-access.ts'

export const OAuthGrant = z.object({
  id: z.string(),
  userId: z.string(),
  userEmail: z.string(),
  userName: z.string().optional(),
  clientId: z.string(),
  clientName: z.string(),
  redirectHost: z.string(),
  scopes: z.array(z.string()),
  workerName: z.string().optional(),
  createdAt: z.string(),
  lastUsedAt: z.string().optional(),
})
export type OAuthGrant = z.infer<typeof OAuthGrant>

export type OAuthGrantFacts = {
  readonly id: string
  readonly userId: UserId
  readonly userEmail: string
  readonly userName: string | null
  readonly clientId: string
  readonly clientName: string
  readonly redirectHost: string
  readonly scopes: readonly McpScope[]
  readonly workerName: string | null
  readonly createdAt: number
  readonly usedAt: number | null
}

export const toOAuthGrant = (facts: OAuthGrantFacts): OAuthGrant => {
  const { userName, workerName, createdAt, usedAt, scopes, ...told } = facts
  return {
    ...told,
    scopes: [...scopes],
    ...(userName !== null && { userName }),
    ...(workerName !== null && { workerName }),
    createdAt: toIso(createdAt),
    ...(usedAt !== null && { lastUsedAt: toIso(usedAt) }),
  }
}

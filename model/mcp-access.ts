/** Owns what a client of the MCP endpoint was granted: the port behind which its bearer token is looked up. docs/contract/mcp.md "Endpoint". */
import type { AccountId, UserId, WorkerId } from './ids.ts'

export const mcpScopes = ['account_admin', 'admin', 'user'] as const
export type McpScope = (typeof mcpScopes)[number]

/** They are granted for one worker. */
const forWorker: readonly McpScope[] = ['admin', 'user']

export const isForWorker = (scope: McpScope): boolean => forWorker.includes(scope)

/** Of scopes separated by blanks (RFC 6749 §3.3): ours in their own order, without what is none. */
export function mcpScopesIn(text: string | null | undefined): readonly McpScope[] {
  const asked = (text ?? '').split(' ')
  return mcpScopes.filter((scope) => asked.includes(scope))
}

export type McpAccess = {
  readonly accountId: AccountId
  readonly userId: UserId
  readonly clientId: string
  readonly clientName: string
  readonly grantId: string
  readonly scopes: readonly McpScope[]
  /** The one worker that `admin` and `user` reach; null where neither is granted. */
  readonly workerId: WorkerId | null
  /** Ms since the epoch. */
  readonly expiresAt: number
}

/**
 * What a bearer token grants at this moment; null when it is unknown, expired, revoked, for another audience, or when its user left the account
 * or lost the role for it.
 */
export type FindMcpAccess = (token: string) => Promise<McpAccess | null>

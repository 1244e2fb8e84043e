/** Owns the audit log as a port: who did what, with which arguments, and what came of it. */
import type { AccountId, ApiKeyId, CallId, UserId } from './ids.ts'
import type { Json } from './json.ts'

export type Actor =
  | { readonly kind: 'api_key'; readonly keyId: ApiKeyId }
  | { readonly kind: 'mcp_client'; readonly clientId: string; readonly userId: UserId }
  /** By a page. */
  | { readonly kind: 'user'; readonly userId: UserId }
  /** The admin command. */
  | { readonly kind: 'operator' }

export type AuditEntry = {
  readonly accountId: AccountId | null
  readonly actor: Actor
  /** The operationId of REST, the name of an MCP tool, `admin <command>`, or a word like `user.sign_in`. */
  readonly action: string
  /** Is masked by the audit itself. */
  readonly arguments: Json
  readonly result: 'success' | 'error'
  readonly errorCode?: string
  readonly callIds?: readonly CallId[]
  readonly requestId?: string
}

export type Audit = {
  /** Resolves when it is stored: for what changes something. */
  note(entry: AuditEntry): Promise<void>
  /** Is stored soon, in groups, in bounded room: for what only reads. */
  noteSoon(entry: AuditEntry): void
}

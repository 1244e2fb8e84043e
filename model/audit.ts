/**
 * Owns who did what, as it is written down: of every change by REST, by `npm run admin`, by a page and of every MCP tool call. Nothing of it is
 * changed or deleted by an operation. docs/contract/rest.md "Audit log".
 */
import { z } from 'zod'
import { toIso } from './clock.ts'
import type { AccountId, ApiKeyId, CallId, Id, UserId } from './ids.ts'
import { Instant } from './instant.ts'
import { Json } from './json.ts'
import { FilterText, pageOf, Paging } from './paging.ts'

export type Actor =
  | { readonly kind: 'api_key'; readonly keyId: ApiKeyId }
  /** Null: nobody has approved it yet. */
  | { readonly kind: 'mcp_client'; readonly clientId: string; readonly userId: UserId | null }
  /** By a page. */
  | { readonly kind: 'user'; readonly userId: UserId }
  /** The admin command. */
  | { readonly kind: 'operator' }

export type AuditEntry = {
  /** Null: of no account; the operator alone reads it. */
  readonly accountId: AccountId | null
  readonly actor: Actor
  /** operationId of REST, name of an MCP tool, `admin <command>`, or what a page did, like `user.sign_in`. */
  readonly action: string
  /** As they were given: they are masked before they are stored. */
  readonly arguments: Json
  readonly result: 'success' | 'error'
  /** `type` of the problem. */
  readonly errorCode?: string
  /** The calls that it led to. */
  readonly callIds?: readonly CallId[]
  readonly requestId?: string
}

export type Audit = {
  /** Resolves when it is stored: for what changes something. */
  note(entry: AuditEntry): Promise<void>
  /** Is stored soon, in groups, in bounded room: for what only reads. */
  noteSoon(entry: AuditEntry): void
}

/** What is known of a change before it is made. */
export type Beginning = Omit<AuditEntry, 'result' | 'errorCode' | 'callIds'>
/** What is known when it is over; arguments that are not named stay. */
export type Ending = Pick<AuditEntry, 'result' | 'errorCode' | 'callIds'> & { readonly arguments?: Json }

/** For changes whose entry must be there whatever happens after it. */
export type BeginEntry = (beginning: Beginning) => Promise<(ending: Ending) => Promise<void>>

const actorKinds = ['api_key', 'mcp_client', 'user', 'operator'] as const

export const AuditLogQuery = Paging.extend({
  /** A kind of actor, or the id of a key, a user or a client. */
  actor: FilterText.optional(),
  action: FilterText.optional(),
  callId: FilterText.optional(),
  from: Instant.optional(),
  to: Instant.optional(),
})
export type AuditLogQuery = z.infer<typeof AuditLogQuery>

export const AuditLogEntry = z.object({
  id: z.string(),
  at: z.string(),
  actor: z.object({
    kind: z.enum(actorKinds),
    keyId: z.string().optional(),
    clientId: z.string().optional(),
    userId: z.string().optional(),
  }),
  action: z.string(),
  arguments: Json,
  /** `unknown`: it was begun, and nobody told its end: it goes on, or its process died. */
  result: z.enum(['success', 'error', 'unknown']),
  errorCode: z.string().optional(),
  callIds: z.array(z.string()),
  requestId: z.string().optional(),
})
export type AuditLogEntry = z.infer<typeof AuditLogEntry>

export const AuditLogPage = pageOf(AuditLogEntry)

export type AuditRow = {
  readonly id: Id<'audit_entry'>
  readonly accountId: AccountId | null
  readonly at: number
  readonly actorKind: Actor['kind']
  readonly keyId: string | null
  readonly clientId: string | null
  readonly userId: string | null
  readonly action: string
  readonly arguments: Json
  readonly result: 'success' | 'error' | null
  readonly errorCode: string | null
  readonly callIds: readonly string[]
  readonly requestId: string | null
}

export function toAuditLogEntry(row: AuditRow): AuditLogEntry {
  const { id, at, actorKind: kind, keyId, clientId, userId, errorCode, requestId } = row
  return {
    id,
    at: toIso(at),
    actor: {
      kind,
      ...(keyId !== null && { keyId }),
      ...(clientId !== null && { clientId }),
      ...(userId !== null && { userId }),
    },
    action: row.action,
    arguments: row.arguments,
    result: row.result ?? 'unknown',
    ...(errorCode !== null && { errorCode }),
    callIds: [...row.callIds],
    ...(requestId !== null && { requestId }),
  }
}

/** Owns calls as the tools of their worker see them, and the outbox copy of a tool call. docs/contract/webhooks.md "call.tool_call". */
import type { Direction, Transport } from '../model/call.ts'
import type { Customer } from '../model/customer.ts'
import type { ToolCallData } from '../model/events.ts'
import type { ExternalTool } from '../model/external-tool.ts'
import type { AccountId, CallId, NewId, PersonId, WorkerId } from '../model/ids.ts'
import type { JsonObject } from '../model/json.ts'
import type { TerminalStatus } from '../model/outcome.ts'
import type { CallOverrides } from './call-rows.ts'
import { enqueueDeliveries } from './deliveries.ts'
import { secretPlace, type SecretBox } from './secret-box.ts'
import type { Sql, Transaction } from './sql.ts'

/** Its `signingSecret` is sealed, in the place of toolSecretPlace. */
export type SealedTool = ExternalTool

type ToolOfCall = { readonly accountId: string; readonly callId: string; readonly name: string }
export const toolSecretPlace = ({ accountId, callId, name }: ToolOfCall): string =>
  secretPlace('calls.external_tools', accountId, callId, name)

export const sealedTool = (box: SecretBox, call: Omit<ToolOfCall, 'name'>, tool: ExternalTool): SealedTool => ({
  ...tool,
  signingSecret: box.seal(tool.signingSecret, toolSecretPlace({ ...call, name: tool.name })),
})

export type CallAtHand = {
  readonly id: CallId
  readonly accountId: AccountId
  readonly workerId: WorkerId
  readonly direction: Direction
  readonly transport: Transport
  readonly fromNumber: string | null
  readonly toNumber: string | null
  readonly callerVerified: boolean | null
  readonly personId: PersonId | null
  readonly customer: Customer | null
  readonly metadata: JsonObject | null
  readonly request: CallOverrides
  readonly hookAnswer: CallOverrides
  readonly externalTools: readonly SealedTool[]
  /** Of the actor that runs it: a leg takes commands of no older one. */
  readonly epoch: number
  /** When it was answered. */
  readonly startedAt: number | null
  readonly outcome: TerminalStatus | null
  /** Of the request of REST that placed it; null: none did. */
  readonly requestId: string | null
  /** A subscription takes copies of its tool calls. */
  readonly isToolCallCopied: boolean
}

/** What makes a CallAtHand, of `calls`. */
export const callAtHandColumns = (sql: Sql) => sql`
  calls.id, calls.account_id, calls.worker_id, calls.direction, calls.transport, calls.from_number, calls.to_number, calls.caller_verified,
  calls.person_id, calls.customer, calls.metadata, calls.request, calls.hook_answer, calls.external_tools, calls.epoch, calls.started_at,
  calls.outcome, calls.request_id, exists (
    select from webhook_subscriptions s
    where s.account_id = calls.account_id and enabled and (s.worker_id is null or s.worker_id = calls.worker_id)
      and event_type in ('call.tool_call', '*')) as is_tool_call_copied`

type ToolCallCopy = {
  readonly data: ToolCallData
  readonly now: number
  readonly newId: NewId
}

/**
 * The copies of a tool call for who subscribed to it; false, and nothing written, when the call is not going on any more. The lock on the
 * call's row decides between a tool call and the end of the call: after call.ended nothing follows.
 */
export async function enqueueToolCall(
  sql: Sql,
  { accountId, workerId, id: callId }: CallAtHand,
  { data, now, newId }: ToolCallCopy,
): Promise<boolean> {
  const events = [{ type: 'call.tool_call', data: data as JsonObject }] as const
  const enqueue = async (tx: Transaction): Promise<true> => {
    // Sent together: a caller waits for what follows.
    const [active] = await Promise.all([
      tx`
        select from calls where account_id = ${accountId} and id = ${callId} and started_at is not null and outcome is null
        for no key update`,
      enqueueDeliveries(tx, { accountId, workerId, callId, events, now, newId }),
    ])
    if (active.length === 0) throw new NotActive()
    return true
  }
  return sql.begin(enqueue).catch((error: unknown) => {
    if (error instanceof NotActive) return false
    throw error
  })
}

/** Takes back what was written with it. */
class NotActive extends Error {}

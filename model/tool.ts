/** Owns the tools of a worker: how they are listed, called and answered. docs/contract/tools.md "Tool dispatch" and "Results". */
import { z } from 'zod'
import type { AccountId, WorkerId } from './ids.ts'
import { Json, JsonObject } from './json.ts'
import { PhoneNumber } from './phone-number.ts'

export const ToolDescriptor = z.object({
  name: z.string(),
  provider: z.string(),
  description: z.string(),
  inputSchema: z.looseObject({
    type: z.literal('object'),
    properties: JsonObject,
    required: z.array(z.string()),
  }),
  /** What a deployment or an account grants: `<provider>.<name>`. */
  capabilityKey: z.string(),
})
export type ToolDescriptor = z.infer<typeof ToolDescriptor>

/** Who is on the line. `phoneCallId` goes first when both are there. */
export const ToolCaller = z.object({
  phoneCallId: z.string().optional(),
  customerPhone: PhoneNumber.optional(),
})
export type ToolCaller = z.infer<typeof ToolCaller>

export const ToolCallRequest = z.strictObject({
  toolName: z.string().min(1).max(200),
  provider: z.string().min(1).max(200),
  arguments: JsonObject,
  ...ToolCaller.shape,
})
export type ToolCallRequest = z.infer<typeof ToolCallRequest>

export const ToolErrorCode = z.enum([
  'CALLER_IDENTITY_REQUIRED',
  'TOOL_TIMEOUT',
  'TOOL_FAILED',
  'NOT_AVAILABLE',
  'CALL_NOT_ACTIVE',
])
export type ToolErrorCode = z.infer<typeof ToolErrorCode>

/** That a tool could not do its work is an answer, no exception: whoever speaks to the caller must go on. */
/** Of one call; the engine waits for them. */
export const maxToolsAtOnce = 16

export const ToolResult = z.object({
  status: z.enum(['success', 'error']),
  data: z.record(z.string(), Json).optional(),
  error: z.object({ code: ToolErrorCode, message: z.string() }).optional(),
})
export type ToolResult = z.infer<typeof ToolResult>

/** How somebody who speaks to a caller has a tool run. */
export type ToolWork = {
  /** Ends when nobody waits any more. */
  readonly signal?: AbortSignal
  /** Before it resolves things are looked up and nothing is done, because whoever asks has to write down first that it does. */
  readonly committed?: Promise<void>
  /** The database does not answer just now. */
  readonly isAway?: () => boolean
  /** What whoever asks knows it by already. */
  readonly toolCallId?: string
  /** Writes down, where the call itself is written, that a tool of the integrator is asked; false: it may not be asked any more. */
  readonly announce?: (call: AskedTool) => Promise<boolean>
}

export type AskedTool = { readonly toolCallId: string; readonly name: string; readonly arguments: JsonObject }

/** One set of tools for REST, for calls that are going on and for MCP. */
export type Toolbox = {
  /** Throws Problem VALIDATION_FAILED for a `phoneCallId` that is no call of the worker. The worker must be the account's. */
  list(accountId: AccountId, workerId: WorkerId, caller: ToolCaller): Promise<ToolDescriptor[]>
  /**
   * Throws Problem INVALID_TOOL for a name that is no tool and for arguments that its schema refuses; issues name `toolName` or `arguments.x`.
   * With `committed` somebody speaks to a caller meanwhile: a database that is away is waited for as long as a tool may take, and tools of the
   * integrator need none.
   */
  call(accountId: AccountId, workerId: WorkerId, request: ToolCallRequest, work?: ToolWork): Promise<ToolResult>
}

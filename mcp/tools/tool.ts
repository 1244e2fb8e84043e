/**
 * Owns what a tool of the MCP endpoint is: a new tool is a value of this type in the list of its file. How it is listed, checked, refused, answered
 * and noted in the audit log is the server's. docs/contract/mcp.md "Tools".
 */
import type { Result, ServerContext } from '@modelcontextprotocol/server'
import type { z } from 'zod'
import type { CallId } from '../../model/ids.ts'
import type { McpAccess, McpScope } from '../../model/mcp-access.ts'

/** In front of the name of every tool that manages an account. */
export const adminPrefix = 'account_admin__'

/** Of the protocol, all of them said. `openWorldHint`: it reaches people or systems outside of this service. */
export type ToolAnnotations = {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

/** The flags of the contract's table: RO; D; I; D and I; none of them. */
export const hints = {
  reads: annotated({ readOnlyHint: true }),
  creates: annotated({}),
  changes: annotated({ destructiveHint: true, idempotentHint: true }),
  destroys: annotated({ destructiveHint: true }),
} as const

function annotated(said: Partial<ToolAnnotations>): ToolAnnotations {
  return { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false, ...said }
}

export type ToolContext = {
  readonly access: McpAccess
  readonly requestId: string
  /** Without a slash at its end: the address that the client knows this service by. */
  readonly publicUrl: string
  /** Ends when nobody waits for the answer any more. */
  readonly signal: AbortSignal
  /** What the protocol offers besides a result: the capabilities the client declares (`envelope`), its answers to what it was asked, its state. */
  readonly protocol: ServerContext['mcpReq']
  /** `legacy`: a revision of 2025, which is served without a session and knows nothing of the client. */
  readonly era: 'modern' | 'legacy'
}

export type ToolOutcome<Content extends object = object> =
  | {
      /** What the tool's `output` describes. */
      readonly content: Content
      /** For whoever reads text. Absent: the content as JSON. */
      readonly text?: string
      /** What the audit log names with it. */
      readonly callIds?: readonly CallId[]
    }
  /** As a Problem that is thrown, with a code of its own. */
  | { readonly failed: { readonly code: string; readonly message: string }; readonly callIds?: readonly CallId[] }
  /** In place of a result: what else the protocol lets a tool answer with (input that is required, a task). */
  | { readonly instead: Result; readonly callIds?: readonly CallId[] }

/** A Problem that is thrown becomes a result that says so, with the argument's path in its issues. */
export type McpTool = {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly annotations: ToolAnnotations
  /** One of them is enough. The first is the one that a client is told to ask for. */
  readonly scopes: readonly McpScope[]
  /** True: `run` asks for nothing of `protocol`, and answers with nothing in place of a result. Absent: it may. */
  readonly isPlain?: boolean
  readonly input: z.ZodType
  readonly output: z.ZodType
  run(given: unknown, context: ToolContext): Promise<ToolOutcome>
}

type Defined<Input extends z.ZodType, Output extends z.ZodType<object>> = Omit<McpTool, 'input' | 'output' | 'run'> & {
  readonly input: Input
  readonly output: Output
  run(given: z.output<Input>, context: ToolContext): Promise<ToolOutcome<z.output<Output> & object>>
}

/** Holds what a tool does to what it takes and answers. What `run` is given has passed `input`. */
export const defineMcpTool = <Input extends z.ZodType, Output extends z.ZodType<object>>(
  tool: Defined<Input, Output>,
): McpTool => tool as unknown as McpTool

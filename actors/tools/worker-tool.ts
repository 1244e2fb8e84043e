/**
 * Owns what an entry in a table of tools is: its name, what it takes, when it is to be had, what it does. A new tool is a new entry; how it
 * is listed, checked, timed and refused is the toolbox's.
 */
import { z } from 'zod'
import type { AccountId } from '../../model/ids.ts'
import type { CallerProof } from '../../model/caller-proof.ts'
import type { Json, JsonObject } from '../../model/json.ts'
import type { PersonFacts } from '../../model/person.ts'
import { issuesOf } from '../../model/issues.ts'
import type { Issue } from '../../model/problem.ts'
import type { ToolDescriptor, ToolErrorCode, ToolResult } from '../../model/tool.ts'
import type { Customer } from '../../model/customer.ts'
import type { EffectiveConfig } from '../../model/worker.ts'
import type { CallAtHand } from '../../store/tool-calls.ts'
import type { ToolFacts } from '../../store/tool-facts.ts'

/** Who is on the line, as far as anybody knows; at least one of number, person and customer is there. */
export type CallerIdentity = {
  readonly number: string | null
  /** Stored, of the same account. */
  readonly person: PersonFacts | null
  /** Who created the call says so. */
  readonly customer: Customer | null
  /** Does the number prove them? Null: the account itself said who it is. */
  readonly proof: CallerProof | null
}

/** What tools are offered for. Everything in it belongs to the account. */
export type OfferContext = Pick<ToolFacts, 'worker' | 'call' | 'hasDocuments' | 'canPassOn'> & {
  readonly accountId: AccountId
  /** Of this call when there is one, else of the worker. */
  readonly config: EffectiveConfig
  /** BCP 47. */
  readonly language: string
  readonly caller: Omit<CallerIdentity, 'person'> | null
}

/** What a tool works for. */
export type ToolContext = OfferContext & { readonly caller: CallerIdentity | null }

export type Run = (context: ToolContext, signal: AbortSignal) => Promise<ToolResult>

export type WorkerTool = {
  readonly provider: string
  readonly name: string
  readonly description: string
  readonly inputSchema: ToolDescriptor['inputSchema']
  /** Null when the tool is to be had; otherwise what a call of it is answered with. */
  refusal(context: OfferContext): Promise<ToolResult | null>
  /** What is to be done with these arguments, or what is wrong with them. */
  prepare(given: JsonObject): Run | Issue[]
}

export type ToolDefinition<Input extends z.ZodObject> = Omit<WorkerTool, 'inputSchema' | 'prepare'> & {
  readonly input: Input
  /** `signal` ends when nobody waits for the result any more. A thrown error reads TOOL_FAILED. */
  run(context: ToolContext, given: z.infer<Input>, signal: AbortSignal): Promise<ToolResult>
}

export function defineTool<Input extends z.ZodObject>(definition: ToolDefinition<Input>): WorkerTool {
  const { input, run, ...rest } = definition
  return {
    ...rest,
    inputSchema: inputSchemaOf(input),
    prepare(given) {
      const parsed = input.safeParse(given)
      if (!parsed.success) return issuesOf(parsed.error, given)
      return (context, signal) => run(context, parsed.data, signal)
    },
  }
}

export const success = (data: Readonly<Record<string, Json>>): ToolResult => ({ status: 'success', data })

/** `message` is for whoever speaks to the caller; it carries nothing of the inside. */
export const failure = (code: ToolErrorCode, message: string): ToolResult => ({
  status: 'error',
  error: { code, message },
})

/** An answered call that has no outcome yet: only then there is somebody to do something to. */
export const isActive = (call: CallAtHand | null): call is CallAtHand =>
  call !== null && call.startedAt !== null && call.outcome === null

export const callNotActive = (): ToolResult =>
  failure('CALL_NOT_ACTIVE', 'This needs a call that is going on: it was not answered yet, or is over.')

function inputSchemaOf(input: z.ZodObject): ToolDescriptor['inputSchema'] {
  const { $schema: _, properties = {}, required = [], ...rest } = z.toJSONSchema(input, { io: 'input' })
  return { ...(rest as JsonObject), type: 'object', properties: properties as JsonObject, required }
}

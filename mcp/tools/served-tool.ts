/** Owns how a tool is listed, and how what a client sends is checked before the tool sees it. docs/contract/mcp.md "Tools" and "Failures". */
import { ProtocolError, ProtocolErrorCode, type Tool } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { issuesOf } from '../../model/issues.ts'
import { flawOf } from '../../model/json.ts'
import type { McpScope } from '../../model/mcp-access.ts'
import { nullAsAbsent } from '../../model/null-as-absent.ts'
import { Issue, Problem } from '../../model/problem.ts'
import { namedInSnakeCase } from '../snake-case.ts'
import type { McpTool, ToolContext, ToolOutcome } from './tool.ts'

export type Arguments = Readonly<Record<string, unknown>>

/** A tool as the server has it, whether its arguments are described by a schema of ours or by somebody else's. */
export type ServedTool = {
  readonly listing: Tool
  readonly scopes: readonly McpScope[]
  /** As of McpTool. */
  readonly isPlain: boolean
  /** Throws Problem for arguments that it does not take, and for what it cannot do. */
  run(given: Arguments, context: ToolContext): Promise<ToolOutcome>
}

/** What a tool answers in place of its content when it could not do its work. */
export const Failure = z.object({ code: z.string(), message: z.string(), issues: z.array(Issue).optional() })
export type Failure = z.infer<typeof Failure>

/** What one answer lists at most: as many as a batch has entries. */
const maxIssues = 100

export function serveTool(tool: McpTool): ServedTool {
  const { name, title, description, annotations, scopes, isPlain = false, input, output, run } = tool
  const inputSchema = schemaOf(input, 'input') as Tool['inputSchema']
  const outputSchema = outputSchemaOf(schemaOf(output, 'output'))
  return {
    listing: { name, title, description, inputSchema, outputSchema, annotations: { title, ...annotations } },
    scopes,
    isPlain,
    async run(given, context) {
      requireStorable(given)
      const parsed = input.safeParse(nullAsAbsent(input, given))
      if (!parsed.success) throw invalidArguments(issuesOf(parsed.error, given))
      // What the client sent is named as it was sent; what the API names is not.
      return run(parsed.data, context).catch((error: unknown) => {
        throw namedInSnakeCase(error)
      })
    },
  }
}

function requireStorable(given: Arguments): void {
  const flaw = flawOf(given)
  if (flaw) throw invalidArguments([{ path: flaw.path.join('.'), message: flaw.message }])
}

/** Of arguments, by their paths as the client named them. */
export const invalidArguments = (issues: readonly Issue[]): Problem =>
  new Problem('VALIDATION_FAILED', 'Some arguments are not valid; see issues.', boundedIssues(issues))

/** Where there are too many, each argument and each entry of a batch is named once. */
function boundedIssues(issues: readonly Issue[]): Issue[] {
  if (issues.length <= maxIssues) return [...issues]
  const firsts = new Map<string, Issue>()
  for (const issue of issues) {
    const entry = issue.path.split('.', 2).join('.')
    if (!firsts.has(entry)) firsts.set(entry, issue)
  }
  return [...firsts.values()].slice(0, maxIssues)
}

/** No answer of a tool, but an error of the protocol. */
export const unknownTool = (name: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 200)}`)

type Schema = Readonly<Record<string, unknown>>

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Schema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return { ...rest, type: 'object' }
}

/**
 * Older clients hold a failure to the schema of the output, too: it describes both. Objects stay one object, because models read its properties;
 * anything else becomes a choice.
 */
export function outputSchemaOf(success: Schema): NonNullable<Tool['outputSchema']> {
  const failure = schemaOf(Failure, 'output')
  if (!('properties' in success)) {
    const { type: _, ...choice } = success
    return { type: 'object', anyOf: [choice, failure] }
  }
  const { required = [], properties, ...rest } = success
  return {
    ...rest,
    type: 'object',
    properties: { ...(properties as object), ...(failure['properties'] as object) },
    anyOf: [{ required }, { required: failure['required'] }],
  } as NonNullable<Tool['outputSchema']>
}

/**
 * Owns the tools of a worker as clients with the scope `user` see them: the set that REST dispatches and that a call has, of the granted worker only.
 * docs/contract/mcp.md "Tools of a worker".
 */
import type { Tool } from '@modelcontextprotocol/server'
import type { JsonObject } from '../../model/json.ts'
import type { McpAccess, McpScope } from '../../model/mcp-access.ts'
import { Problem, type Issue } from '../../model/problem.ts'
import type { Toolbox, ToolDescriptor } from '../../model/tool.ts'
import type { Tools } from '../tool-server.ts'
import { invalidArguments, unknownTool, type Arguments, type ServedTool } from './served-tool.ts'
import { hints, type ToolAnnotations, type ToolContext, type ToolOutcome } from './tool.ts'

const scopes: readonly McpScope[] = ['user']
const between = '__'

/** What is not named here may do anything, and reaches others. */
const annotations: Readonly<Record<string, ToolAnnotations>> = {
  knowledge_base__search: hints.reads,
  person__get_caller: hints.reads,
  person__update_caller: hints.changes,
  email__send: { ...hints.creates, openWorldHint: true },
}
const anything = { ...hints.destroys, openWorldHint: true }

/** A name with another provider is no tool of a worker. */
const isOwn = (name: string): boolean => /^(?:knowledge_base|email|call|person|external)__./.test(name)

/** Besides its own arguments a tool takes the call it is for. */
const callArgument = 'phone_call_id'
const callSchema = {
  type: 'string',
  description: 'The call it is for: tools that act on a call, or on whoever is on the line, need one of the worker.',
}

export function ownTools(toolbox: Toolbox): Tools {
  return {
    async list(access) {
      const { accountId, workerId, scopes: granted } = access
      if (!granted.includes('user') || workerId === null) return []
      const descriptors = await toolbox.list(accountId, workerId, {}).catch(noneWithoutWorker)
      return descriptors.map((descriptor) => served(toolbox, listingOf(descriptor)))
    },
    async find(name, { scopes: granted, workerId }) {
      const mayCall = granted.includes('user') && workerId !== null && isOwn(name)
      // Whether there is such a tool finds out who calls it: to list them all takes longer than to call one.
      return mayCall ? served(toolbox, { name, inputSchema: { type: 'object' } }) : null
    },
    scopesOf: (name) => (isOwn(name) ? scopes : null),
  }
}

/** A token that was granted for a worker outlives it. */
function noneWithoutWorker(error: unknown): ToolDescriptor[] {
  if (error instanceof Problem && error.type === 'NOT_FOUND') return []
  throw error
}

function listingOf({ provider, name, description, inputSchema }: ToolDescriptor): Tool {
  const { properties } = inputSchema
  return {
    name: provider + between + name,
    description,
    inputSchema: { ...inputSchema, properties: { ...properties, [callArgument]: callSchema } } as Tool['inputSchema'],
    // What it answers is its own matter.
    outputSchema: { type: 'object' },
  }
}

const served = (toolbox: Toolbox, listing: Tool): ServedTool => ({
  listing: { ...listing, annotations: annotations[listing.name] ?? anything },
  scopes,
  // Whether it exists, the library is to say.
  isPlain: false,
  run: (given, context) => runOwn(toolbox, listing.name, given, context),
})

async function runOwn(toolbox: Toolbox, name: string, given: Arguments, context: ToolContext): Promise<ToolOutcome> {
  const { accountId, workerId } = context.access as McpAccess & { workerId: NonNullable<McpAccess['workerId']> }
  const { [callArgument]: phoneCallId, ...rest } = given
  if (phoneCallId !== undefined && typeof phoneCallId !== 'string')
    throw invalidArguments([{ path: callArgument, message: 'must be a string' }])
  const at = name.indexOf(between)
  const request = {
    provider: name.slice(0, at),
    toolName: name.slice(at + between.length),
    arguments: rest as JsonObject,
    ...(phoneCallId !== undefined && { phoneCallId }),
  }
  const answer = await toolbox
    .call(accountId, workerId, request, { ...(context.signal && { signal: context.signal }) })
    .catch((error: unknown) => asArguments(error, name))
  if (answer.error) return { failed: answer.error }
  return { content: answer.data ?? {} }
}

/** What REST sends as `arguments.query` is here an argument by itself. */
function asArguments(error: unknown, name: string): never {
  if (!(error instanceof Problem) || error.issues === null) throw error
  const [first] = error.issues
  if (first?.path === 'provider' || first?.path === 'toolName') throw noTool(name, first)
  const issues = error.issues.map(({ path, message }): Issue => ({ path: argumentPath(path), message }))
  throw new Problem(error.type, error.message, issues)
}

const argumentPath = (path: string): string =>
  path === 'phoneCallId' ? callArgument : path.replace(/^arguments\./, '')

/** Those of `external` are a call's: without it nobody knows which there are. */
const noTool = (name: string, { message }: Issue): Error =>
  name.startsWith(`external${between}`)
    ? new Problem('INVALID_TOOL', 'The tool belongs to a call.', [
        { path: callArgument, message: message.includes('phoneCallId') ? 'is missing' : 'is no call with this tool' },
      ])
    : unknownTool(name)

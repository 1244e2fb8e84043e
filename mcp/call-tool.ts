/**
 * Owns one call of one tool: its result or its failure as the protocol wants them, and its line in the audit log. What a tool cannot do is an
 * answer, no error of the protocol. docs/contract/mcp.md "Failures".
 */
import { ProtocolError, type CallToolResult, type Result } from '@modelcontextprotocol/server'
import type { Audit } from '../model/audit.ts'
import type { CallId } from '../model/ids.ts'
import { flawOf, type Json } from '../model/json.ts'
import type { Log } from '../model/log.ts'
import { Problem } from '../model/problem.ts'
import { databaseUnreachable } from '../store/database-unreachable.ts'
import type { Arguments, Failure, ServedTool } from './tools/served-tool.ts'
import type { ToolContext, ToolOutcome } from './tools/tool.ts'

type Deps = { readonly audit: Audit; readonly log: Log }

export type CallTool = (tool: ServedTool, given: Arguments, context: ToolContext) => Promise<Result>

type Ending = { readonly result: Result; readonly errorCode: string | null; readonly callIds: readonly CallId[] }

export function createCallTool({ audit, log }: Deps): CallTool {
  return async (tool, given, context) => {
    const ending = await endingOf(tool, given, context, log)
    await note(audit, log, tool, given, context, ending)
    return ending.result
  }
}

async function endingOf(tool: ServedTool, given: Arguments, context: ToolContext, log: Log): Promise<Ending> {
  try {
    const outcome = await tool.run(given, context)
    const errorCode = 'failed' in outcome ? outcome.failed.code : null
    return { result: resultOf(outcome), errorCode, callIds: outcome.callIds ?? [] }
  } catch (error) {
    if (error instanceof ProtocolError) throw error
    const failure = failureOf(error, tool.listing.name, context.requestId, log)
    return { result: failedResult(failure), errorCode: failure.code, callIds: [] }
  }
}

function resultOf(outcome: ToolOutcome): Result {
  if ('instead' in outcome) return outcome.instead
  if ('failed' in outcome) return failedResult(outcome.failed)
  const { content, text = JSON.stringify(content) } = outcome
  return { content: [{ type: 'text', text }], structuredContent: content } as CallToolResult
}

/** The structured content alone is data; the text says the same to whoever reads only that. */
const failedResult = (failure: Failure): CallToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(failure) }],
  structuredContent: failure,
  isError: true,
})

function failureOf(error: unknown, tool: string, requestId: string, log: Log): Failure {
  if (error instanceof Problem) return failureOfProblem(error)
  if (databaseUnreachable(error)) {
    log.warn('the database cannot be reached', { requestId, tool, error })
    return { code: 'SERVICE_UNAVAILABLE', message: 'The service is not available. Try again soon.' }
  }
  log.error('an MCP tool failed', { requestId, tool, error })
  return { code: 'INTERNAL', message: 'Something went wrong on our side.' }
}

const failureOfProblem = ({ type, message, issues }: Problem): Failure => ({
  code: type,
  message,
  ...(issues && { issues: [...issues] }),
})

/** That what was done could not be noted takes nothing back: it is logged, and the client is told what was done. */
async function note(
  audit: Audit,
  log: Log,
  tool: ServedTool,
  given: Arguments,
  { access, requestId }: ToolContext,
  { errorCode, callIds }: Ending,
): Promise<void> {
  const { accountId, clientId, userId } = access
  const { name, annotations } = tool.listing
  const entry = {
    accountId,
    actor: { kind: 'mcp_client', clientId, userId },
    action: name,
    // What cannot be stored was refused, and is not repeated.
    arguments: flawOf(given) ? {} : (given as Json),
    result: errorCode === null ? 'success' : 'error',
    ...(errorCode !== null && { errorCode }),
    ...(callIds.length > 0 && { callIds }),
    requestId,
  } as const
  if (annotations?.readOnlyHint) return audit.noteSoon(entry)
  await audit
    .note(entry)
    .catch((error: unknown) => log.error('an audit entry was lost', { requestId, tool: name, error }))
}

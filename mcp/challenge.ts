/** Owns what a client without a good token is told: where it gets one, and for what. RFC 6750 section 3, RFC 9728 section 5.1. */
import type { McpScope } from '../model/mcp-access.ts'
import { errorBodyOf, Problem } from '../model/problem.ts'
import { metadataUrlOf } from './resource-metadata.ts'

type Told = { readonly requestId: string; readonly publicUrl: string }

/** What a client is to ask for first: all that an account's people may do here. */
const firstScope: McpScope = 'account_admin'

/** 401. `wasGiven`: the request had a token, and it is good for nothing. */
export function unauthorized({ requestId, publicUrl }: Told, wasGiven: boolean): Response {
  const problem = new Problem('UNAUTHORIZED', wasGiven ? 'The token is not valid.' : 'Send a bearer token.')
  const error = wasGiven ? { error: 'invalid_token', error_description: problem.message } : {}
  return challenge(problem, requestId, { ...error, scope: firstScope, resource_metadata: metadataUrlOf(publicUrl) })
}

/** 403: the token is good, and does not reach so far. `scopes`: all that the request needs. */
export function insufficientScope({ requestId, publicUrl }: Told, scopes: readonly McpScope[]): Response {
  const problem = new Problem('INSUFFICIENT_SCOPE', `This needs the scope ${scopes.join(' ')}.`)
  return challenge(problem, requestId, {
    error: 'insufficient_scope',
    error_description: problem.message,
    scope: scopes.join(' '),
    resource_metadata: metadataUrlOf(publicUrl),
  })
}

/** None of the values holds a quotation mark or a backslash. */
function challenge(problem: Problem, requestId: string, values: Readonly<Record<string, string>>): Response {
  const { scope: _, resource_metadata: __, ...oauth } = values
  const parameters = Object.entries(values).map(([name, value]) => `${name}="${value}"`)
  return Response.json(
    { ...errorBodyOf(problem, requestId), ...oauth },
    { status: problem.status, headers: { 'www-authenticate': `Bearer ${parameters.join(', ')}` } },
  )
}

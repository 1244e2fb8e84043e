/** Owns the wiring of what people and their MCP clients are answered beside the API. */
import type { RequestLimit } from '../api/rate-limit.ts'
import { createDocumentFetcher } from '../actors/webhooks/document-fetcher.ts'
import { prepareCallTasks } from '../mcp/call-tasks.ts'
import { createCallTool } from '../mcp/call-tool.ts'
import { createApprovalPage } from '../mcp/confirmations/approval-page.ts'
import { approvalsPath } from '../mcp/confirmations/ask-approval.ts'
import { createMcpEndpoint } from '../mcp/endpoint.ts'
import { createOauth } from '../mcp/oauth/oauth.ts'
import { createPeople } from '../mcp/people/people.ts'
import { createToolServers } from '../mcp/tool-server.ts'
import { allTools, fixedTools, joinedTools } from '../mcp/tools/all-tools.ts'
import { ownTools } from '../mcp/tools/own-tools.ts'
import type { Audit } from '../model/audit.ts'
import type { ScriptCheck } from '../model/script-check.ts'
import type { PageSessions } from '../model/user.ts'
import type { Beside } from '../net/http/beside.ts'
import { createPasswords } from '../store/passwords.ts'
import type { CallSide } from './call-side.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'
import { integrationsOf } from './integrations.ts'

type Parts = {
  readonly core: Core
  readonly config: Config
  readonly calls: CallSide
  readonly limit: RequestLimit
  readonly audit: Audit
  readonly checkScript: ScriptCheck
}

export type McpSide = {
  readonly beside: readonly Beside[]
  readonly sessions: PageSessions
  /** Ends what is still streamed; before the listener closes. Idempotent. */
  close(): Promise<void>
}

export function openMcpSide({ core: whole, config, calls, limit, audit, checkScript }: Parts): McpSide {
  const core = { ...whole, sql: whole.requests }
  const { publicUrl, mayClaimNumbers, oauthClientAllowHosts } = config
  const people = createPeople({ ...core, audit, passwords: createPasswords(), publicUrl })
  const documents = createDocumentFetcher({ allowHosts: oauthClientAllowHosts, clock: core.clock })
  const oauth = createOauth({
    ...core,
    ...people,
    now: core.clock.now,
    audit,
    publicUrl,
    fetchDocument: documents.fetch,
  })
  const tools = joinedTools([
    fixedTools(
      allTools({
        ...core,
        ...calls,
        checkScript,
        mayClaimNumbers,
        integrations: integrationsOf(config),
        toolsChanged: (accountId) => endpoint.changed(accountId, { kind: 'tools_list_changed' }),
      }),
    ),
    ownTools(calls.tools),
  ])
  const tasks = { prepare: prepareCallTasks({ ...core, ...calls, audit }) }
  const served = createToolServers({ tools, call: createCallTool({ ...core, audit }), more: tasks })
  const endpoint = createMcpEndpoint({ ...core, findAccess: oauth.findMcpAccess, served, charge: limit, publicUrl })
  const close = async (): Promise<void> => {
    await endpoint.close()
    await documents.close()
  }
  const approvals = { path: `${approvalsPath}*`, fetch: createApprovalPage({ ...core, ...people, audit }) }
  return { beside: [...endpoint.beside, ...people.pages, ...oauth.pages, approvals], sessions: people, close }
}

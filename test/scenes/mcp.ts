/**
 * Owns the MCP endpoint of the tests: the real one behind the real rim of the API, on a real database with two accounts, asked without a socket.
 * Tokens are a second implementation of their port: what a token grants is what a test says.
 */
import { Validator } from '@cfworker/json-schema'
import type { CallToolResult } from '@modelcontextprotocol/server'
import type { Test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createApi } from '../../api/api.ts'
import { createRequestLimit, type RateLimits } from '../../api/rate-limit.ts'
import { readConfig } from '../../app/config.ts'
import { integrationsOf } from '../../app/integrations.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import { prepareCallTasks } from '../../mcp/call-tasks.ts'
import { createCallTool } from '../../mcp/call-tool.ts'
import { createMcpEndpoint, type EndpointDeps } from '../../mcp/endpoint.ts'
import { createToolServers } from '../../mcp/tool-server.ts'
import { allTools, fixedTools, joinedTools } from '../../mcp/tools/all-tools.ts'
import { ownTools } from '../../mcp/tools/own-tools.ts'
import type { Audit, AuditEntry } from '../../model/audit.ts'
import type { AccountId, UserId, WorkerId } from '../../model/ids.ts'
import type { McpAccess } from '../../model/mcp-access.ts'
import { createAsk, newId, openSeededApi, start } from './seeded-api.ts'

export const publicUrl = 'http://calls.example:8080'
export const current = '2026-07-28'

type Changes = {
  /** Of the environment, as far as tools tell of it. */
  readonly settings?: Record<string, string>

  readonly rateLimits?: RateLimits
  readonly publicUrl?: string | null
  readonly served?: EndpointDeps['served']
  readonly maxStreams?: NonNullable<EndpointDeps['maxStreams']>
}

export async function openMcp(t: Test, changes: Changes = {}) {
  const seeded = await openSeededApi(t)
  const { deps, calls, box, own, other, sql, hands } = seeded
  const bus = createLocalBus(deps)
  const noted: AuditEntry[] = []
  const audit: Audit = { note: async (entry) => void noted.push(entry), noteSoon: (entry) => void noted.push(entry) }
  const tokens = new Map<string, McpAccess>()
  const charge = createRequestLimit(changes.rateLimits ?? deps.rateLimits, deps.clock)
  const told: AccountId[] = []
  const tools = joinedTools([
    fixedTools(
      allTools({
        ...deps,
        ...calls,
        box,
        checkScript: await openScriptCheck(),
        mayClaimNumbers: true,
        integrations: integrationsOf(readConfig(changes.settings ?? {})),
        toolsChanged: (accountId) => void told.push(accountId),
      }),
    ),
    ownTools(deps.tools),
  ])
  const more = { prepare: prepareCallTasks({ ...deps, box, audit }) }
  const served = changes.served ?? createToolServers({ tools, call: createCallTool({ ...deps, audit }), more })
  const known = changes.publicUrl === undefined ? publicUrl : changes.publicUrl
  const findAccess = async (token: string): Promise<McpAccess | null> => tokens.get(token) ?? null
  /** As one process of several on the same bus and the same database. */
  const openProcess = () => {
    const { maxStreams } = changes
    const process = { ...deps, bus, findAccess, served, charge, publicUrl: known, ...(maxStreams && { maxStreams }) }
    const opened = createMcpEndpoint(process)
    t.teardown(() => opened.close())
    const fetch = createApi({ ...deps, publicUrl: known, beside: opened.beside }, charge)
    return { ...opened, fetch }
  }
  const endpoint = openProcess()
  t.teardown(() => bus.close())
  const ask = createAsk({ ...deps, publicUrl: known, beside: endpoint.beside }, own.key, charge)

  function grant(access: Partial<McpAccess> = {}): string {
    const token = `token-${tokens.size}`
    tokens.set(token, {
      accountId: own.id,
      userId: newId<'user'>() as UserId,
      clientId: 'client-1',
      clientName: 'A client',
      grantId: 'grant-1',
      scopes: ['account_admin'],
      workerId: null,
      expiresAt: start + 3_600_000,
      ...access,
    })
    return token
  }
  /** A client may refuse what its schema does not describe: failures too. */
  const requireDescribed = async (name: string, { structuredContent, content }: CallToolResult) => {
    const listing = (await tools.find(name, tokens.get(grant({ scopes: ['account_admin', 'admin'] })) as McpAccess))
      ?.listing
    const { valid, errors } = new Validator(listing?.outputSchema as never, '2020-12').validate(structuredContent)
    if (!valid) throw new Error(`${name} does not describe what it answers: ${JSON.stringify(errors)}`)
    const [first] = content
    if (first?.type !== 'text' || first.text !== JSON.stringify(structuredContent))
      throw new Error(`${name} has no text`)
  }
  /** One message in the current revision, or in one of 2025. */
  const send = async (method: string, params: Params = {}, options: Sending = {}) => {
    const { token = grant(), era = 'modern', headers = {}, capabilities } = options
    const message =
      era === 'modern'
        ? modernOf(method, params, capabilities)
        : { headers: legacyHeaders, json: bodyOf(method, params) }
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` }
    const answer = await ask(`${known ?? 'http://localhost'}/mcp`, {
      method: 'POST',
      key: null,
      json: message.json,
      headers: { accept: 'application/json, text/event-stream', ...message.headers, ...authorization, ...headers },
    })
    return { ...answer, json: answer.json ?? streamedJson(answer.text) }
  }
  /** What a tool answered; an error of the protocol fails the test. */
  const call = async (tool: string, args: Record<string, unknown> = {}, options: Sending = {}) => {
    const params = { name: `account_admin__${tool}`, arguments: args, ...options.retry }
    const { json, text } = await send('tools/call', params, options)
    if (!json?.result) throw new Error(`${tool} answered ${text}`)
    // A question to the client, or a task, is no content of the tool.
    const isResult = (json.result.resultType ?? 'complete') === 'complete'
    if (isResult) await requireDescribed(`account_admin__${tool}`, json.result)
    return json.result
  }
  /** What it answered when all was well. */
  const done = async (tool: string, args: Record<string, unknown> = {}, options: Sending = {}) => {
    const result = await call(tool, args, options)
    if (result.isError) throw new Error(`${tool} answered ${JSON.stringify(result.structuredContent)}`)
    return result.structuredContent
  }
  /** Code and paths, or null when all was well. */
  const refused = async (tool: string, args: Record<string, unknown> = {}, options: Sending = {}) => {
    const { isError, structuredContent: told } = await call(tool, args, options)
    return isError ? [told.code, ...(told.issues ?? []).map(({ path }: { path: string }) => path)] : null
  }
  return {
    ...seeded,
    ask,
    send,
    call,
    done,
    refused,
    grant,
    tokens,
    noted,
    told,
    endpoint,
    openProcess,
    bus,
    own,
    other,
    sql,
    hands,
    tools,
  }
}

type Params = Record<string, unknown>
export type Sending = {
  /** Null: none is sent. Absent: one that grants `account_admin`. */
  readonly token?: string | null
  readonly era?: 'modern' | 'legacy'
  readonly headers?: Record<string, string>
  /** What the client declares in the current revision; absent: nothing. */
  readonly capabilities?: object
  /** What it brings back of an earlier try: `inputResponses`, `requestState`. */
  readonly retry?: Params
}

const legacyHeaders = { 'mcp-protocol-version': '2025-11-25' }

const bodyOf = (method: string, params: Params) => ({ jsonrpc: '2.0', id: 1, method, params })

export function modernOf(method: string, params: Params, capabilities: object = {}) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': current,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  const named = params['name'] ?? params['taskId']
  const name = typeof named === 'string' ? { 'mcp-name': named } : {}
  const headers: Record<string, string> = { 'mcp-protocol-version': current, 'mcp-method': method, ...name }
  return { headers, json: bodyOf(method, { ...params, _meta: { ...(params['_meta'] as object), ...meta } }) }
}

/** The last message of a stream. */
// eslint-disable-next-line typescript/no-explicit-any -- an answer is whatever the test says it is
function streamedJson(text: string): any {
  const last = text.split('\n').findLast((line) => line.startsWith('data: {'))
  return last === undefined ? null : JSON.parse(last.slice('data: '.length))
}

/** A token that reaches one worker. */
export const ofWorker = (workerId: WorkerId, scopes: McpAccess['scopes'] = ['admin']): Partial<McpAccess> => ({
  scopes,
  workerId,
})

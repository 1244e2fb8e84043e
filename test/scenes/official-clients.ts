/** Owns the official SDKs' clients behind one face: the current one on the current revision and on those of 2025, and the older one. */
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client'
import { UnauthorizedError as OlderUnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { OAuthClient } from './oauth-client.ts'

export type ToolAnswer = {
  readonly isError?: boolean | undefined
  readonly content: readonly unknown[]
  readonly structuredContent?: unknown
}

export type Connection = {
  readonly protocolVersion: string | undefined
  listTools(): Promise<readonly { readonly name: string }[]>
  callTool(name: string, given?: Record<string, unknown>): Promise<ToolAnswer>
  close(): Promise<void>
}

export type OfficialClient = {
  readonly name: string
  readonly protocolVersion: string
  /** Rejects with what `isUnauthorized` says yes to when a person has to approve first. */
  connect(url: URL, client: OAuthClient): Promise<Connection>
  isUnauthorized(error: unknown): boolean
  /** Exchanges what the browser brought back for tokens. */
  finish(url: URL, client: OAuthClient, returned: URLSearchParams): Promise<void>
}

const identity = { name: 'parley-test', version: '1.0.0' }

const current = (name: string, mode: 'auto' | 'legacy', protocolVersion: string): OfficialClient => ({
  name,
  protocolVersion,
  async connect(url, { provider }) {
    const client = new Client(identity, { versionNegotiation: { mode } })
    await client.connect(new StreamableHTTPClientTransport(url, { authProvider: provider }))
    return {
      protocolVersion: client.getNegotiatedProtocolVersion(),
      listTools: async () => (await client.listTools()).tools,
      callTool: (name, given = {}) => client.callTool({ name, arguments: given }),
      close: () => client.close(),
    }
  },
  isUnauthorized: (error) => error instanceof UnauthorizedError,
  finish: (url, { provider }, returned) =>
    new StreamableHTTPClientTransport(url, { authProvider: provider }).finishAuth(returned),
})

const older: OfficialClient = {
  name: 'SDK 1.x',
  protocolVersion: '2025-11-25',
  async connect(url, { provider }) {
    const client = new OlderClient(identity)
    const transport = new OlderTransport(url, { authProvider: provider as never })
    await client.connect(transport as never)
    return {
      protocolVersion: transport.protocolVersion,
      listTools: async () => (await client.listTools()).tools,
      callTool: async (name, given = {}) => (await client.callTool({ name, arguments: given })) as ToolAnswer,
      close: () => client.close(),
    }
  },
  isUnauthorized: (error) => error instanceof OlderUnauthorizedError,
  finish: (url, { provider }, returned) =>
    new OlderTransport(url, { authProvider: provider as never }).finishAuth(returned.get('code') ?? ''),
}

export const officialClients: readonly OfficialClient[] = [
  current('SDK 2.x', 'auto', '2026-07-28'),
  current('SDK 2.x without negotiation', 'legacy', '2025-11-25'),
  older,
]

/**
 * Owns the rows of the MCP bench: several accounts, each with workers, a key, and a client that a person of it has approved. The same question is there three
 * times: over REST, and as a tool in the current revision and in one of 2025.
 */
import { randomBytes } from 'node:crypto'
import { v7 as uuid } from 'uuid'
import type { NewId } from '../../model/ids.ts'
import { createAccount } from '../../store/accounts.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { addMember } from '../../store/memberships.ts'
import { beginGrant } from '../../store/oauth-grants.ts'
import { savePayloadOfGrant } from '../../store/oauth-payloads.ts'
import type { Sql } from '../../store/sql.ts'
import { createToken } from '../../store/token.ts'
import { createUser } from '../../store/users.ts'
import { createWorker } from '../../store/workers.ts'
import type { Target } from './http-load.ts'

const newId = (() => uuid()) as NewId
const accounts = 8
const workersOfEach = 3
const hour = 3_600_000

export type McpTargets = {
  readonly rest: readonly Target[]
  readonly current: readonly Target[]
  readonly legacy: readonly Target[]
  readonly list: readonly Target[]
  /** Opens a session. */
  readonly listening: Target
  /** Every answer of the first target tells of it. */
  readonly workerId: string
}

/** `url`: of the service that the tokens are for. */
export async function seedMcp(sql: Sql, url: string): Promise<McpTargets> {
  const round = randomBytes(4).toString('hex')
  const seeded = await Promise.all(
    Array.from({ length: accounts }, (_, index) => seedAccount(sql, url, `bench-${round}-${index}`)),
  )
  await sql`analyze`
  const [first] = seeded
  if (!first) throw new Error('no account')
  return {
    rest: seeded.map(({ accountId, key }) => ({ path: `/v1/accounts/${accountId}/workers`, key })),
    current: seeded.map(({ token }) => ({ path: '/mcp', key: token, post: currentCall })),
    legacy: seeded.map(({ token }) => ({ path: '/mcp', key: token, post: legacyCall })),
    list: seeded.map(({ token }) => ({ path: '/mcp', key: token, post: legacyList })),
    listening: { path: '/mcp', key: first.token, post: listen },
    workerId: first.workerId,
  }
}

async function seedAccount(sql: Sql, url: string, slug: string) {
  const now = Date.now()
  const { id: accountId } = await createAccount(sql, { name: slug, slug, newId, now })
  const { key } = await createApiKey(sql, { accountId, name: 'bench', newId, now })
  const worker = { accountId, name: 'Ada', language: 'en', newId, now }
  const workers = await Promise.all(Array.from({ length: workersOfEach }, () => createWorker(sql, worker)))
  const email = `${slug}@example.com`
  const userId = await createUser(sql, { email, name: null, passwordHash: 'nobody signs in', newId, now })
  await addMember(sql, { accountId, userId, role: 'owner', now })
  const token = await grantToken(sql, { accountId, userId, resource: `${url}/mcp`, now })
  return { accountId, key, token, workerId: workers[0]?.id ?? '' }
}

type Granted = Pick<Parameters<typeof beginGrant>[1], 'accountId' | 'userId' | 'now'> & { readonly resource: string }

/** As the authorization server stores it when a code is exchanged. */
async function grantToken(sql: Sql, { accountId, userId, resource, now }: Granted): Promise<string> {
  const grantId = newId()
  const client = { clientId: 'bench', clientName: 'Bench', redirectHost: 'localhost' }
  await beginGrant(sql, { id: grantId, userId, accountId, workerId: null, ...client, scopes: ['account_admin'], now })
  const token = createToken()
  const payload = { aud: resource, scope: 'account_admin' }
  await savePayloadOfGrant(sql, { kind: 'AccessToken', id: token, grantId, payload, expiresAt: now + hour })
  return token
}

const revision = '2026-07-28'
const meta = {
  'io.modelcontextprotocol/protocolVersion': revision,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const common = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

const bodyOf = (method: string, params: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

const tool = { name: 'account_admin__list_workers', arguments: {} }
const currentCall = {
  headers: { ...common, 'mcp-protocol-version': revision, 'mcp-method': 'tools/call', 'mcp-name': tool.name },
  body: bodyOf('tools/call', { ...tool, _meta: meta }),
}
const legacyCall = { headers: { ...common, 'mcp-protocol-version': '2025-11-25' }, body: bodyOf('tools/call', tool) }
const legacyList = { headers: legacyCall.headers, body: bodyOf('tools/list', {}) }

/** Of the official SDK's stateless example, which looks at no key. */
export const exampleTargets = {
  list: [{ path: '/mcp', key: 'none', post: legacyList }],
  legacy: [
    {
      path: '/mcp',
      key: 'none',
      post: {
        headers: legacyCall.headers,
        body: bodyOf('tools/call', { name: 'start-notification-stream', arguments: { interval: 1, count: 1 } }),
      },
    },
  ],
} satisfies Pick<McpTargets, 'list' | 'legacy'>

const listen = {
  headers: { ...common, 'mcp-protocol-version': revision, 'mcp-method': 'subscriptions/listen' },
  body: bodyOf('subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: meta }),
}

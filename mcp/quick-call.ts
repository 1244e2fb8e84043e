/**
 * Owns the quick way to answer the request that comes most often: one call of a tool that needs nothing of the protocol but its result. The library
 * takes several times as long as the tool. Whatever is not to the letter as here goes to the library, which also says what is wrong with it; what
 * both answer is the same, test/mcp/quick-call.test.ts.
 */
import { isObject } from '../model/json.ts'
import { createReadyResponse } from '../net/http/ready-response.ts'
import type { Arguments } from './tools/served-tool.ts'

export type QuickCall = {
  readonly id: string | number
  readonly name: string
  readonly given: Arguments
  readonly era: 'modern' | 'legacy'
}

type Fields = Readonly<Record<string, unknown>>

const prefix = 'io.modelcontextprotocol/'
/** Of the protocol. */
export const currentRevision = '2026-07-28'
const legacy: ReadonlySet<string> = new Set(['2025-11-25', '2025-06-18', '2025-03-26'])

/** Null: the library is asked. */
export function quickCallOf({ headers }: Request, body: unknown): QuickCall | null {
  if (!isObject(body) || !isOnly(body, 'jsonrpc', 'id', 'method', 'params')) return null
  const { jsonrpc, id, method, params } = body
  const isCall = jsonrpc === '2.0' && method === 'tools/call' && (typeof id === 'string' || Number.isSafeInteger(id))
  if (!isCall || !isObject(params) || !isOnly(params, 'name', 'arguments', '_meta')) return null
  const { name, arguments: given = {}, _meta: meta } = params
  if (typeof name !== 'string' || !isObject(given) || headers.get('content-type') !== 'application/json') return null
  const era = meta === undefined ? legacyOf(headers) : modernOf(headers, meta, name)
  return era && { id: id as string | number, name, given, era }
}

function legacyOf(headers: Headers): 'legacy' | null {
  const accept = headers.get('accept') ?? ''
  const takesBoth = accept.includes('application/json') && accept.includes('text/event-stream')
  const isPlain = headers.get('mcp-method') === null && headers.get('mcp-name') === null
  return takesBoth && isPlain && legacy.has(headers.get('mcp-protocol-version') ?? '') ? 'legacy' : null
}

/** What every request of the current revision carries, and nothing more. */
function modernOf(headers: Headers, meta: unknown, name: string): 'modern' | null {
  const keys = [`${prefix}protocolVersion`, `${prefix}clientInfo`, `${prefix}clientCapabilities`] as const
  if (!isObject(meta) || !isOnly(meta, ...keys)) return null
  const [version, client, capabilities] = keys.map((key) => meta[key])
  const isSaid = version === currentRevision && isClient(client) && isObject(capabilities)
  const isMeant =
    headers.get('mcp-protocol-version') === currentRevision &&
    headers.get('mcp-method') === 'tools/call' &&
    headers.get('mcp-name') === name
  return isSaid && isMeant && Object.values(capabilities).every(isObject) ? 'modern' : null
}

const isClient = (client: unknown): boolean =>
  isObject(client) &&
  isOnly(client, 'name', 'version', 'title') &&
  Object.values(client).every((value) => typeof value === 'string') &&
  typeof client['name'] === 'string' &&
  typeof client['version'] === 'string'

/** It may lack some of them. */
const isOnly = (fields: Fields, ...names: readonly string[]): boolean =>
  Object.keys(fields).every((name) => names.includes(name))

/** `serverInfo`: told with every result of the current revision. Older clients take JSON as well as a stream. */
export function quickAnswer({ id, era }: QuickCall, result: object, serverInfo: object): Response {
  const said =
    era === 'legacy' ? result : { ...result, resultType: 'complete', _meta: { [`${prefix}serverInfo`]: serverInfo } }
  const headers = { 'content-type': 'application/json' }
  return createReadyResponse(JSON.stringify({ jsonrpc: '2.0', id, result: said }), 200, headers)
}

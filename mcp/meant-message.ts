/**
 * Owns what of a message is mended before the library sees it, and what is refused in its place: null of what may be left out reads as absent, as
 * everywhere in this service, and params that are none for a method of the protocol are the client's mistake. The library would tell that as a fault of
 * ours (-32603). docs/contract/mcp.md "Endpoint".
 */
import { z } from 'zod'
import { issuesOf } from '../model/issues.ts'
import { isObject } from '../model/json.ts'
import { currentRevision } from './quick-call.ts'

type Fields = Readonly<Record<string, unknown>>

/** Of params; null means nothing of its own there. */
const optional = ['cursor', 'arguments', '_meta']

/** What is no message comes back as it is. */
export function meantMessage(message: unknown): unknown {
  if (!isObject(message) || !('params' in message)) return message
  const { params, ...rest } = message
  if (params === null) return rest
  if (!isObject(params) || !optional.some((name) => params[name] === null)) return message
  return { ...message, params: Object.fromEntries(Object.entries(params).filter(isMeant)) }
}

const isMeant = ([name, value]: readonly [string, unknown]): boolean => value !== null || !optional.includes(name)

/** Of methods that the library answers itself; it looks well at all others. */
const ofAnyRevision: ReadonlyMap<unknown, z.ZodType> = new Map<string, z.ZodType>([
  ['tools/list', z.looseObject({ cursor: z.string().optional() })],
])
/** The current revision has no `initialize`: there it is an unknown method, whatever its params. */
const ofFormerRevisions: ReadonlyMap<unknown, z.ZodType> = new Map<string, z.ZodType>([
  ...(ofAnyRevision as ReadonlyMap<string, z.ZodType>),
  [
    'initialize',
    z.looseObject({
      protocolVersion: z.string(),
      capabilities: z.looseObject({}),
      clientInfo: z.looseObject({ name: z.string(), version: z.string() }),
    }),
  ],
])

/** Of one message, no batch. Null: the library is asked. */
export function wrongParams({ headers }: Request, message: unknown): Response | null {
  if (!isObject(message)) return null
  const { jsonrpc, id, method, params = {} } = message as Fields
  const shapes = headers.get('mcp-protocol-version') === currentRevision ? ofAnyRevision : ofFormerRevisions
  const shape = jsonrpc === '2.0' && isId(id) && isObject(params) ? shapes.get(method) : undefined
  const parsed = shape?.safeParse(params)
  if (!parsed || parsed.success) return null
  const words = issuesOf(parsed.error, params).map(({ path, message: fault }) => `${path} ${fault}`)
  const error = { code: -32602, message: `Invalid params of ${String(method)}: ${words.join(', ')}.` }
  return Response.json({ jsonrpc: '2.0', id, error })
}

const isId = (id: unknown): id is string | number => typeof id === 'string' || Number.isSafeInteger(id)

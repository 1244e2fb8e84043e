/**
 * Owns the entry of the audit log that a request leaves. An entry of a change of configuration is begun before the change, with its path; what came of
 * it is added afterwards, with the masked body. A request that is refused on the way is noted as well. docs/contract/rest.md "Audit log".
 */
import type { Context } from 'hono'
import type { AuditEntry, Beginning, Ending } from '../model/audit.ts'
import { deadline, goOn } from '../model/deadline.ts'
import { toId, type CallId } from '../model/ids.ts'
import type { Json } from '../model/json.ts'
import type { AuditLog } from '../store/audit.ts'
import type { ApiDeps, ApiEnv, Middleware } from './deps.ts'

type Asked = Context<ApiEnv>

/** Ms that an answer waits for the end of its entry; the entry waits for the database itself. */
const patience = 5_000
/** Longer bodies are texts of documents. */
const mostRead = 256 * 1024

export function createAuditing({ clock, log }: Pick<ApiDeps, 'clock' | 'log'>, audit: AuditLog) {
  return (action: string): { readonly noteEnd: Middleware; readonly begin: Middleware } => ({
    async noteEnd(c, next) {
      await next()
      const ending = await endingOf(c, action)
      const { endEntry } = c.var
      const stored = endEntry ? endEntry(ending) : audit.note({ ...beginningOf(c, action), ...ending })
      await deadline(clock, patience, stored, goOn).catch((error: unknown) =>
        log.error('an audit entry was lost', { requestId: c.env.requestId, action, error }),
      )
    },
    async begin(c, next) {
      c.set('endEntry', await audit.begin(beginningOf(c, action)))
      return next()
    },
  })
}

const beginningOf = (c: Asked, action: string): Beginning => ({
  accountId: c.get('accountId'),
  actor: c.get('actor'),
  action,
  arguments: pathOf(c),
  requestId: c.env.requestId,
})

/** Ids of the path; the account is the entry's own. */
function pathOf(c: Asked): { readonly [name: string]: Json } {
  const { accountId: _, ...named } = c.req.param() as Record<string, string>
  return named
}

async function endingOf(c: Asked, action: string): Promise<Ending & Pick<AuditEntry, 'arguments'>> {
  const body = await bodyOf(c)
  const answer = c.res.headers.get('content-type')?.startsWith('application/json')
    ? ((await c.res.clone().json()) as { readonly [name: string]: Json })
    : {}
  const named = pathOf(c)
  const isDone = c.res.status < 400
  const created = isDone && !('phoneCallId' in named) && c.req.method === 'POST' ? textIn(answer, 'id') : undefined
  const calls = [
    named['phoneCallId'],
    (body as { readonly phoneCallId?: Json } | null)?.phoneCallId,
    answer['callId'],
    action === 'createPhoneCall' ? answer['id'] : undefined,
  ]
  const callIds = isDone
    ? [...new Set(calls.flatMap((id) => (typeof id === 'string' ? (toId<'call'>(id) ?? []) : [])))]
    : []
  return {
    result: isDone ? 'success' : 'error',
    ...(!isDone && { errorCode: textIn(answer, 'type') ?? 'INTERNAL' }),
    callIds: callIds as CallId[],
    arguments: {
      ...named,
      ...(body !== null && { body }),
      ...(created !== undefined && { created: { [idNameOf(action)]: created } }),
    },
  }
}

const textIn = (answer: { readonly [name: string]: Json }, name: string): string | undefined => {
  const value = answer[name]
  return typeof value === 'string' ? value : undefined
}

/** A person's id is masked by its name. */
const idNameOf = (action: string): string => (action === 'createPerson' ? 'personId' : 'id')

/** Its client went away, or it was too long. Whoever needed it has answered so. */
const brokenOff = (): null => null

/** Null: there is none, it was never looked at, or it did not come whole. It is not waited for: a request may have been refused before it came. */
async function bodyOf(c: Asked): Promise<Json> {
  const read = c.req.bodyCache.arrayBuffer
  if (!read) return null
  // The library keeps a promise of it, whatever its types say.
  const bytes = await (read as unknown as Promise<ArrayBuffer>).catch(brokenOff)
  if (bytes === null) return null
  if (bytes.byteLength > mostRead) return { content: '' }
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Json
  } catch {
    // A file, or what was refused as no JSON.
    return { content: '' }
  }
}

/**
 * Owns what stands in front of every route that asks for a key: the scope that it declares, the account of its path, and the audit log of what it
 * changes. A route that declares no scope, or both a scope and no key, fails when the API is made: it is never open by accident.
 * docs/contract/rest.md "Keys and accounts".
 */
import { missingScopes, type KeyScope } from '../model/api-key.ts'
import { toId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import type { Role } from '../model/user.ts'
import type { AuditLog } from '../store/audit.ts'
import { createAuditing } from './audit-request.ts'
import { ownAccountOnly } from './authenticate.ts'
import type { Api, ApiDeps, Middleware } from './deps.ts'
import { auditedMark, ownersMark, requiredScope } from './openapi-document.ts'
import { recordingsPath } from './recording-link.ts'

/** What this reads of a route. */
type Declared = {
  readonly method: string
  readonly path: string
  readonly operationId?: string
  readonly security?: readonly object[]
  readonly middleware?: Middleware | readonly Middleware[]
  readonly [requiredScope]?: KeyScope
  readonly [ownersMark]?: true
  readonly [auditedMark]?: true
}

/** Before any route is added. The function that it answers is called when all are there. */
export function guardRoutes(app: Api, deps: Pick<ApiDeps, 'clock' | 'log'>, audit: AuditLog): () => void {
  const add = app.openapi as (route: object, ...others: unknown[]) => unknown
  const guarded = new Set<string>()
  const addGuarded = (route: Declared, ...others: unknown[]): unknown => {
    const { method, path, security = [] } = route
    const scope = route[requiredScope]
    if (security.length > 0 !== (scope !== undefined))
      throw new Error(`${method} ${path}: what asks for a key declares the scope it needs, and nothing else does`)
    if (scope === undefined) return add(route, ...others)
    guarded.add(nameOf(method, path.replace(/\{(\w+)\}/g, ':$1')))
    const own = [route.middleware ?? []].flat()
    return add({ ...route, middleware: [...guardsOf(route, scope, createAuditing(deps, audit)), ...own] }, ...others)
  }
  app.openapi = addGuarded as typeof app.openapi
  return () => {
    const open = app.routes.find(
      ({ method, path }) =>
        method !== 'ALL' &&
        path.startsWith('/v1/') &&
        !path.startsWith(`${recordingsPath}/`) &&
        !guarded.has(nameOf(method, path)),
    )
    if (open) throw new Error(`${open.method} ${open.path}: a route that needs a key must declare its scope`)
  }
}

const nameOf = (method: string, path: string): string => `${method.toUpperCase()} ${path}`

function guardsOf(route: Declared, scope: KeyScope, auditing: ReturnType<typeof createAuditing>): Middleware[] {
  const { method, path, operationId = '' } = route
  const inAccount = path.includes('{accountId}') ? [ownAccountOnly] : []
  const owners = route[ownersMark] ? [requireOwner] : []
  const checks = [requireScope(scope, mayActOnItself(route)), ...owners, ...inAccount]
  if ((method === 'get' || scope === 'read') && !route[auditedMark]) return checks
  const { noteEnd, begin } = auditing(operationId)
  // What places a call or ends one is told by the call itself: only what is configured needs its entry before.
  return [noteEnd, ...checks, ...(scope === 'manage' ? [begin] : [])]
}

/** A leaked key can always be made harmless by who found it. */
const mayActOnItself = ({ method, path }: Declared): boolean => method === 'delete' && path.endsWith('/{keyId}')

function requireScope(scope: KeyScope, mayBeItself: boolean): Middleware {
  return async (c, next) => {
    if (c.get('scopes').includes(scope)) return next()
    if (mayBeItself && c.get('role') === null && toId<'api_key'>(c.req.param('keyId') ?? '') === c.get('keyId'))
      return next()
    const role = c.get('role')
    if (role !== null) throw insufficientRole(role)
    throw insufficientScope([scope], c.get('scopes'))
  }
}

/** A key has no role. */
const requireOwner: Middleware = async (c, next) => {
  const role = c.get('role')
  if (role === null || role === 'owner') return next()
  throw new Problem('INSUFFICIENT_SCOPE', `This needs the role owner; yours in this account is ${role}.`)
}

/** Throws Problem INSUFFICIENT_SCOPE where a key would reach beyond itself. */
export function requireWithin(held: readonly KeyScope[], wanted: readonly KeyScope[]): void {
  const missing = missingScopes(held, wanted)
  if (missing.length > 0) throw insufficientScope(missing, held)
}

const insufficientRole = (role: Role): Problem =>
  new Problem('INSUFFICIENT_SCOPE', `This needs the role operator or owner; yours in this account is ${role}.`)

function insufficientScope(needed: readonly KeyScope[], held: readonly KeyScope[]): Problem {
  const scopes = needed.length === 1 ? 'the scope' : 'the scopes'
  return new Problem(
    'INSUFFICIENT_SCOPE',
    `This needs a key with ${scopes} ${needed.join(', ')}; this key has ${held.join(', ')}.`,
  )
}

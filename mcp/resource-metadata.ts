/** Owns the document by which a client finds out who gives tokens for the endpoint. RFC 9728. */
import { mcpScopes } from '../model/mcp-access.ts'
import { methodNotAllowed, notFound } from '../model/problem.ts'

export const mcpPath = '/mcp'
export const wellKnownPath = '/.well-known/oauth-protected-resource'

/** Its identifier, which tokens are made for (RFC 8707). `publicUrl` has no slash at its end. */
export const resourceOf = (publicUrl: string): string => `${publicUrl}${mcpPath}`

/** Section 3.1: the well-known part stands between host and path. */
export function metadataUrlOf(publicUrl: string): string {
  const { origin, pathname } = new URL(resourceOf(publicUrl))
  return `${origin}${wellKnownPath}${pathname}`
}

/** At the path without and with the path of the resource. Any page may read it. */
export function resourceMetadata(request: Request, publicUrl: string): Response {
  const { pathname } = new URL(request.url)
  const known = [wellKnownPath, wellKnownPath + mcpPath, new URL(metadataUrlOf(publicUrl)).pathname]
  if (!known.includes(pathname)) throw notFound()
  const forPages = { 'access-control-allow-origin': '*', 'access-control-allow-methods': 'GET, HEAD, OPTIONS' }
  if (request.method === 'OPTIONS')
    return new Response(null, { status: 204, headers: { ...forPages, 'access-control-allow-headers': '*' } })
  if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD', 'OPTIONS'])
  const document = {
    resource: resourceOf(publicUrl),
    authorization_servers: [publicUrl],
    scopes_supported: mcpScopes,
    bearer_methods_supported: ['header'],
    resource_name: 'Parley',
  }
  return Response.json(document, { headers: { ...forPages, 'cache-control': 'public, max-age=300' } })
}

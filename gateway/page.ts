/** Owns the demonstration page and the browser client as static files, from memory, under a strict content security policy. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createReadyResponse } from '../net/http/ready-response.ts'

type PageFile = {
  readonly body: Uint8Array<ArrayBuffer>
  readonly type: string
  readonly etag: string
  /** A module that pages of other origins import. */
  readonly isShared: boolean
}

const files = [
  { path: '/', file: 'index.html', type: 'text/html; charset=utf-8' },
  { path: '/page.js', file: 'page.js', type: 'text/javascript; charset=utf-8' },
  { path: '/page.css', file: 'page.css', type: 'text/css; charset=utf-8' },
  { path: '/parley-client.js', file: 'parley-client.js', type: 'text/javascript; charset=utf-8' },
  { path: '/parley-path.js', file: 'parley-path.js', type: 'text/javascript; charset=utf-8' },
  { path: '/parley-signaling.js', file: 'parley-signaling.js', type: 'text/javascript; charset=utf-8' },
  { path: '/parley-sound.js', file: 'parley-sound.js', type: 'text/javascript; charset=utf-8' },
] as const

/** The client and what it imports. The rest is the demonstration page. */
const shared: readonly string[] = ['parley-client.js', 'parley-path.js', 'parley-signaling.js', 'parley-sound.js']

const methods = 'GET, HEAD, OPTIONS'

/** Reads the files once. Null for any other path or method, which the API answers. */
export function createPage(): (request: Request) => Response | null {
  const pages = new Map(files.map(({ path, file, type }) => [path as string, readPage(file, type)]))
  return (request) => {
    const page = pages.get(new URL(request.url).pathname)
    if (page?.isShared && request.method === 'OPTIONS')
      return new Response(null, { status: 204, headers: preflightOf() })
    if (!page || (request.method !== 'GET' && request.method !== 'HEAD')) return null
    const headers = headersOf(page, request)
    if (isKnown(request.headers.get('if-none-match'), page.etag)) return new Response(null, { status: 304, headers })
    return request.method === 'HEAD' ? new Response(null, { headers }) : createReadyResponse(page.body, 200, headers)
  }
}

function readPage(file: string, type: string): PageFile {
  const body = new Uint8Array(readFileSync(new URL(`client/${file}`, import.meta.url)))
  const digest = createHash('sha256').update(body).digest('base64url').slice(0, 27)
  return { body, type, etag: `"${digest}"`, isShared: shared.includes(file) }
}

/** RFC 9110 section 13.1.2: any of a list, weak ones (a proxy that compresses makes them) too. */
const isKnown = (asked: string | null, etag: string): boolean =>
  asked !== null && asked.split(',').some((one) => one.trim().replace(/^W\//, '') === etag || one.trim() === '*')

/** The client is no secret, and is asked for without cookies. */
const anyOrigin = { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' }

const preflightOf = (): Record<string, string> => ({
  ...anyOrigin,
  'access-control-allow-methods': methods,
  'access-control-allow-headers': '*',
  'access-control-max-age': '86400',
  allow: methods,
})

const headersOf = ({ type, etag, isShared }: PageFile, request: Request): Record<string, string> => ({
  ...(isShared && anyOrigin),
  'content-type': type,
  etag,
  // Always asked again: a deploy shows at once, and 304 costs next to nothing.
  'cache-control': 'no-cache',
  'content-security-policy': policyOf(request),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'permissions-policy': 'microphone=(self), camera=(), geolocation=()',
  'cross-origin-opener-policy': 'same-origin',
})

/** The signaling socket is on the same host; 'self' does not cover ws: in every browser. */
function policyOf(request: Request): string {
  const { host } = new URL(request.url)
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `connect-src 'self' ws://${host} wss://${host}`,
    "media-src 'self' blob:",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

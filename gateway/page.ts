/** Owns the demonstration page and the browser client as static files, from memory, under a strict content security policy. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createReadyResponse } from '../net/http/ready-response.ts'

type PageFile = { readonly body: Uint8Array<ArrayBuffer>; readonly type: string; readonly etag: string }

const files = [
  { path: '/', file: 'index.html', type: 'text/html; charset=utf-8' },
  { path: '/page.js', file: 'page.js', type: 'text/javascript; charset=utf-8' },
  { path: '/page.css', file: 'page.css', type: 'text/css; charset=utf-8' },
  { path: '/parley-client.js', file: 'parley-client.js', type: 'text/javascript; charset=utf-8' },
  { path: '/parley-path.js', file: 'parley-path.js', type: 'text/javascript; charset=utf-8' },
  { path: '/parley-sound.js', file: 'parley-sound.js', type: 'text/javascript; charset=utf-8' },
] as const

/** Reads the files once. Null for any other path or method, which the API answers. */
export function createPage(): (request: Request) => Response | null {
  const pages = new Map(files.map(({ path, file, type }) => [path as string, readPage(file, type)]))
  return (request) => {
    const page = pages.get(new URL(request.url).pathname)
    if (!page || (request.method !== 'GET' && request.method !== 'HEAD')) return null
    const headers = headersOf(page, request)
    if (request.headers.get('if-none-match') === page.etag) return new Response(null, { status: 304, headers })
    return request.method === 'HEAD' ? new Response(null, { headers }) : createReadyResponse(page.body, 200, headers)
  }
}

function readPage(file: string, type: string): PageFile {
  const body = new Uint8Array(readFileSync(new URL(`client/${file}`, import.meta.url)))
  const digest = createHash('sha256').update(body).digest('base64url').slice(0, 27)
  return { body, type, etag: `"${digest}"` }
}

const headersOf = ({ type, etag }: PageFile, request: Request): Record<string, string> => ({
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

/** Owns the demonstration page and the browser client as static files, from memory, under a strict content security policy. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { knowsEtag } from '../net/http/known-etag.ts'
import { createReadyResponse } from '../net/http/ready-response.ts'

type PageFile = {
  readonly body: Uint8Array<ArrayBuffer>
  readonly type: string
  readonly etag: string
  /** A module that pages of other origins import. */
  readonly isShared: boolean
}

const script = 'text/javascript; charset=utf-8'

const own = [
  { path: '/', files: ['client/index.html'], type: 'text/html; charset=utf-8', isShared: false },
  { path: '/page.js', files: ['client/page.js'], type: script, isShared: false },
  { path: '/page-parts.js', files: ['client/page-parts.js'], type: script, isShared: false },
  { path: '/page-summary.js', files: ['client/page-summary.js'], type: script, isShared: false },
  {
    path: '/page.css',
    files: ['../look/colours.css', 'client/page.css'],
    type: 'text/css; charset=utf-8',
    isShared: false,
  },
] as const

/**
 * The browser SDK under the names of its package, and at the root as well: modules that were imported from there before, and the one address that
 * integrators remember.
 */
function listSdk() {
  const modules = readdirSync(new URL('../sdk', import.meta.url)).filter((name) => name.endsWith('.js'))
  return modules.flatMap((name) =>
    ['/', '/sdk/'].map((folder) => ({
      path: `${folder}${name}`,
      files: [`../sdk/${name}`],
      type: script,
      isShared: true,
    })),
  )
}

const methods = 'GET, HEAD, OPTIONS'

/** Reads the files once. Null for any other path or method, which the API answers. */
export function createPage(): (request: Request) => Response | null {
  const pages = new Map([...own, ...listSdk()].map(({ path, ...page }) => [path as string, readPage(page)]))
  return (request) => {
    const page = pages.get(new URL(request.url).pathname)
    if (page?.isShared && request.method === 'OPTIONS')
      return new Response(null, { status: 204, headers: preflightOf() })
    if (!page || (request.method !== 'GET' && request.method !== 'HEAD')) return null
    const headers = headersOf(page, request)
    if (knowsEtag(request.headers.get('if-none-match'), page.etag)) return new Response(null, { status: 304, headers })
    return request.method === 'HEAD' ? new Response(null, { headers }) : createReadyResponse(page.body, 200, headers)
  }
}

type Read = Pick<PageFile, 'type' | 'isShared'> & { readonly files: readonly string[] }

function readPage({ files, type, isShared }: Read): PageFile {
  const body = new Uint8Array(Buffer.concat(files.map((file) => readFileSync(new URL(file, import.meta.url)))))
  const digest = createHash('sha256').update(body).digest('base64url').slice(0, 27)
  return { body, type, etag: `"${digest}"`, isShared }
}

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

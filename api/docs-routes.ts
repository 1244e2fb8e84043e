/** Owns the reference page at /docs: the OpenAPI document for people, who may try requests there with a key of theirs. From memory. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { knowsEtag } from '../net/http/known-etag.ts'
import { createReadyResponse } from '../net/http/ready-response.ts'
import type { Api } from './deps.ts'

type DocsFile = { readonly body: Uint8Array<ArrayBuffer>; readonly type: string; readonly etag: string }

/** Addresses in the page are relative, so that it works behind a proxy that adds a path. */
const files = {
  '/docs': { type: 'text/html; charset=utf-8', url: () => new URL('docs/page.html', import.meta.url) },
  '/docs/start.js': { type: 'text/javascript; charset=utf-8', url: () => new URL('docs/start.js', import.meta.url) },
  '/docs/swagger-ui-bundle.js': {
    type: 'text/javascript; charset=utf-8',
    url: () => new URL(import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js')),
  },
  '/docs/swagger-ui.css': {
    type: 'text/css; charset=utf-8',
    url: () => new URL(import.meta.resolve('swagger-ui-dist/swagger-ui.css')),
  },
  '/docs/favicon.png': {
    type: 'image/png',
    url: () => new URL(import.meta.resolve('swagger-ui-dist/favicon-32x32.png')),
  },
} as const

/** Images: the style sheet carries some of its own. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Each file is read when it is asked for first: they are two megabytes, and most processes are never asked. */
export function addDocsRoutes(app: Api): void {
  for (const [path, { type, url }] of Object.entries(files)) {
    let file: DocsFile | null = null
    app.get(path, (c) => answer(c.req.raw, (file ??= read(url(), type))))
  }
}

function read(url: URL, type: string): DocsFile {
  const body = new Uint8Array(readFileSync(url))
  return { body, type, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"` }
}

function answer(request: Request, { body, type, etag }: DocsFile): Response {
  const headers = { 'content-type': type, etag, 'cache-control': 'no-cache', 'content-security-policy': policy }
  if (knowsEtag(request.headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers })
  return createReadyResponse(body, 200, headers)
}

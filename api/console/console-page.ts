/** Owns the one page of the console and its policy: no script but its own modules, and no text that becomes markup. docs/security.md "Console". */
import { createHash } from 'node:crypto'
import { createReadyResponse } from '../../net/http/ready-response.ts'
import type { ConsoleFiles } from './console-files.ts'

/** The same bytes for everybody: who is signed in is asked by the page. `signalingUrl` is where it joins calls. */
export function createConsolePage({ root, importMap, first }: ConsoleFiles): (signalingUrl: string) => Response {
  const body = documentOf(root, importMap, first)
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'cross-origin-opener-policy': 'same-origin',
    'permissions-policy': 'microphone=(self), camera=(), geolocation=()',
  }
  return (signalingUrl) =>
    createReadyResponse(body, 200, {
      ...headers,
      'content-security-policy': policyOf(importMap, socketsOf(signalingUrl)),
    })
}

/** Browsers do not all count sockets of the same host as `'self'`. Whatever is no plain host is left out. */
function socketsOf(signalingUrl: string): string {
  const { protocol, host } = new URL(signalingUrl)
  return /^[\w.:[\]-]+$/.test(host) ? ` ${protocol}//${host}` : ''
}

/** The import map is the only script in the page, and is let in by its hash. */
const policyOf = (importMap: string, sockets: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' 'sha256-${createHash('sha256').update(importMap).digest('base64')}'`,
    "style-src 'self'",
    `connect-src 'self'${sockets}`,
    "img-src 'self' data:",
    "media-src 'self' blob:",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')

/** Later ones may change what earlier ones say. */
const styles = ['colours', 'console', 'controls', 'lists', 'call', 'ladder', 'worker']

const documentOf = (root: string, importMap: string, first: readonly string[]): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<title>Parley console</title>
${styles.map((name) => `<link rel="stylesheet" href="${root}${name}.css">`).join('\n')}
<script type="importmap">${importMap}</script>
${first.map((name) => `<link rel="modulepreload" href="${root}${name}">`).join('\n')}
<script type="module" src="${root}main.js"></script>
</head>
<body>
<div id="console"><noscript><p class="empty">The console needs JavaScript. Everything it shows can be had by the API as well: <a href="/docs">its reference</a>.</p></noscript></div>
</body>
</html>
`

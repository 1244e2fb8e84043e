/**
 * Owns the frame of the pages for people: plain HTML without scripts, under a policy that lets nothing in but the page's own style, and forms
 * go nowhere but where the page says. docs/security.md "Pages and sign-in".
 */
import { createHash } from 'node:crypto'
import { html, htmlTextOf, type Html } from './html.ts'
import { style } from './page-style.ts'

export type Page = {
  readonly title: string
  readonly body: Html
  readonly status?: number
  /**
   * Where its forms may lead besides this service, redirects behind them included (CSP 3 section 6.4.3): origins like `https://client.example`, or
   * schemes like `cursor:`.
   */
  readonly formAction?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
  /** Values of Set-Cookie. */
  readonly cookies?: readonly string[]
}

const styleHash = createHash('sha256').update(style).digest('base64')

export function renderPage(page: Page): Response {
  const { title, body, status = 200, headers = {}, cookies = [] } = page
  const response = new Response(documentOf(title, body), {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': policyOf(page),
      ...headers,
    },
  })
  for (const cookie of cookies) response.headers.append('set-cookie', cookie)
  return response
}

/** After a form: the browser asks for the next page by GET. */
export function seeOther(location: string, cookies: readonly string[] = []): Response {
  const response = new Response(null, { status: 303, headers: { location, 'cache-control': 'no-store' } })
  for (const cookie of cookies) response.headers.append('set-cookie', cookie)
  return response
}

/** What could end the directive, or begin another one, is no source. */
const source = /^(?:[a-z][a-z\d+.-]*:|https?:\/\/[\w.:[\]-]+)$/i

function policyOf({ formAction = [] }: Page): string {
  const wrong = formAction.find((one) => !source.test(one))
  if (wrong !== undefined) throw new TypeError(`no source of a policy: ${wrong}`)
  return [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    'img-src data:',
    `form-action ${["'self'", ...formAction].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

/** With a policy of `no-referrer`, browsers send `Origin: null` with our own forms (Fetch section 3.1), and they could not be told from others'. */
const documentOf = (title: string, body: Html): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="same-origin">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<title>${htmlTextOf(html`${title} · Parley`)}</title>
<style>${style}</style>
</head>
<body>
<main>
<p class="brand">Parley</p>
${htmlTextOf(
  html`<h1>${title}</h1>
    ${body}`,
)}
</main>
</body>
</html>
`

export type Field = {
  readonly name: string
  readonly label: string
  readonly type: 'text' | 'email' | 'password'
  readonly autocomplete: string
  readonly value?: string
  readonly hint?: string
  /** What is wrong with it. */
  readonly error?: string | undefined
  readonly maxLength?: number
}

/** Named, with what is wrong with it said beside it and to screen readers (WCAG 2.2, 3.3.1). */
export function fieldOf(field: Field): Html {
  const { name, label, type, autocomplete, value = '', hint, error, maxLength = 1_000 } = field
  const described = [hint !== undefined && `${name}-hint`, error !== undefined && `${name}-error`].filter(Boolean)
  return html`<div class="field">
    <label for="${name}">${label}</label>
    ${hint !== undefined && html`<p class="hint" id="${name}-hint">${hint}</p>`}
    <input
      id="${name}"
      name="${name}"
      type="${type}"
      value="${value}"
      autocomplete="${autocomplete}"
      maxlength="${maxLength}"
      required
      autocapitalize="none"
      spellcheck="false"
      aria-describedby="${described.join(' ')}"
      aria-invalid="${error === undefined ? 'false' : 'true'}"
    />
    ${error !== undefined && html`<p class="error" id="${name}-error">${error}</p>`}
  </div>`
}

/** `csrf`: see form-guard.ts. */
export const formOf = ({
  action,
  csrf,
  fields,
}: {
  readonly action: string
  readonly csrf: string
  readonly fields: Html
}): Html =>
  html`<form method="post" action="${action}">
    <input type="hidden" name="csrf" value="${csrf}" />
    ${fields}
  </form>`

/** What went wrong, or right, with the whole of a form. */
export const noticeOf = (kind: 'error' | 'success', text: string): Html =>
  html`<p class="notice ${kind}" role="${kind === 'error' ? 'alert' : 'status'}">${text}</p>`

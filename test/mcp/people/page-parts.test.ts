/** What the pages of people stand on: escaping, the frame and its policy, forms, cookies, and where a person may be sent. docs/users.md, docs/security.md "Pages and sign-in". */
import { createHash } from 'node:crypto'
import { test } from 'tap'
import { createAccessLog } from '../../../api/access-log.ts'
import { createPageFetch } from '../../../mcp/people/answer-page.ts'
import { readCookie, removeCookie, setCookie } from '../../../mcp/people/cookies.ts'
import { createFormGuard, csrfOf } from '../../../mcp/people/form-guard.ts'
import { html, htmlTextOf } from '../../../mcp/people/html.ts'
import { readPageForm } from '../../../mcp/people/page-form.ts'
import { fieldOf, renderPage } from '../../../mcp/people/page.ts'
import { pathToReturnTo, signInUrl } from '../../../mcp/people/return-to.ts'
import { isGivenAway, Password, UserEmail, UserName } from '../../../model/user.ts'
import { Problem } from '../../../model/problem.ts'
import { createHandClock } from '../../fake/hand-clock.ts'
import { createQuietLog } from '../../fake/quiet-log.ts'
import { createRandom } from '../../fake/random.ts'

const write = (...given: Parameters<typeof html>): string => htmlTextOf(html(...given))

test('everything that is put into HTML is escaped, unless it is HTML of the template itself', (t) => {
  const evil = `<script>alert(1)</script>&"'\``
  const safe = '&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;&#96;'
  t.equal(write`<p>${evil}</p>`, `<p>${safe}</p>`)
  t.equal(write`<a title="${evil}">`, `<a title="${safe}">`)
  t.equal(
    write`<ul>${[evil, html`<li>${evil}</li>`, [1, null, undefined, false]]}</ul>`,
    `<ul>${safe}<li>${safe}</li>1</ul>`,
  )
  t.equal(write`${html`<b>${'&amp;'}</b>`}`, '<b>&amp;amp;</b>', 'once and no more')
  t.throws(() => write`<a title=${evil}>`, /quotes/)
  const shaped = JSON.parse('{"html":"<script>","Symbol(html)":"<script>"}') as never
  t.throws(() => write`${shaped}`, 'what came as JSON is no HTML')
  t.end()
})

test('a page has no scripts, only its own style by hash, and forms that lead where it says', async (t) => {
  const page = renderPage({
    title: '<x>',
    body: html`<p>${'"'}</p>`,
    formAction: ['https://client.example:8443', 'cursor:'],
  })
  const text = await page.text()
  const policy = page.headers.get('content-security-policy') ?? ''
  const style = /<style>([^]*)<\/style>/.exec(text)?.[1] ?? ''
  t.match(policy, `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`)
  t.match(policy, "default-src 'none'")
  t.match(policy, "frame-ancestors 'none'")
  t.match(policy, "form-action 'self' https://client.example:8443 cursor:;")
  t.notMatch(policy, /script-src|unsafe|\*/)
  t.notMatch(text, /<script|<x>|style="| on\w+=/)
  t.match(text, '<html lang="en">')
  t.equal(page.headers.get('cache-control'), 'no-store')
  for (const source of [
    "x; script-src 'unsafe-inline'",
    'https://a.example https://b.example',
    "'unsafe-eval'",
    '*',
    '',
  ])
    t.throws(() => renderPage({ title: '', body: html``, formAction: [source] }), source)
})

test('a field names itself, and what is wrong with it, to screen readers too', (t) => {
  const field = { name: 'email', label: 'E-mail', type: 'email', autocomplete: 'username' } as const
  const wrong = htmlTextOf(fieldOf({ ...field, value: '"><b>', error: 'No <address>.' }))
  t.match(wrong, '<label for="email">E-mail</label>')
  t.match(wrong, 'value="&quot;&gt;&lt;b&gt;"')
  t.match(wrong, /aria-describedby="email-error"\s+aria-invalid="true"/)
  t.match(wrong, '<p class="error" id="email-error">No &lt;address&gt;.</p>')
  t.match(htmlTextOf(fieldOf(field)), 'aria-invalid="false"')
  t.end()
})

const formRequest = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  new Request('http://host.example/sign-in', {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  })
const problemOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => null,
    (error: unknown) => (error instanceof Problem ? error.type : error),
  )

test('a form is read as browsers send it, and nothing else', async (t) => {
  const form = await readPageForm(
    formRequest('a=1&b=x%26%3D+%C3%A9&c&b2=&scope=x&scope=y', {
      'content-type': 'application/x-www-form-urlencoded;charset=UTF-8',
    }),
  )
  t.same(['a', 'b', 'c', 'b2', 'none'].map(form.one), ['1', 'x&= é', '', '', null])
  t.same(form.all('scope'), ['x', 'y'])
  t.throws(() => form.one('scope'), { name: 'Problem', type: 'VALIDATION_FAILED' }, 'a field that stands twice is none')
  const wrong = {
    'a=%00': 'VALIDATION_FAILED',
    'a=%ff': 'VALIDATION_FAILED',
    'a=%zz': 'VALIDATION_FAILED',
    'a=%': 'VALIDATION_FAILED',
    '\u0000=1': 'VALIDATION_FAILED',
    [`a=${'x'.repeat(16_384)}`]: 'PAYLOAD_TOO_LARGE',
    [Array.from({ length: 300 }, () => 'a=1').join('&')]: 'VALIDATION_FAILED',
  }
  for (const [body, type] of Object.entries(wrong))
    t.equal(await problemOf(readPageForm(formRequest(body))), type, body.slice(0, 20))
  t.equal(await problemOf(readPageForm(formRequest(new Uint8Array([0x61, 0x3d, 0xff])))), 'VALIDATION_FAILED')
  for (const type of [
    'application/json',
    'text/plain',
    'multipart/form-data; boundary=x',
    '',
    'application/x-www-form-urlencodedx',
  ])
    t.equal(await problemOf(readPageForm(formRequest('a=1', { 'content-type': type }))), 'UNSUPPORTED_MEDIA_TYPE', type)
  const announced = formRequest('a=1', { 'content-length': '1000000' })
  t.equal(await problemOf(readPageForm(announced)), 'PAYLOAD_TOO_LARGE')
  t.notOk(announced.bodyUsed, 'without a look at it')
})

test('a person is sent back to paths of this service only', (t) => {
  const good = [
    '/',
    '/account',
    '/grants?x=1',
    '/oauth/authorize?client_id=a&redirect_uri=https%3A%2F%2Fc.example%2F&state=%5C',
    '/a//b',
    '/%2f%2fevil.example',
    '/%5cevil.example',
  ]
  for (const path of good) t.equal(pathToReturnTo(path), path)
  const evil = [
    null,
    '',
    'account',
    'https://evil.example/',
    'HTTPS:evil.example',
    'javascript:alert(1)',
    '//evil.example',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '\t//evil.example',
    '/\n/evil.example',
    '/\r\nset-cookie: a=b',
    ' /account',
    '/..//evil.example',
    '/.//evil.example',
    '/a/..//evil.example',
    '/%2e//evil.example',
    '/é',
    `/${'a'.repeat(9_000)}`,
  ]
  for (const path of evil) t.equal(pathToReturnTo(path), null, String(path).slice(0, 40))
  t.equal(signInUrl('/a?b=c&d=e#f'), '/sign-in?returnTo=%2Fa%3Fb%3Dc%26d%3De%23f')

  const random = createRandom(7)
  const pieces = ['/', '\\', '.', '..', '%2e', '%2f', '@', ':', 'evil.example', '\t', '?', '#', 'a', '//']
  for (let count = 0; count < 20_000; count++) {
    const text = `/${Array.from({ length: 6 }, () => random.pick(pieces)).join('')}`
    const path = pathToReturnTo(text)
    if (path === null) continue
    if (new URL(path, 'https://host.example').host !== 'host.example') t.fail(JSON.stringify(text))
  }
  t.end()
})

test('cookies are of this host alone behind TLS, and no page reads them', (t) => {
  t.equal(setCookie('parley_session', 'x', true), '__Host-parley_session=x; Path=/; HttpOnly; SameSite=Lax; Secure')
  t.equal(setCookie('parley_session', 'x', false), 'parley_session=x; Path=/; HttpOnly; SameSite=Lax')
  t.match(removeCookie('parley_form', true), /^__Host-parley_form=; .*Max-Age=0$/)
  const withCookie = (cookie: string) => new Request('http://host.example/', { headers: { cookie } })
  t.equal(readCookie(withCookie('a=b; parley_session=x; c'), 'parley_session', false), 'x')
  t.equal(
    readCookie(withCookie('parley_session=x'), 'parley_session', true),
    null,
    'a plain one is not taken behind TLS',
  )
  t.equal(readCookie(withCookie('xparley_session=x; parley_sessionx=y'), 'parley_session', false), null)
  t.equal(
    readCookie(withCookie('parley_session=x; parley_session=y'), 'parley_session', false),
    null,
    'of two nobody knows whose they are',
  )
  t.end()
})

test('a form counts when the browser says that it is ours, and carries the token of its session', (t) => {
  const guard = createFormGuard(null)
  const [token, csrf] = ['session token', csrfOf('session token')]
  t.notMatch(csrf, token)
  const refused = (
    headers: Record<string, string>,
    given: string | null = csrf,
    by = guard,
    url = 'http://host.example:8080/x',
  ) => {
    try {
      by.checkCsrf(new Request(url, { method: 'POST', headers }), { one: () => given }, { csrf })
      return false
    } catch (error) {
      return error instanceof Problem && error.type === 'ORIGIN_NOT_ALLOWED'
    }
  }
  const own = 'http://host.example:8080'
  const good = [
    {},
    { origin: own },
    { origin: own, 'sec-fetch-site': 'same-origin' },
    { origin: 'null', 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
  ]
  for (const headers of good) t.notOk(refused(headers), JSON.stringify(headers))
  const evil = [
    { origin: 'http://evil.example' },
    { origin: 'http://host.example' },
    { origin: 'https://host.example:8080' },
    { origin: 'null' },
    { origin: '' },
    { origin: own, 'sec-fetch-site': 'same-site' },
    { origin: own, 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'cross-site' },
  ]
  for (const headers of evil) t.ok(refused(headers), JSON.stringify(headers))
  for (const given of [null, '', csrfOf('other'), `${csrf}x`, token])
    t.ok(refused({ origin: own }, given), String(given))

  const behindProxy = createFormGuard('https://calls.example/')
  t.ok(behindProxy.isSecure(new Request('http://calls.example/')))
  t.notOk(refused({ origin: 'https://calls.example' }, csrf, behindProxy, 'http://calls.example/x'))
  t.ok(
    refused({ origin: 'http://calls.example' }, csrf, behindProxy, 'http://calls.example/x'),
    'not of the plain host',
  )
  t.end()
})

test('an address is known by the methods it has', async (t) => {
  const fetch = createPageFetch({ GET: async () => new Response('x') })
  const info = { remoteAddress: '192.0.2.7' }
  const answer = await fetch(new Request('http://host.example/', { method: 'POST' }), info)
  t.same([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD'])
  t.equal((await fetch(new Request('http://host.example/', { method: 'HEAD' }), info)).status, 200)
})

test('an e-mail address is one however it is written, and looks like no other', (t) => {
  for (const text of ['ada@example.com', ' ADA@Example.COM ', 'Ada@example.com\n'])
    t.equal(UserEmail.parse(text), 'ada@example.com')
  const wrong = [
    '',
    'ada',
    'ada@',
    '@example.com',
    'а​da@example.com',
    'аda@example.com',
    'ａda@example.com',
    '\u212Aada@example.com',
    'ada@examp\u0131e.com',
    'ada\0@example.com',
    'ada@b.com,eve@c.com',
    `${'a'.repeat(250)}@example.com`,
  ]
  for (const text of wrong) t.notOk(UserEmail.safeParse(text).success, text)
  t.end()
})

test('a password has 10 to 256 characters, all of which count', (t) => {
  const isGood = (text: string) => Password.safeParse(text).success
  t.same(['x'.repeat(9), 'x'.repeat(10), 'x'.repeat(256), 'x'.repeat(257)].map(isGood), [false, true, true, false])
  t.same(
    ['😀'.repeat(9), '😀'.repeat(10), '😀'.repeat(256)].map(isGood),
    [false, true, true],
    'of characters, not of code units',
  )
  t.equal(Password.parse('Ame\u0301lie spaces '), 'Am\u00e9lie spaces ', 'composed in any way it is the same one')
  t.notOk(isGood(`x\0${'x'.repeat(20)}`))
  t.notOk(isGood(`\ud800${'x'.repeat(20)}`))
  t.ok(isGivenAway('Ada.Lovelace', 'ada.lovelace@example.com') && isGivenAway('ada@example.com', 'ada@example.com'))
  t.notOk(isGivenAway('something else', 'ada@example.com'))
  t.notOk(UserName.safeParse('a\nb').success)
  t.end()
})

test('the token of an invitation stands in no line of the log', (t) => {
  const log = createQuietLog()
  const env = { info: { remoteAddress: '192.0.2.7' }, requestId: 'r', charged: null }
  const token = 'x'.repeat(43)
  createAccessLog({ log, clock: createHandClock() })(
    new Request(`http://host.example/invitations/${token}?a=b`),
    env,
    0,
    200,
  )
  t.match(log.lines, [{ fields: { path: '/invitations/…' } }])
  t.notMatch(JSON.stringify(log.lines), token)
  t.end()
})

/** The demonstration page and the browser client: as files, and in a real browser against a real front door. And who the client is. */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { test, type Test } from 'tap'
import type { Page } from 'playwright-core'
import { networksOf } from '../../net/networks.ts'
import { createClientAddress } from '../../gateway/listener/client-address.ts'
import { createPage } from '../../gateway/page.ts'
import { errorBodyOf, Problem } from '../../model/problem.ts'
import { seriousFindings } from '../peers/axe.ts'
import { hasChromium, openChromium } from '../peers/chromium.ts'
import { callId, setUpStage } from '../scenes/front-door.ts'

const get = (pathname: string, init?: RequestInit) =>
  createPage()(new Request(`http://call.example:8080${pathname}`, init))

test('behind proxies of ours the client is the last address that is none of them; nobody else is believed', async (t) => {
  const proxies = networksOf(['10.0.0.0/8', '2001:db8::1'])
  const clientOf = createClientAddress(proxies.includes)
  const cases: [peer: string, forwarded: string | null, client: string][] = [
    ['10.1.2.3', '192.0.2.7', '192.0.2.7'],
    ['10.1.2.3', '203.0.113.9, 192.0.2.7', '192.0.2.7'],
    ['10.1.2.3', '203.0.113.9, 192.0.2.7, 10.9.9.9', '192.0.2.7'],
    ['2001:db8::1', ' 2001:db8:1::5 ', '2001:db8:1::5'],
    ['::ffff:10.1.2.3', '192.0.2.7', '192.0.2.7'],
    ['10.1.2.3', '192.0.2.7, nonsense', '10.1.2.3'],
    ['10.1.2.3', '10.4.4.4', '10.4.4.4'],
    ['10.1.2.3', null, '10.1.2.3'],
    ['192.0.2.7', '203.0.113.9', '192.0.2.7'],
  ]
  for (const [peer, forwarded, client] of cases) {
    const request = new Request('http://call.example', {
      headers: forwarded === null ? {} : { 'x-forwarded-for': forwarded },
    })
    t.equal(clientOf(request, peer), client, `${peer} ${forwarded}`)
    t.equal(createClientAddress(() => false)(request, peer), peer, 'without proxies it is the peer')
  }
})

test('the page and its parts are served with their types, from memory', async (t) => {
  const types = {
    '/': 'text/html',
    '/page.js': 'text/javascript',
    '/page-parts.js': 'text/javascript',
    '/page-summary.js': 'text/javascript',
    '/page.css': 'text/css',
    '/parley-client.js': 'text/javascript',
  }
  for (const [pathname, type] of Object.entries(types)) {
    const response = get(pathname)
    t.match(response?.headers.get('content-type'), new RegExp(`^${type}; charset=utf-8$`))
    t.ok((await response?.text())?.length, pathname)
  }
  t.equal(get('/other'), null)
  t.equal(get('/../package.json'), null)
  t.equal(get('/', { method: 'POST' }), null)
  t.equal(await get('/', { method: 'HEAD' })?.text(), '')
})

test('what the browser has already is answered with 304', async (t) => {
  const etag = get('/page.css')?.headers.get('etag') ?? ''
  t.match(etag, /^"[\w-]{20,}"$/)
  const again = get('/page.css', { headers: { 'if-none-match': etag } })
  t.equal(again?.status, 304)
  t.equal(again?.headers.get('etag'), etag)
})

test('modules of the client may be imported by pages of any origin; the page itself is for its own', async (t) => {
  const before = ['/parley-client.js', '/parley-path.js', '/parley-signaling.js', '/parley-sound.js']
  for (const pathname of [...before, '/parley-react.js', '/sdk/parley-client.js', '/sdk/parley-react.js']) {
    const known = { 'if-none-match': get(pathname)?.headers.get('etag') ?? '' }
    const answers = [get(pathname), get(pathname, { method: 'HEAD' }), get(pathname, { headers: known })]
    for (const response of answers) {
      t.equal(response?.headers.get('access-control-allow-origin'), '*', pathname)
      t.equal(response?.headers.get('cross-origin-resource-policy'), 'cross-origin')
      t.equal(response?.headers.get('content-type'), 'text/javascript; charset=utf-8')
      t.equal(response?.headers.get('cache-control'), 'no-cache')
    }
    t.same(
      answers.map((response) => response?.status),
      [200, 200, 304],
    )
    const asked = { origin: 'https://shop.example', 'access-control-request-method': 'GET' }
    const preflight = get(pathname, { method: 'OPTIONS', headers: asked })
    t.equal(preflight?.status, 204)
    t.equal(preflight?.headers.get('access-control-allow-origin'), '*')
    t.match(preflight?.headers.get('access-control-allow-methods'), /GET/)
  }
  for (const pathname of ['/', '/page.js', '/page.css']) {
    t.equal(get(pathname)?.headers.get('access-control-allow-origin'), null)
    t.equal(get(pathname, { method: 'OPTIONS' }), null)
  }
})

test('any of several tags, and one that a proxy made weak, is answered with 304', async (t) => {
  const etag = get('/parley-client.js')?.headers.get('etag') ?? ''
  const statusOf = (tag: string) => get('/parley-client.js', { headers: { 'if-none-match': tag } })?.status
  t.same([`W/${etag}`, `"other", ${etag}`, '*', '"other"', ''].map(statusOf), [304, 304, 304, 200, 200])
})

test('the policy allows own files and own sockets only', async (t) => {
  const response = get('/')
  const policy = response?.headers.get('content-security-policy') ?? ''
  t.match(
    policy,
    /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ws:\/\/call\.example:8080 wss:\/\/call\.example:8080;/,
  )
  t.match(policy, /frame-ancestors 'none'/)
  t.notMatch(policy, /unsafe|\*/)
  t.equal(response?.headers.get('x-content-type-options'), 'nosniff')
  t.match(response?.headers.get('permissions-policy'), /microphone=\(self\)/)
  const html = (await response?.text()) ?? ''
  t.notMatch(html, /<script(?![^>]*src=)|\sstyle=|\son\w+=/, 'nothing inline')
  t.notMatch(html.replace('http://www.w3.org/2000/svg', ''), /https?:\/\//, 'nothing from elsewhere')
})

const skip = hasChromium() ? false : 'there is no Chromium'

/** What came of the call, as the service tells it when it is settled. */
const came = {
  status: 'completed',
  outcome: 'completed',
  postProcessingStatus: 'completed',
  duration: 42,
  dimensions: { seating: 'outside', wants_table: true },
  nextAction: 'book_table',
  recordingUrl: '/v1/recordings/demo.wav',
}

async function openPage(t: Test) {
  const serve = createPage()
  const refusal = { problem: null as Problem | null }
  const stage = await setUpStage(t, {
    async fetch(request) {
      const url = new URL(request.url)
      if (url.pathname === `/demo/calls/${callId}`) return Response.json(came)
      if (url.pathname !== '/demo/session') return serve(request) ?? new Response(null, { status: 404 })
      if (refusal.problem)
        return Response.json(errorBodyOf(refusal.problem, 'request-1'), { status: refusal.problem.status })
      return Response.json({
        callId,
        sessionId: 'session-1',
        signalingUrl: `ws://${url.host}/v1/signaling`,
        token: 'good',
        iceServers: [],
        expiresAt: new Date(Date.now() + 120_000).toISOString(),
      })
    },
  })
  const browser = await openChromium()
  t.teardown(() => browser.close())
  const page = await browser.context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  await page.goto(`http://127.0.0.1:${stage.port}/`)
  return { stage, page, complaints, refusal }
}

const statusIs = (page: Page, text: string) => page.getByRole('status').filter({ hasText: text }).waitFor()

test(
  'a click calls; levels, transcript, typing, keypad, mute and timings work; the lost socket comes back; a click hangs up, and what came of it is shown',
  { skip, timeout: 90_000 },
  async (t) => {
    const { stage, page, complaints } = await openPage(t)
    await photograph(page, 'page-idle')
    t.same(await seriousFindings(page), [])
    await page.getByRole('button', { name: 'Call' }).click()
    await statusIs(page, 'In call')
    const line = { type: 'transcript', role: 'agent', isFinal: false, turnIndex: 0, ts: '2026-01-01T00:00:00.000Z' }
    stage.say({ ...line, text: 'Hello, this is' })
    stage.say({ ...line, text: 'Hello, this is Parley. How can I help?', isFinal: true })
    stage.say({ ...line, text: 'I would like to <b>book</b> a table.', role: 'user', isFinal: true, turnIndex: 1 })
    await page.getByRole('log').getByText('I would like to <b>book</b> a table.').waitFor()
    t.equal(await page.getByRole('listitem').count(), 2, 'the interim text was overwritten')
    await page.getByText('Connection').click()
    await page.locator('#t-firstAudio', { hasText: 'ms' }).waitFor()
    await page.getByText('Connection').click()
    await page.locator('#agent:not([aria-valuenow="0"])').waitFor()
    await page.getByRole('button', { name: 'Keypad' }).click()
    await page.getByRole('button', { name: 'hash' }).click()
    await page.getByRole('button', { name: 'Mute' }).click()
    t.equal(await page.getByRole('button', { name: 'Mute' }).getAttribute('aria-pressed'), 'true')
    await page.locator('#orb[data-agent="speaking"]').waitFor()
    await page.getByRole('button', { name: 'Outside' }).click()
    await page.getByLabel('Type to the agent').fill('A table for <b>two</b>')
    await page.keyboard.press('Enter')
    await photograph(page, 'page-in-call')
    t.same(await seriousFindings(page), [])
    const [first] = stage.connections
    first?.close(1012, 'lost')
    await statusIs(page, 'Reconnecting')
    await photograph(page, 'page-reconnecting')
    stage.say({ ...line, text: 'Are you still there?', isFinal: true, turnIndex: 2 })
    await statusIs(page, 'In call')
    await page.getByRole('log').getByText('Are you still there?').waitFor()
    t.equal(stage.connections.length, 2)
    await page.getByRole('button', { name: 'Hang up' }).click()
    await statusIs(page, 'Call ended')
    await page.getByText('Completed, 42 s').waitFor()
    t.match(
      await page.getByRole('group', { name: 'What came of it' }).innerText(),
      /Seating\s+Outside\s+Wants table\s+Yes\s+Next\s+Book table/,
    )
    t.equal(await page.getByLabel('Recording').getAttribute('src'), came.recordingUrl)
    await photograph(page, 'page-ended')
    t.same(await seriousFindings(page), [])
    t.same(
      stage.legs[0]?.heard.filter((heard) => heard.startsWith('typed')),
      ['typed Outside', 'typed A table for <b>two</b>'],
    )
    t.ok(stage.legs[0]?.heard.includes('dtmf #'))
    t.same(complaints, [], 'no error, no refused resource')
  },
)

test('a module script of another origin imports the client', { skip, timeout: 90_000 }, async (t) => {
  const { stage, page } = await openPage(t)
  const html = `<!doctype html><script type="module">
    import { createCall } from 'http://127.0.0.1:${stage.port}/parley-client.js'
    document.title = typeof createCall
  </script>`
  const shop = http.createServer((_, response) => response.setHeader('content-type', 'text/html').end(html))
  shop.listen(0, '127.0.0.1')
  await once(shop, 'listening')
  t.teardown(() => {
    shop.closeAllConnections()
    shop.close()
  })
  await page.goto(`http://127.0.0.1:${(shop.address() as AddressInfo).port}/`)
  await page.waitForFunction("document.title === 'function'")
  t.equal(await page.title(), 'function')
})

test('what goes wrong is said in words', { skip, timeout: 90_000 }, async (t) => {
  const { page, refusal } = await openPage(t)
  refusal.problem = new Problem('WEB_CALL_CAPACITY_EXCEEDED', 'All lines are taken. Please try again in a minute.')
  await page.getByRole('button', { name: 'Call' }).click()
  await page.getByRole('alert').getByText('All lines are taken.').waitFor()
  t.equal(await page.getByRole('button', { name: 'Call' }).isEnabled(), true)
  refusal.problem = new Problem('UNAUTHORIZED', 'The demo needs the token of the address that npm start printed.')
  await page.getByRole('button', { name: 'Call' }).click()
  await statusIs(page, 'Expired')
  await page.getByRole('alert').getByText('token of the address').waitFor()
  await photograph(page, 'page-expired')
  t.same(await seriousFindings(page, 'colours'), [])
  await page.evaluate('window.fetch = () => new Promise(() => undefined)')
  await page.getByRole('button', { name: 'Call' }).click()
  await statusIs(page, 'Connecting')
  t.equal(await page.locator('#doing').textContent(), 'Connecting…')
  await photograph(page, 'page-connecting')
  t.same(await seriousFindings(page, 'colours'), [])
  await page.getByRole('button', { name: 'Hang up' }).click()
  await statusIs(page, 'Call ended')
  for (const [name, text] of [
    ['NotAllowedError', 'may not use the microphone'],
    ['NotFoundError', 'No microphone was found'],
  ] as const) {
    await page.evaluate(`navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', '${name}') }`)
    await page.getByRole('button', { name: 'Call' }).click()
    await page.getByRole('alert').getByText(text).waitFor()
    await statusIs(page, 'Call failed')
    await photograph(page, `page-${name}`)
  }
  await page.evaluate('navigator.mediaDevices.getUserMedia = () => new Promise(() => undefined)')
  await page.getByRole('button', { name: 'Call' }).click()
  await statusIs(page, 'Waiting for the microphone')
  await photograph(page, 'page-asking')
  await page.getByRole('button', { name: 'Hang up' }).click()
  await statusIs(page, 'Call ended')
  await page.evaluate("Object.defineProperty(navigator, 'mediaDevices', { value: undefined, configurable: true })")
  await page.getByRole('button', { name: 'Call' }).click()
  await page.getByRole('alert').getByText('secure pages only').waitFor()
})

/** Kept only when somebody wants to look: SCREENSHOTS names the folder. */
async function photograph(page: Page, name: string): Promise<void> {
  const folder = process.env['SCREENSHOTS']
  if (folder === undefined) return
  const shots = [
    { name, width: 1120, height: 720, scheme: 'light' },
    { name: `${name}-dark`, width: 1120, height: 720, scheme: 'dark' },
    { name: `${name}-narrow`, width: 390, height: 844, scheme: 'light' },
  ] as const
  for (const { name: file, width, height, scheme } of shots) {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme: scheme })
    const picture = await page.screenshot()
    await writeFile(path.join(folder, `${file}.png`), picture)
  }
}

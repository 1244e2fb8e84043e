/** The reference page at /docs: its files, and in a real browser that it shows every operation, works with a key, and asks nobody else. */
import { test, type Test } from 'tap'
import { createApi } from '../../api/api.ts'
import { hasChromium, openChromium } from '../peers/chromium.ts'
import { operationsOf, type Document } from '../scenes/api-operations.ts'
import { serve } from '../scenes/listener.ts'
import { openSeededApi } from '../scenes/seeded-api.ts'

const files = {
  '/docs': 'text/html',
  '/docs/start.js': 'text/javascript',
  '/docs/swagger-ui-bundle.js': 'text/javascript',
  '/docs/swagger-ui.css': 'text/css',
  '/docs/favicon.png': 'image/png',
}

test('the files of the page', async (t) => {
  const { ask } = await openSeededApi(t)
  const get = (path: string, headers = {}) => ask(path, { key: null, headers })

  await t.test('are served without a key, with their types, and again only when they have changed', async (t) => {
    for (const [path, type] of Object.entries(files)) {
      const answer = await get(path)
      t.equal(answer.status, 200, path)
      t.match(answer.headers.get('content-type'), type)
      t.equal(answer.headers.get('cache-control'), 'no-cache')
      const etag = answer.headers.get('etag') ?? ''
      t.match(etag, /^"[\w-]{20,}"$/)
      const again = await get(path, { 'if-none-match': etag })
      t.same([again.status, again.text, again.headers.get('etag')], [304, '', etag])
    }
    t.equal((await get('/docs/../openapi.json')).status, 200, 'which is another address')
    for (const path of ['/docs/', '/docs/package.json', '/docs/%2e%2e/api.ts']) t.equal((await get(path)).status, 404)
  })

  await t.test('allow own scripts and own requests only, and none of them is written into the page', async (t) => {
    const { headers, text } = await get('/docs')
    const policy = headers.get('content-security-policy') ?? ''
    t.match(policy, /^default-src 'none'; script-src 'self'; .*connect-src 'self'; .*frame-ancestors 'none'$/)
    t.notMatch(policy, /unsafe-eval|https?:|\*/)
    t.notMatch(text, /<script(?![^>]*src=)|\son\w+=|https?:\/\//)
    t.equal(headers.get('x-frame-options'), 'DENY')
    t.match(
      (await get('/health')).headers.get('content-security-policy'),
      /^default-src 'none'; frame/,
      'not elsewhere',
    )
  })
})

const skip = hasChromium() ? false : 'there is no Chromium'

async function openPage(t: Test) {
  const { deps, own, ask } = await openSeededApi(t)
  const { url: origin } = await serve(t, 'node', { fetch: createApi(deps) })
  const browser = await openChromium()
  t.teardown(() => browser.close())
  const page = await browser.context.newPage()
  const complaints: string[] = []
  const asked: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('request', (request) => asked.push(request.url()))
  await page.goto(`${origin}/docs`)
  const document = (await ask('/openapi.json')).json as Document
  const events = Object.keys(document.webhooks)
    .map((type) => `post ${type}`)
    .toSorted()
  return { page, own, origin, asked, complaints, operations: operationsOf(document), events }
}

test('in a browser', { skip }, async (t) => {
  const { page, own, origin, asked, complaints, operations, events } = await openPage(t)

  await t.test('the page shows every operation of the document', async (t) => {
    await page
      .locator('.opblock')
      .nth(operations.length + events.length - 1)
      .waitFor()
    const shown = await page.locator('.opblock').evaluateAll((blocks) =>
      blocks.map((block) => {
        const method = block.querySelector('.opblock-summary-method')?.textContent ?? ''
        const path = block.querySelector('.opblock-summary-path')?.getAttribute('data-path') ?? ''
        return `${method.toLowerCase()} ${path}`
      }),
    )
    const known = operations.map(({ method, path }) => `${method} ${path}`)
    t.same(
      known.filter((operation) => !shown.includes(operation)),
      [],
    )
    t.same(shown.filter((operation) => !known.includes(operation)).toSorted(), events, 'and the webhooks below them')
  })

  await t.test('whoever gives it a key may try an operation', async (t) => {
    await page.locator('.btn.authorize').first().click()
    await page.locator('.auth-container input').fill(own.key)
    await page.locator('.auth-btn-wrapper .authorize').click()
    await page.locator('.auth-btn-wrapper .btn-done').click()
    const block = page.locator('#operations-Accounts-getCurrentAccount')
    await block.locator('.opblock-summary-control').click()
    await block.locator('.execute').click()
    const answer = block.locator('.live-responses-table .response').first()
    await answer.waitFor()
    t.match(await answer.textContent(), own.id)
    t.equal(await answer.locator('.response-col_status').textContent(), '200')
  })

  await t.test('it asked nobody but its own host, and nothing was refused to it', (t) => {
    t.ok(asked.length >= 6)
    const elsewhere = asked.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'))
    t.same(elsewhere, [])
    t.same(complaints, [])
    t.end()
  })
})

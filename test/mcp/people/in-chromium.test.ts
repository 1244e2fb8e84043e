/** The pages of people in a real browser: what it makes of their policy, their cookies and the origin of their forms. docs/security.md "Pages and sign-in". */
import { test } from 'tap'
import { withStandardHeaders } from '../../../api/standard-headers.ts'
import { invite } from '../../../store/invitations.ts'
import { openTestDatabase } from '../../scenes/database.ts'
import { serve } from '../../scenes/listener.ts'
import { openPeopleOn, password } from '../../scenes/people.ts'
import { newId } from '../../scenes/tenant.ts'
import { hasChromium, openChromium } from '../../peers/chromium.ts'

const skip = hasChromium() ? false : 'no Chromium'

test('in Chromium people join, sign out and sign in; a form of another origin does nothing', { skip }, async (t) => {
  const { fetch: pages, sql, clock, account } = await openPeopleOn(await openTestDatabase(t))
  const { url, port } = await serve(t, 'node', {
    fetch: async (request, info) => {
      const isEvil = new URL(request.url).pathname === '/evil'
      return withStandardHeaders(isEvil ? evil(url) : await pages(request, info), request, 'r')
    },
  })
  const accountId = await account('first')
  const { token } = await invite(sql, { accountId, email: 'ada@example.com', role: 'owner', newId, now: clock.now() })
  const { context, close } = await openChromium()
  t.teardown(close)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => void complaints.push(message.text()))

  await page.goto(`${url}/invitations/${token}`)
  await page.getByLabel('Your name').fill('Ada')
  await page.getByLabel('Password').fill('short')
  await page.getByRole('button', { name: 'Join' }).click()
  t.equal(await page.locator('#password').getAttribute('aria-invalid'), 'true')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Join' }).click()
  await page.waitForURL(`${url}/account`)
  t.match(await page.textContent('main'), /Ada \(ada@example\.com\)/)
  t.match(
    await page.evaluate('getComputedStyle(document.querySelector("main")).borderRadius'),
    '12px',
    'its style is let in',
  )
  t.equal(await page.evaluate('document.cookie'), '', 'no script reads a cookie')

  const elsewhere = await context.newPage()
  await elsewhere.goto(`http://localhost:${port}/evil`)
  const answered = elsewhere.waitForResponse(`${url}/sign-out`)
  await elsewhere.getByRole('button').click()
  t.equal((await answered).status(), 403)
  await elsewhere.close()
  t.equal((await page.goto(`${url}/account`))?.url(), `${url}/account`, 'she is still signed in')

  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(`${url}/sign-in`)
  await page.goto(`${url}/account`)
  await page.waitForURL(`${url}/sign-in?returnTo=%2Faccount`)
  await page.getByLabel('E-mail address').fill('ada@example.com')
  await page.getByLabel('Password').fill('something else')
  await page.getByRole('button', { name: 'Sign in' }).click()
  t.match(await page.getByRole('alert').textContent(), 'E-mail address or password is wrong.')
  t.equal(await page.getByLabel('E-mail address').inputValue(), 'ada@example.com')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${url}/account`)
  t.same(
    complaints.filter((text) => !/status of (400|401)/.test(text)),
    [],
    'the browser has nothing against the pages',
  )
})

/** Of somebody else; its policy lets its form out. */
const evil = (target: string): Response =>
  new Response(`<form method="post" action="${target}/sign-out"><button>x</button></form>`, {
    headers: { 'content-type': 'text/html', 'content-security-policy': "default-src 'none'" },
  })

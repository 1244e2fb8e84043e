/**
 * Each page of the console in light, dark, on a telephone, and with hostile texts: everybody can use it, by keyboard too, nothing is wider than the screen, the
 * policy keeps nothing away. And where the focus goes, and what an account sees that has nothing yet.
 * With CONSOLE_PICTURES=<folder> the pictures stay there; docs/console.md shows some of them.
 */
import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { test, type Test } from 'tap'
import type { AccountId } from '../../model/ids.ts'
import { createAccount } from '../../store/accounts.ts'
import { seriousFindings } from '../peers/axe.ts'
import { hasChromium } from '../peers/chromium.ts'
import { openBrowsers, openConsole, type ConsoleScene, type Signed } from '../scenes/console.ts'
import { seedPages, type ShownPage } from '../scenes/console-pages.ts'
import { until } from '../scenes/in-time.ts'
import { keyboardFindings } from '../scenes/keyboard.ts'
import { newId } from '../scenes/seeded-api.ts'

const skip = hasChromium() ? false : 'no Chromium'
const folder = process.env['CONSOLE_PICTURES']

const looks = [
  { name: 'light', dark: false, phone: false, judged: 'all' },
  { name: 'dark', dark: true, phone: false, judged: 'colours' },
  { name: 'phone', dark: false, phone: true, judged: null },
] as const

test('each page of the console', { skip }, async (t) => {
  const scene = await openConsole(t)
  await scene.addUser('olive@example.com', 'owner')
  const pages = await seedPages(scene)
  const signIn = await openBrowsers(t, scene)
  if (folder !== undefined) await mkdir(folder, { recursive: true })
  for (const look of looks) {
    const signed = await signIn('olive@example.com', look)
    for (const shown of pages)
      await t.test(`${shown.name}, ${look.name}`, async (t) => {
        await show(signed, scene.url + shown.path, shown.ready)
        if (folder !== undefined) await keepPicture(signed, path.join(folder, `${shown.name}-${look.name}.png`), shown)
        if (look.judged !== null) t.same(await seriousFindings(signed.page, look.judged), [], 'everybody can use it')
        t.ok(...(await fits(signed)))
        if (look.judged === 'all') t.same(await keyboardFindings(signed.page), [], 'by keyboard alone')
      })
    t.same(signed.complaints, [], `in ${look.name} the browser complains of nothing`)
    await signed.page.context().close()
  }
  await t.test('the title of a page has the focus when one has come to it by keys, and a form keeps it', async (t) => {
    const signed = await signIn('olive@example.com')
    await movesFocus(t, signed)
    await signed.page.context().close()
  })

  await t.test('a trunk is examined from its page, each finding with what mends it', async (t) => {
    const { page, complaints } = await signIn('olive@example.com')
    await page.goto(`${scene.url}/console/trunks`)
    await page.getByRole('button', { name: 'Examine' }).first().click()
    await page.getByRole('status').filter({ hasText: 'needs mending' }).waitFor()
    const found = await page.getByRole('list', { name: 'What was looked at' }).textContent()
    t.match(found, /passed is switched on yes/)
    t.match(found, /no process of the service speaks SIP.*the operator switches it on by SIP=on/)
    t.same(await seriousFindings(page), [])
    const [entry] = await scene.sql`select result, actor_kind from audit_entries where action = 'trunk.examine'`
    t.match(entry, { result: 'success' })
    t.same(complaints, [])
    await page.context().close()
  })

  await t.test('a viewer is offered what their role lets through, on each page, and nothing else', async (t) => {
    await scene.addUser('vera@example.com', 'viewer')
    const { page, complaints } = await signIn('vera@example.com')
    await page.addInitScript(countAsked)
    t.equal(await page.getByRole('navigation').getByText('Audit').count(), 0)
    const offered = new Set<string>()
    for (const { name, path: place } of pages) {
      await page.goto(scene.url + place)
      await page.locator('main h1').waitFor()
      const isQuiet = () => page.evaluate("asked.open === 0 && !document.querySelector('main .loading')")
      await until(isQuiet)
      for (const control of (await page.evaluate(pressAll)) as string[]) offered.add(control)
      await until(isQuiet)
      t.same(await page.evaluate('asked.refused'), [], `${name}: nothing that was pressed was refused`)
    }
    t.same([...offered].toSorted(), ofViewers)
    t.same(complaints, [])
    await page.context().close()
  })

  await t.test('an account with nothing yet is told on each page what to do next', async (t) => {
    const { id } = await createAccount(scene.sql, { name: 'New', slug: 'new', newId, now: scene.clock.now() })
    await scene.addUser('nora@example.com', 'owner', id as AccountId)
    const { page, complaints } = await signIn('nora@example.com', { phone: true })
    for (const { name, path: place } of pages.filter(({ path: one }) => lists.test(one))) {
      await page.goto(scene.url + place)
      await page.locator('main .empty h2').first().waitFor()
      t.match(await page.locator('main .empty').first().textContent(), /\w{3}.*\./, name)
    }
    t.same(complaints, [])
    await page.context().close()
  })

  await t.test('what others have written is text on each page, and as wide as the screen at most', async (t) => {
    await writeHostileTexts(scene)
    const signed = await signIn('olive@example.com', { phone: true })
    for (const { name, path: place } of pages) {
      await signed.page.goto(scene.url + place)
      await signed.page.locator('main h1').waitFor()
      await until(async () => (await signed.page.locator('main .loading').count()) === 0)
      t.ok(...(await fits(signed, name)))
      t.equal(await signed.page.locator('main img, main script, main b').count(), 0, name)
      t.match(await signed.page.title(), /· Parley$/, name)
    }
    t.same(signed.complaints, [])
    await signed.page.context().close()
  })
  await rm(path.join(scene.database.dataDir, 'recordings'), { recursive: true, force: true })
})

/** Whose lists are empty at first; users and the audit log are not. */
const lists = /^\/console(?:\/(?:calls|workers|persons|documents|trunks|webhooks|simulations|developers))?$/

async function fits({ page }: Signed, name = ''): Promise<[isGood: boolean, told: string]> {
  const [wide, room] = (await page.evaluate('[document.documentElement.scrollWidth, innerWidth]')) as [number, number]
  return [wide <= room, `${name}: ${wide} of ${room} pixels`]
}

/** What a page asks, and what of it its role forbids. */
const countAsked = `{
  const [ask, asked] = [fetch, { open: 0, refused: [] }]
  globalThis.asked = asked
  globalThis.fetch = (place, wish) => {
    asked.open++
    return ask(place, wish)
      .then((answer) => (answer.status === 403 && asked.refused.push(place), answer))
      .finally(() => asked.open--)
  }
}`
/** Opens what is closed, and presses each button. Its value: what can be used, by its name; moments of a call, which are only heard, are left out. */
const pressAll = `new Promise((done) => {
  document.querySelectorAll('main details').forEach((one) => (one.open = true))
  setTimeout(() => {
    const usable = [...document.querySelectorAll('main :is(button, input, select, textarea)')].filter((one) => !one.disabled && !one.readOnly)
    const heard = 'ol.turns, .lane, .findings'
    const nameOf = (one) => one.ariaLabel ?? (one.labels?.[0]?.querySelector('.field-label') ?? one).textContent
    const named = usable.filter((one) => !one.closest(heard)).map(nameOf)
    usable.forEach((one) => one.tagName === 'BUTTON' && one.click())
    setTimeout(() => done(named))
  })
})`
const ofViewers = [
  '1×',
  'As a caller would ask',
  'Direction',
  'From',
  'Kind',
  'Look closer',
  'Play',
  'Recording',
  'Replay the log',
  'Said in it',
  'Search',
  'State',
  'To',
  'Transcript',
  'Version 1',
  'Worker',
]

const focused = (text: string): string =>
  `document.activeElement.tagName === 'H1' && document.activeElement.textContent === ${JSON.stringify(text)}`

async function movesFocus(t: Test, { page }: Signed): Promise<void> {
  await page.locator('main h1').waitFor()
  for (const [key, title] of [
    ['c', 'Calls'],
    ['w', 'Workers'],
    ['k', 'Developers'],
    ['l', 'Live'],
    ['c', 'Calls'],
  ] as const) {
    await page.keyboard.press('g')
    await page.keyboard.press(key)
    await until(() => page.evaluate(focused(title)))
  }
  await page.getByRole('link', { name: 'Grace Hopper' }).first().waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/console\/calls\/[\w-]+$/)
  await until(() =>
    page.evaluate("document.activeElement.tagName === 'H1' && document.activeElement.textContent !== 'Call'"),
  )
  await page.keyboard.press('?')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  t.equal(await page.evaluate('document.activeElement.tagName'), 'H1', 'a dialog gives it back')
  await page.keyboard.press('g')
  await page.keyboard.press('p')
  await page.getByLabel('First name').fill('Emmy')
  await page.getByLabel('Last name').fill('Noether')
  await page.getByRole('button', { name: 'Add', exact: true }).focus()
  await page.keyboard.press('Space')
  await page.getByRole('status').filter({ hasText: 'Added.' }).waitFor()
  t.equal(await page.evaluate('document.activeElement.textContent'), 'Add')
}

/** Markup, letters that turn round what follows, and a word without an end. */
const hostile = `<img src=x onerror="document.title='run'"><b>\u202Eesrever\u2066 ${'w'.repeat(300)}`

async function writeHostileTexts({ sql }: ConsoleScene): Promise<void> {
  for (const [table, ...columns] of [
    ['accounts', 'name'],
    ['workers', 'name'],
    ['persons', 'first_name', 'last_name'],
    ['documents', 'title'],
    ['trunks', 'name'],
    ['api_keys', 'name'],
    ['users', 'name'],
    ['calls', 'summary'],
    ['transcript_turns', 'text'],
    ['call_refusals', 'details'],
    ['delivery_attempts', 'error'],
  ] as const)
    for (const column of columns) await sql`update ${sql(table)} set ${sql(column)} = ${hostile}`
}

async function show({ page }: Signed, address: string, ready: string): Promise<void> {
  await page.goto(address)
  await page.getByText(ready).first().waitFor({ timeout: 15_000 })
}

/** What is out of sight is not drawn, so the whole of a page is taken with a window as high as it is. */
async function keepPicture({ page }: Signed, file: string, { isWhole = false }: ShownPage): Promise<void> {
  const before = page.viewportSize()
  if (isWhole && before) {
    const height = (await page.evaluate('document.documentElement.scrollHeight')) as number
    await page.setViewportSize({ ...before, height })
  }
  await page.screenshot({ path: file, fullPage: isWhole })
  if (before) await page.setViewportSize(before)
}

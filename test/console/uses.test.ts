/**
 * What people do in the console, in Chromium: forms with what is wrong and what is good, scripts, webhooks, a database that is away, a session that is over; and
 * an account that is used a lot, with a call of four hours and ten thousand calls, in which nothing grows with them. docs/console.md.
 */
import type { Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { openFakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { seriousFindings } from '../peers/axe.ts'
import { hasChromium } from '../peers/chromium.ts'
import { openBrowsers, openConsole } from '../scenes/console.ts'
import { until } from '../scenes/in-time.ts'
import { insertLongCall, insertManyCalls, longTools, longTurns } from '../scenes/long-call.ts'
import { insertCall, newId } from '../scenes/seeded-api.ts'

const skip = hasChromium() ? false : 'no Chromium'
const note = 'SMTP_URL and EMAIL_FROM are not set: agents send no mail.'

type Filled = Readonly<Record<string, string>>
/** Path, name of the form's region, what is filled in by labels, its button, the label that is blamed (null: none is), and what is said. */
type WrongForm = readonly [string, string, Filled, string, string | null, RegExp]

const formIn = (page: Page, region: string) =>
  page.getByRole('region', { name: region, exact: true }).or(page.locator('details').filter({ hasText: region }))

async function fillIn(page: Page, region: string, fields: Filled, button: string) {
  const form = formIn(page, region)
  for (const [label, value] of Object.entries(fields)) await form.getByLabel(label).first().fill(value)
  await form.getByRole('button', { name: button, exact: true }).click()
  return form
}

async function refuses(t: Test, page: Page, url: string, [place, region, fields, button, label, says]: WrongForm) {
  await page.goto(url + place)
  const summary = page.locator('summary').filter({ hasText: region })
  await formIn(page, region).first().waitFor()
  if ((await summary.count()) > 0) await summary.click()
  const form = await fillIn(page, region, fields, button)
  await form.getByRole('alert').waitFor()
  t.match(await form.textContent(), says, `${place}, ${region}`)
  if (label === null) return
  const blamed =
    'document.activeElement.getAttribute("aria-invalid") + document.activeElement.parentElement.textContent'
  t.match(await page.evaluate(blamed), new RegExp(`^true${label}`), `${place}: ${label} has the focus`)
}

test('in the console, what people do', { skip }, async (t) => {
  const scene = await openConsole(t, { notes: [note] })
  const { url, sql, own, addUser, clock, ask } = scene
  const userId = await addUser('olive@example.com', 'owner')
  const signIn = await openBrowsers(t, scene)
  const { page, complaints: all } = await signIn('olive@example.com')
  /** Refusals are what is looked at here; browsers tell of each. */
  const complaints = () => all.splice(0).filter((complaint) => !/status of (?:400|401|403|404|503)/.test(complaint))
  page.setDefaultTimeout(20_000)
  const account = `/v1/accounts/${own.id}`
  const worker = `/console/workers/${own.worker.id}`
  const post = async (path: string, json: unknown) =>
    (await ask(`${account}/${path}`, { method: 'POST', json })).json as { id: string }

  await t.test('owners are told what matters and is not set, until they have read it', async (t) => {
    const banner = page.getByRole('region', { name: 'What is not set' })
    await banner.getByText(note).waitFor()
    t.same(await seriousFindings(page), [])
    await banner.getByRole('button', { name: 'I have read it' }).click()
    await banner.waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('heading', { name: 'Live' }).waitFor()
    t.equal(await banner.count(), 0)
    await page.evaluate('localStorage.setItem("parley-notes-read", JSON.stringify(["another one"]))')
    await page.reload()
    await banner.waitFor()
    await banner.getByRole('button').click()
    await addUser('otto@example.com', 'operator')
    const operator = await signIn('otto@example.com')
    await operator.page.getByRole('heading', { name: 'Live' }).waitFor()
    t.equal(await operator.page.getByText(note).count(), 0)
    await operator.page.context().close()
  })

  await t.test('what is wrong in a form is said at its field, which has the focus', async (t) => {
    const { id: personId } = await post('persons', { type: 'lead', firstName: 'Ada', lastName: 'King' })
    const forms: WrongForm[] = [
      [worker, 'Who it is', { 'Called at': '0301' }, 'Save', 'Called at', /Called at must be/],
      [worker, 'Who it is', { 'Calls at once': '-1' }, 'Save', 'Calls at once', /Calls at once must be/],
      [worker, 'How it talks', { 'Rings for': '9999' }, 'Save', 'Rings for', /must be .* or less/],
      [worker, 'Everything, as JSON', { Configuration: '{' }, 'Save all of it', null, /This is no JSON/],
      [worker, 'Everything, as JSON', { Configuration: '{"x":1}' }, 'Save all of it', null, /config\.x is not a known/],
      ['/console/workers', 'Add a worker', { Name: 'B', Language: 'x' }, 'Add it', 'Language', /Language must/],
      [
        '/console/persons',
        'Add a person',
        { 'First name': 'A', 'Last name': 'B', Number: '12' },
        'Add',
        'Number',
        /must/,
      ],
      [`/console/persons/${personId}`, 'What is stored', { 'E-mail': 'x' }, 'Save', 'E-mail', /E-mail address must/],
      ['/console/documents', 'Add a document', { Title: 'Empty' }, 'Add', null, /choose a file, or write/],
      ['/console/trunks', 'Add a trunk', { Name: 'T', Gateway: 'no host' }, 'Add it', 'Gateway', /must be a host name/],
      [
        '/console/trunks',
        'Add a trunk',
        { Name: 'T', Gateway: 'a.example', Port: '70000' },
        'Add it',
        'Port',
        /or less/,
      ],
      ['/console/webhooks', 'Subscribe', { Address: 'ftp://a.example' }, 'Subscribe', 'Address', /Address must/],
      [
        '/console/developers',
        'Make a key',
        { Name: 'Without any', 'Good until': '2020-01-01T00:00' },
        'Make it',
        'Good until',
        /in the future/,
      ],
      ['/console/developers', 'Make a key', { Name: 'x'.repeat(300) }, 'Make it', 'Name', /characters at most/],
      ['/console/developers', 'Kept for (days)', { Recordings: '-3' }, 'Save', 'Recordings', /Recordings must be/],
    ]
    for (const form of forms) await refuses(t, page, url, form)
    t.same(await seriousFindings(page), [])
    const key = formIn(page, 'Make a key')
    await key.getByLabel('Name').fill('Nothing')
    await key.getByLabel('Read').uncheck()
    await key.getByRole('button', { name: 'Make it' }).click()
    await key.getByText('Choose what the key may do.').waitFor()
    await page.goto(`${url}/console/calls/${newId()}`)
    await page.getByText('There is no such thing here').waitFor()
  })

  await t.test('what is saved is said, stays, and the focus where it was', async (t) => {
    await page.goto(`${url}${worker}`)
    const form = await fillIn(page, 'How it talks', { 'Rings for': '41' }, 'Save')
    await form.getByRole('status').filter({ hasText: 'Saved.' }).waitFor()
    await until(async () => /"ringTimeout": 41/.test(await page.getByLabel('Configuration').inputValue()))
    t.match(await form.getByRole('status').textContent(), /^Saved\. Calls that begin/)
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Save')
    await page.reload()
    t.equal(await form.getByLabel('Rings for').inputValue(), '41')
    await page.goto(`${url}/console/trunks`)
    const fields = { Name: 'Exchange', Gateway: 'pbx.example', Port: '5080' }
    await fillIn(page, 'Add a trunk', fields, 'Add it')
    await page.getByRole('region', { name: 'Exchange' }).waitFor()
    await page.getByRole('button', { name: 'Delete Exchange' }).click()
    await page.getByRole('button', { name: 'Delete it' }).click()
    await page.getByRole('heading', { name: 'No trunk yet' }).waitFor()
    t.same(complaints(), [])
  })

  await t.test('a script shows its errors at their lines while one types, and goes back to what it was', async (t) => {
    await page.goto(`${url}${worker}?part=scripts`)
    await fillIn(page, 'Add a script', { Title: 'Table' }, 'Add it')
    const box = page.getByRole('textbox', { name: 'Script' })
    await box.fill('say Hello.\nask wants (yes/no) Would you?\nend: Good bye.')
    await page.getByRole('list', { name: 'Errors' }).getByRole('button', { name: 'Line 2' }).click()
    t.equal(await page.locator('.line-numbers .wrong').textContent(), '2')
    t.match(await page.evaluate('getSelection().toString()'), /^ask wants/)
    await box.fill('say Hello.\nend: Good bye.')
    await page.getByText('No errors').waitFor()
    await page.getByRole('button', { name: 'Save and use' }).click()
    await page.getByRole('status').filter({ hasText: 'Saved.' }).waitFor()
    await page.getByText('Versions before (1)').click()
    await page.getByRole('button', { name: 'Version 1' }).click()
    await page.locator('.line.added').getByText('say Hello.').waitFor()
    await page.getByRole('button', { name: 'Go back to this version' }).click()
    await page.getByText('Versions before (2)').waitFor()
    await until(async () => /Good morning/.test(await box.inputValue()))
    t.same(complaints(), [])
  })

  await t.test('a webhook is tried, and a delivery that was given up sent again', async (t) => {
    const receiver = await openFakeWebhookReceiver(t)
    await page.goto(`${url}/console/webhooks`)
    await fillIn(page, 'Subscribe', { Address: receiver.url('/hooks') }, 'Subscribe')
    const secret = await page.getByRole('status').locator('code').textContent()
    receiver.trust('/hooks', secret ?? '')
    await page.getByRole('link', { name: receiver.url('/hooks') }).click()
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByRole('status').filter({ hasText: 'It arrived.' }).waitFor()
    receiver.script('/hooks', [{ status: 410 }])
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByRole('alert').filter({ hasText: 'The test did not arrive' }).waitFor()
    const subscriptionId = page.url().split('/').at(-1) ?? ''
    const callId = await insertCall(sql, own.id, own.worker.id, { progress: 'completed', outcome: 'failed' })
    const delivery = { id: newId(), accountId: own.id, subscriptionId, callId, body: '{}', eventAt: clock.now() }
    await sql`insert into deliveries ${sql({ ...delivery, eventType: 'call.ended', status: 'exhausted' })}`
    await page.goto(`${url}/console/calls/${callId}`)
    await page.getByRole('link', { name: 'call.ended' }).click()
    await page.getByText('Of one call only.').waitFor()
    await page.getByRole('button', { name: 'Send again' }).click()
    await page.locator('td').getByText('pending', { exact: true }).waitFor()
    await page.getByLabel('State').selectOption('delivered')
    await page.getByRole('heading', { name: 'No delivery matches' }).waitFor()
    await page.goto(`${url}/console/audit`)
    await page.getByText('olive@example.com').first().waitFor()
    t.same(complaints(), [])
  })

  await t.test('a database that is away is told of, and the page goes on by itself', async (t) => {
    await page.goto(`${url}/console`)
    await page.getByRole('status').getByText('Live', { exact: true }).waitFor()
    scene.cut()
    await page.getByText('Not up to date').waitFor()
    await page.getByRole('link', { name: 'Calls', exact: true }).click()
    await page.getByText('The service is not available.').waitFor()
    await page.getByText('It is asked again by itself.').waitFor()
    await page.goto(`${url}/console/workers`)
    await page.getByText('The service is not available.').waitFor()
    await page.goto(`${url}/sign-in`)
    await page.getByText('The service is not available').waitFor()
    t.match(await page.title(), /Busy/)
    await page.goto(`${url}/console/workers`)
    await page.getByText('It is asked again by itself.').waitFor()
    scene.mend()
    await page.getByRole('heading', { name: 'Workers' }).waitFor()
  })

  await t.test('a session that is over loses nothing that was typed', async (t) => {
    await page.goto(`${url}/console/persons`)
    await page.getByLabel('First name').fill('Emmy')
    await page.getByLabel('Last name').fill('Noether')
    await sql`delete from user_sessions where user_id = ${userId}`
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'You are signed out' })
    await dialog.waitFor()
    const opened = page.context().waitForEvent('page')
    await dialog.getByRole('link').click()
    const other = await opened
    await other.getByLabel('E-mail address').fill('olive@example.com')
    await other.getByLabel('Password').fill('correct horse battery staple')
    await other.getByRole('button', { name: 'Sign in' }).click()
    await other.waitForURL(`${url}/console/persons`)
    await other.close()
    await dialog.getByRole('button', { name: 'Close this' }).click()
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('link', { name: 'Emmy Noether' }).waitFor()
    await page.goto(`${url}/console`)
    await page.getByRole('heading', { name: 'No call at this moment' }).waitFor()
    await sql`delete from user_sessions where user_id = ${userId}`
    await page.getByRole('link', { name: 'Calls', exact: true }).click()
    await page.waitForURL(/\/sign-in\?returnTo=%2Fconsole%2Fcalls/)
    await page.getByLabel('E-mail address').fill('olive@example.com')
    await page.getByLabel('Password').fill('correct horse battery staple')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(`${url}/console/calls`)
    t.same(complaints(), [])
  })

  await t.test('a call of four hours is as quick as a short one', async (t) => {
    const { id } = await post('webhook-subscriptions', { url: 'https://crm.example/all', eventType: '*' })
    const callId = await insertLongCall(scene, id)
    await isSmooth(t, page, `${url}/console/calls/${callId}`)
    t.same(complaints(), [])
  })

  await t.test('ten thousand calls are listed page by page', async (t) => {
    await insertManyCalls(scene, 10_000)
    await page.goto(`${url}/console/calls`)
    const rows = page.locator('main tbody tr')
    await until(async () => (await rows.count()) === 50)
    const first = await rows.first().textContent()
    for (let turned = 0; turned < 3; turned++) {
      const before = (await rows.first().textContent()) ?? ''
      await page.getByRole('link', { name: 'Older' }).click()
      await until(async () => (await rows.first().textContent()) !== before && (await rows.count()) === 50)
    }
    await page.getByRole('link', { name: 'Newest' }).click()
    await until(async () => (await rows.first().textContent()) === first)
    const { nodes, requests } = await sizeOf(page)
    t.ok(nodes < 1_500, `${nodes} nodes`)
    t.ok(requests < 12, `${requests} requests`)
    t.same(complaints(), [])
  })
})

/** Since the page was opened: what stands in it, what it has asked the API, and the longest that it let nothing else happen. */
const sizeOf = (page: Page) =>
  page.evaluate(`(() => {
    const asked = performance.getEntriesByType('resource').filter(({ name }) => new URL(name).pathname.startsWith('/v1/'))
    return {
      nodes: document.querySelectorAll('main *').length,
      requests: asked.length,
      bytes: asked.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
      longest: Math.max(0, ...(globalThis.longTasks ?? [])),
    }
  })()`) as Promise<{ nodes: number; requests: number; bytes: number; longest: number }>

const watchTasks = `globalThis.longTasks = []
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ['longtask'] })`

async function isSmooth(t: Test, page: Page, address: string): Promise<void> {
  await page.addInitScript(watchTasks)
  await page.goto(address)
  await page.getByText('What was said as number 0 of').first().waitFor()
  await page.getByText('Step by step (12,000)').waitFor()
  const whole = await sizeOf(page)
  t.ok(whole.nodes < 4_000, `${whole.nodes} nodes for ${longTurns} turns`)
  t.ok(whole.requests < 40 && whole.bytes < 8_000_000, `${whole.requests} requests, ${whole.bytes} bytes`)

  const axis = page.getByRole('region', { name: 'Time axis' })
  const told = axis.getByRole('group', { name: 'Webhooks' }).getByRole('button').last()
  t.match(await told.getAttribute('title'), /^1[23]\d here/, 'what came after the end stands at the end')
  t.equal(await told.getAttribute('class'), 'mark bad', 'of many the gravest shows')
  const asked = axis.getByRole('group', { name: 'Tools, hooks' }).getByRole('button')
  const marks = await asked.evaluateAll((all) => all.map((one) => Number(/^([\d,]+) here/.exec(one.title)?.[1] ?? 1)))
  t.equal(
    marks.reduce((sum, mark) => sum + mark),
    longTools,
    'each stands there',
  )
  const drawn = () => page.evaluate("document.querySelector('.waveform canvas').toDataURL()")
  const all = await drawn()
  for (let closer = 0; closer < 9; closer++) await axis.getByRole('button', { name: 'Look closer' }).click()
  const agent = axis.getByRole('group', { name: 'Agent', exact: true })
  await agent.getByText('What was said as number').first().waitFor()
  await until(async () => (await drawn()) !== all)
  t.match(await axis.textContent(), /1:59:\d\d to 2:00:\d\d/)
  await axis.getByRole('button', { name: 'Look later' }).click()
  await agent.getByRole('button').first().focus()
  await page.keyboard.press('ArrowRight')
  t.match(await page.evaluate('document.activeElement.title'), /What was said as number 250\d/)
  t.match(await axis.locator('.mark-told').textContent(), /^Agent: What was said/)
  await page.keyboard.press('0')
  await until(async () => (await drawn()) === all)
  const box = await axis.locator('.waveform-room').boundingBox()
  if (!box) throw new Error('there is no waveform')
  await page.mouse.move(box.x + box.width * 0.25, box.y + 40)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 4 })
  await page.mouse.up()
  await axis.getByText(/^(?:59|1:00):\d\d to (?:1:59|2:00):\d\d$/).waitFor()
  await axis.getByRole('button', { name: 'Whole call' }).click()
  await until(async () => (await drawn()) === all)

  await page.getByText('Step by step (12,000)').click()
  await page.getByRole('button', { name: 'Next' }).last().click()
  await page.getByText('201 to 400 of 12,000').waitFor()
  await page.getByRole('region', { name: 'Transcript', exact: true }).last().focus()
  await page.keyboard.press('End')
  await page.getByRole('button', { name: /^Later \(/ }).click()
  await page.getByText('What was said as number 100 of').first().waitFor()
  const after = await sizeOf(page)
  t.ok(after.nodes < 5_000, `${after.nodes} nodes after it was looked through`)
  t.ok(after.longest < 4_000, `nothing took longer than ${after.longest} ms`)
}

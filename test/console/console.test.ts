/** The console in a real browser: who gets in, what the policy says to it, and that each page shows what the account has. docs/console.md. */
import type { Locator } from 'playwright-core'
import { test } from 'tap'
import { toBytes } from '../../model/bus-json.ts'
import { qualitySubjectOf } from '../../model/live-quality.ts'
import { seriousFindings } from '../peers/axe.ts'
import { arrives, complaintsOf, sees, tellPolicy } from '../peers/browser-page.ts'
import { browsers } from '../peers/browsers.ts'
import { hasChromium } from '../peers/chromium.ts'
import { insertTalk, openBrowsers, openConsole } from '../scenes/console.ts'
import { openForbiddenScript } from '../scenes/forbidden-script.ts'
import { until } from '../scenes/in-time.ts'
import { password } from '../scenes/people.ts'
import { insertCall, insertTurns } from '../scenes/seeded-api.ts'

const skip = hasChromium() ? false : 'no Chromium'

test('in the console', { skip }, async (t) => {
  const scene = await openConsole(t)
  const { url, sql, own, addUser, clock } = scene
  await addUser('olive@example.com', 'owner')
  const signIn = await openBrowsers(t, scene)
  const { page, complaints } = await signIn('olive@example.com')

  await t.test('nobody is let in who is not signed in, and comes back to where they wanted', async (t) => {
    const stranger = await signIn(null)
    await stranger.page.goto(`${url}/console/calls?status=failed`)
    t.equal(stranger.page.url(), `${url}/sign-in?returnTo=%2Fconsole%2Fcalls%3Fstatus%3Dfailed`)
    const answer = await stranger.page.request.get(`${url}/console/session`)
    t.equal(answer.status(), 401)
    t.same(stranger.complaints, [])
    await stranger.page.goto(await openForbiddenScript(t))
    await until(() => stranger.complaints.some((complaint) => complaint.startsWith('policy: script-src-elem inline')))
    await stranger.page.context().close()
  })

  await t.test('a call shows as soon as it runs, what is said in it, and goes when it ends', async (t) => {
    await page.getByRole('heading', { name: 'No call at this moment' }).waitFor()
    const began = clock.now()
    const running = {
      progress: 'in_progress',
      transport: 'sip_trunk',
      fromNumber: '+4930123456',
      startedAt: began,
      createdAt: began,
    }
    const callId = await insertCall(sql, own.id, own.worker.id, running)
    await page.getByRole('link', { name: '+4930123456' }).waitFor()
    await insertTurns(sql, own.id, callId, [
      { role: 'user', text: 'Is anybody there?', from: 100, to: 900, confidence: null, source: null },
    ])
    await page.getByText('Is anybody there?').waitFor()
    const heard = { codec: 'pcma', packetMs: 20, roundTripMs: 40, concealedMs: 0, lateFrames: 3 }
    const ways = { received: { packets: 1_000, lost: 4, jitterMs: 2 }, sent: { packets: 900, lost: 0, jitterMs: 7.4 } }
    scene.deps.bus.publish(qualitySubjectOf(callId), toBytes({ ...heard, ...ways }))
    await page.getByText('0.4 % lost, 7 ms jitter, 3 late').waitFor()
    scene.deps.bus.publish(qualitySubjectOf(callId), toBytes({ codec: 'of another version' }))
    await page.getByText('0.4 % lost, 7 ms jitter, 3 late').waitFor({ state: 'detached' })
    t.match(await page.locator('main .lead').textContent(), '1 call now, 1 talking')
    await page.getByRole('status').filter({ hasText: '1 call now, 1 talking' }).waitFor({ state: 'attached' })
    await sql`update calls set progress = 'completed', outcome = 'completed', ended_at = ${clock.now()} where id = ${callId}`
    await page.getByRole('heading', { name: 'No call at this moment' }).waitFor()
  })

  await t.test('calls are found by filters that stand in the address', async (t) => {
    const callId = await insertTalk(scene, clock.now() - 3_600_000)
    await page.getByRole('link', { name: 'Calls', exact: true }).click()
    await page.getByRole('link', { name: 'Grace Hopper' }).waitFor()
    t.same(await seriousFindings(page), [])
    await page.getByLabel('Said in it').fill('appointment unicorn')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'No call matches' }).waitFor()
    await page.getByLabel('Said in it').fill('Appointment')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Grace Hopper' }).waitFor()
    t.equal(page.url(), `${url}/console/calls?q=Appointment`)
    await page.getByRole('link', { name: 'Clear' }).click()
    await page.getByLabel('Direction').selectOption('outbound')
    await page.getByRole('heading', { name: 'No call matches' }).waitFor()
    t.equal(page.url(), `${url}/console/calls?direction=outbound`)
    await page.goBack()
    await page.getByRole('link', { name: 'Grace Hopper' }).click()
    await page.waitForURL(`${url}/console/calls/${callId}`)
    await page.getByText('Half past two is perfect.').first().waitFor()
  })

  await t.test('a call is heard from where one clicks, and values from where they were said', async (t) => {
    await page.getByRole('heading', { name: 'Why it ended' }).waitFor()
    t.match(await page.locator('.sentence').textContent(), /The other side hung up/)
    await page
      .getByRole('button', { name: /Thursday in the afternoon/ })
      .last()
      .click()
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    await page.locator('.turn.now').getByText('Thursday in the afternoon').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Play', exact: true }).waitFor()
  })

  await t.test('its messages stand as a ladder, each whole where one opens it, and its log is replayed', async (t) => {
    const ladder = page.getByRole('region', { name: 'Signaling' })
    t.same(await ladder.locator('.ladder-arrow bdi').allTextContents(), [
      'INVITE, SDP',
      '100 Trying (INVITE)',
      '180 Ringing (INVITE)',
      '200 OK (INVITE), SDP',
      'ACK',
      'BYE',
      '200 OK (BYE)',
    ])
    const first = ladder.locator('li').first()
    t.equal(await first.locator('pre').count(), 0)
    await first.locator('summary').click()
    t.match(await first.locator('pre').textContent(), /^INVITE sip:.*m=audio 40000 RTP/s)
    const download = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Capture (pcap)' }).click()
    t.match((await download).suggestedFilename(), /\.pcap$/)
    t.same(await seriousFindings(page), [])
    await page.getByRole('button', { name: 'Replay the log' }).click()
    await page.getByText('There is no log').waitFor()
  })

  await t.test('what callers say is text, whatever it is', async (t) => {
    const callId = await insertCall(sql, own.id, own.worker.id, {
      progress: 'completed',
      outcome: 'completed',
      startedAt: clock.now(),
      endedAt: clock.now(),
    })
    const texts = [
      '<img src=x onerror="document.title=1"><script>document.title=2</script>',
      '\u202Eesrever\u2066',
      'x'.repeat(100_000),
    ]
    await insertTurns(
      sql,
      own.id,
      callId,
      texts.map((text, index) => ({
        role: 'user',
        text,
        from: index * 1_000,
        to: index * 1_000 + 900,
        confidence: null,
        source: null,
      })),
    )
    await page.goto(`${url}/console/calls/${callId}`)
    await page.locator('.words').first().waitFor()
    t.equal(await page.locator('.words').first().textContent(), texts[0])
    t.equal(await page.locator('.words bdi').nth(1).textContent(), texts[1])
    t.equal(await page.locator('main img, main script').count(), 0)
    t.match(await page.locator('.words').nth(2).textContent(), /^x{1500} …Show all/)
    const [wide, room] = (await page.evaluate('[document.documentElement.scrollWidth, innerWidth]')) as [number, number]
    t.ok(wide <= room, 'a word of any length is broken')
  })

  await t.test('a first load is small', async (t) => {
    const fresh = await signIn('olive@example.com')
    const sizes = (await fresh.page.evaluate(
      "performance.getEntriesByType('resource').map(({ name, encodedBodySize }) => [name, encodedBodySize])",
    )) as [string, number][]
    const bytes = sizes.reduce((sum, [, size]) => sum + size, 0)
    t.ok(sizes.length > 5 && bytes > 5_000 && bytes <= 150_000, `${bytes} bytes in ${sizes.length} files`)
    const sheets = (await fresh.page.evaluate(
      `Promise.all([...document.styleSheets].map(async ({ href, cssRules }) =>
        [href.split('/').at(-1), cssRules.length > 3 || cssRules[0].style.length > 20, (await fetch(href)).headers.get('content-type')]))`,
    )) as [string, boolean, string][]
    t.equal(sheets[0]?.[0], 'colours.css', 'others take their colours from it')
    t.ok(sheets.length >= 5 && sheets.every(([, isRead, type]) => isRead && type === 'text/css; charset=utf-8'))
    await fresh.page.context().close()
  })

  const [, firefox] = browsers()
  await t.test(
    'in Firefox, too: signing in, the calls of this moment, a call, and what a policy keeps away',
    { skip: firefox.skip },
    async (t) => {
      const running = {
        progress: 'in_progress',
        transport: 'sip_trunk',
        fromNumber: '+4940987654',
        startedAt: clock.now(),
      }
      const runningId = await insertCall(sql, own.id, own.worker.id, running)
      const callId = await insertTalk(scene, clock.now() - 7_200_000)
      const other = await firefox.open()
      t.teardown(() => other.close())
      await other.preload(tellPolicy)
      await other.goto(`${url}/sign-in?returnTo=%2Fconsole`)
      await other.evaluate(`(() => {
      document.querySelector('input[type=email]').value = 'olive@example.com'
      document.querySelector('input[type=password]').value = ${JSON.stringify(password)}
      document.querySelector('input[type=password]').form.requestSubmit()
    })()`)
      await arrives(other, '/console')
      await sees(other, "document.querySelector('main')?.textContent.includes('+4940987654')")
      await sql`update calls set progress = 'completed', outcome = 'completed', ended_at = ${clock.now()} where id = ${runningId}`
      await sees(other, "document.querySelector('main').textContent.includes('No call at this moment')")
      await other.goto(`${url}/console/calls/${callId}`)
      await sees(other, "document.querySelector('.turns')?.textContent.includes('Half past two is perfect.')")
      await sees(other, "document.querySelector('main canvas, main svg') !== null")
      t.same(complaintsOf(other), [], 'the policy kept nothing away')
      await other.goto(await openForbiddenScript(t))
      await until(() => complaintsOf(other).includes('policy: script-src-elem inline'), other.complaints)
      t.equal(await other.evaluate('document.title'), 'kept away', 'and would have told of it')
    },
  )

  await t.test('a viewer looks, and is offered nothing that is not theirs', async (t) => {
    await addUser('vera@example.com', 'viewer')
    const viewer = await signIn('vera@example.com')
    await viewer.page.goto(`${url}/console/workers/${own.worker.id}`)
    await viewer.page.getByRole('heading', { name: 'How it talks' }).waitFor()
    t.equal(await viewer.page.getByRole('button', { name: 'Save' }).count(), 0)
    const running = { progress: 'in_progress', transport: 'sip_trunk', startedAt: clock.now() }
    const callId = await insertCall(sql, own.id, own.worker.id, running)
    await viewer.page.goto(`${url}/console/calls/${callId}`)
    const sound = viewer.page.getByRole('region', { name: 'Sound now' })
    await sound.waitFor()
    const way = { packets: 500, lost: 10, jitterMs: 4 }
    const told = {
      codec: 'pcma',
      packetMs: 20,
      roundTripMs: 40,
      concealedMs: 0,
      lateFrames: 0,
      received: way,
      sent: null,
    }
    await until(async () => {
      scene.deps.bus.publish(qualitySubjectOf(callId), toBytes({ ...told, ofMs: 10_000 }))
      return (await sound.textContent())?.includes('2.0 % lost, 4 ms jitter')
    })
    t.match(await sound.textContent(), /Of the last 10 seconds\./)
    t.equal(await viewer.page.getByRole('button', { name: 'Listen' }).count(), 0)
    await viewer.page.goto(`${url}/console/audit`)
    await viewer.page.getByRole('heading', { name: 'Not for viewers' }).waitFor()
    t.same(viewer.complaints, [])
    await viewer.page.context().close()
  })

  await t.test('of a long list what is in sight is drawn at each change, and the rest now and then', async (t) => {
    const [now, count] = [clock.now(), 60]
    const running = { progress: 'in_progress', transport: 'sip_trunk', startedAt: now }
    for (let number = 0; number < count; number++)
      await insertCall(sql, own.id, own.worker.id, { ...running, createdAt: now - number })
    await page.goto(`${url}/console`)
    const rows = page.locator('main tbody tr')
    await until(async () => (await rows.count()) >= count)
    let turn = -1
    const isToldTo = (row: Locator) => row.getByText(`Said as ${turn}.`)
    const firstKnowsMore = async () => {
      turn++
      await sql`
        insert into transcript_turns (call_id, account_id, turn_index, role, text, from_ms, to_ms)
        select id, account_id, 100 + ${turn}::integer, 'user', ${`Said as ${turn}.`}, 100, 900 from calls where progress = 'in_progress'`
      await isToldTo(rows.first()).waitFor()
      return (await isToldTo(rows.last()).count()) === 0
    }
    // Not where it was the turn of the rest.
    await until(firstKnowsMore)
    t.ok((await page.locator('[data-in-sight]').count()) < count)
    await rows.last().scrollIntoViewIfNeeded()
    await isToldTo(rows.last()).waitFor()
  })

  t.same(complaints, [], 'the browser complains of nothing, and its policy kept nothing away')
})

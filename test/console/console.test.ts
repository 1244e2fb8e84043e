/** The console in a real browser: who gets in, what the policy says to it, and that each page shows what the account has. docs/console.md. */
import { test } from 'tap'
import { seriousFindings } from '../peers/axe.ts'
import { hasChromium } from '../peers/chromium.ts'
import { insertTalk, openBrowsers, openConsole } from '../scenes/console.ts'
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
    t.match(await page.locator('main .lead').textContent(), '1 call now, 1 talking')
    await sql`update calls set progress = 'completed', outcome = 'completed', ended_at = ${clock.now()} where id = ${callId}`
    await page.getByRole('heading', { name: 'No call at this moment' }).waitFor()
  })

  await t.test('calls are found by filters that stand in the address', async (t) => {
    const callId = await insertTalk(scene, clock.now() - 3_600_000)
    await page.getByRole('link', { name: 'Calls', exact: true }).click()
    await page.getByRole('link', { name: 'Grace Hopper' }).waitFor()
    t.same(await seriousFindings(page), [])
    await page.getByLabel('Direction').selectOption('outbound')
    await page.getByRole('heading', { name: 'No call matches' }).waitFor()
    t.equal(page.url(), `${url}/console/calls?direction=outbound`)
    await page.goBack()
    await page.getByRole('link', { name: 'Grace Hopper' }).click()
    await page.waitForURL(`${url}/console/calls/${callId}`)
    await page.getByText('Half past two is perfect.').waitFor()
  })

  t.same(complaints, [], 'the browser complains of nothing, and its policy kept nothing away')
})

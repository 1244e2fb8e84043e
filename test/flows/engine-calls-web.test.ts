/**
 * A browser holds a conversation of ten turns with every engine: a page in Chromium with the service's own client, real WebRTC, the whole service, and
 * providers that speak their protocols. The caller listens, answers each question, speaks into one, and a tool of the call is asked.
 */
import { test } from 'tap'
import { hasChromium, openChromium } from '../peers/chromium.ts'
import { holdTenTurns } from '../scenes/ten-turns/caller.ts'
import { callFromPage } from '../scenes/ten-turns/page.ts'
import { everyEngine, openTenTurns } from '../scenes/ten-turns/stage.ts'

const skip = hasChromium() ? false : 'no /usr/bin/chromium'

test('a browser talks with every engine', { skip, timeout: 170_000 }, async (t) => {
  const { stage, speeches, lineOf, prove, end } = await openTenTurns(t)
  const browser = await openChromium()
  t.teardown(() => browser.close())

  t.jobs = 2
  await Promise.all(
    everyEngine.map((engine) =>
      t.test(`${engine}: ten turns, one of them spoken into, and a tool`, { buffered: true }, async (t) => {
        const session = await stage.rest('POST', '/web-calls', { workerId: lineOf(engine).workerId })
        const caller = await callFromPage(browser, stage.service.url, session)
        await holdTenTurns(caller, speeches)
        await prove(t, engine)
        const interruptions = caller.told.filter(({ type }) => type === 'interrupted')
        t.equal(interruptions.length, 1, 'the page was told of the interruption, once')
        const problems = caller.told.filter(({ type }) => type === 'problem')
        t.same([...caller.complaints, ...problems], [], 'the page has nothing to complain about')
        await caller.close()
      }),
    ),
  )
  await end(t)
})

/** The example of an integrator: a page of another origin, whose own server has the key, calls in a real browser. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { test } from 'tap'
import { createPage } from '../../gateway/page.ts'
import { hasChromium, openChromium } from '../peers/chromium.ts'
import { callId, setUpStage } from '../scenes/front-door.ts'

const skip = hasChromium() ? false : 'there is no Chromium'
const program = path.resolve(import.meta.dirname, '../../sdk/example/server.js')

test(
  'the page of a shop calls from its own origin, with a session of its own server',
  { skip, timeout: 90_000 },
  async (t) => {
    const serve = createPage()
    const asked: (string | null)[] = []
    const stage = await setUpStage(t, {
      async fetch(request) {
        const { pathname, host } = new URL(request.url)
        if (pathname !== '/v1/accounts/shop/web-calls') return serve(request) ?? new Response(null, { status: 404 })
        asked.push(request.headers.get('x-api-key'), await request.text())
        const signalingUrl = `ws://${host}/v1/signaling`
        return Response.json({
          callId,
          sessionId: 'session-1',
          signalingUrl,
          token: 'good',
          iceServers: [],
          expiresAt: '',
        })
      },
    })
    const args = [program, `http://127.0.0.1:${stage.port}`, 'vk_key', 'shop', 'worker-1', '0']
    const shop = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => shop.kill())
    const [address] = (await once(shop.stdout, 'data')) as [Buffer]
    const browser = await openChromium()
    t.teardown(() => browser.close())
    const page = await browser.context.newPage()
    await page.goto(address.toString().trim())
    await page.getByRole('button', { name: 'Call us' }).click()
    await page.getByText('connected').waitFor()
    stage.say({
      type: 'transcript',
      role: 'agent',
      text: 'Good morning.',
      isFinal: true,
      turnIndex: 0,
      ts: '2026-01-01T00:00:00.000Z',
    })
    await page.getByText('agent: Good morning.').waitFor()
    t.same(asked, ['vk_key', '{"workerId":"worker-1"}'])
    t.notMatch(await page.content(), /vk_key/)

    const refusal = { statusCode: 400, type: 'WEB_CALL_CAPACITY_EXCEEDED', details: 'There is no room.' }
    const told = await page.evaluate(`import('http://127.0.0.1:${stage.port}/parley-client.js').then(({ createCall }) =>
      new Promise((resolve) => createCall({ session: async () => (${JSON.stringify(refusal)}) }).on('error', resolve)))`)
    t.match(
      told,
      { code: 'session_failed', sentence: refusal.details, isFatal: true },
      'a refusal that was passed on is told in its own words',
    )
  },
)

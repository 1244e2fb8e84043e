/** The hooks of the browser SDK, with React itself, in a real browser against a real front door. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'tap'
import { createPage } from '../../gateway/page.ts'
import { hasChromium, openChromium } from '../peers/chromium.ts'
import { callId, setUpStage } from '../scenes/front-door.ts'

const skip = hasChromium() ? false : 'there is no Chromium'

const require = createRequire(import.meta.url)
/** `umd/` is no address of the package to others than browsers. */
const script = (name: string): string =>
  readFileSync(
    path.join(path.dirname(require.resolve(`${name}/package.json`)), `umd/${name}.production.min.js`),
    'utf8',
  )

/** React's own builds are scripts; the hooks import a module. */
const reactModule = `export const { useCallback, useEffect, useRef, useState, useSyncExternalStore } = React`

const html = `<!doctype html>
<script src="/react.js"></script><script src="/react-dom.js"></script>
<script type="importmap">{ "imports": { "react": "/react-module.js" } }</script>
<div id="root"></div>
<script type="module">
  import { useCallEvent, useLevel, useParleyCall } from '/sdk/parley-react.js'
  const { createElement: make, useState } = React
  const session = async () => (await fetch('/session')).json()
  function Talk() {
    const { call, state, isOn, start, hangUp } = useParleyCall()
    const { you } = useLevel(call)
    const [cuts, setCuts] = useState(0)
    useCallEvent(call, 'interrupted', () => setCuts(cuts + 1))
    return make('main', null,
      make('button', { onClick: () => (isOn ? hangUp() : start({ session })) }, isOn ? 'Hang up' : 'Call'),
      make('output', null, [state?.status, 'cut ' + cuts, you > 0 ? 'heard' : 'silent'].join(', ')),
      ...(state?.transcript ?? []).map((line) => make('p', { key: line.turnIndex }, line.text)))
  }
  const root = ReactDOM.createRoot(document.getElementById('root'))
  root.render(make(Talk))
  globalThis.leave = () => root.unmount()
</script>`

const files: Readonly<Record<string, readonly [type: string, body: () => string]>> = {
  '/react.js': ['text/javascript', () => script('react')],
  '/react-dom.js': ['text/javascript', () => script('react-dom')],
  '/react-module.js': ['text/javascript', () => reactModule],
  '/shop': ['text/html', () => html],
}

test(
  'a component calls, shows what is said and heard, and takes the call along when it goes',
  { skip, timeout: 90_000 },
  async (t) => {
    const serve = createPage()
    const stage = await setUpStage(t, {
      async fetch(request) {
        const { pathname, host } = new URL(request.url)
        const [type, body] = files[pathname] ?? []
        if (type && body) return new Response(body(), { headers: { 'content-type': type } })
        if (pathname !== '/session') return serve(request) ?? new Response(null, { status: 404 })
        const expiresAt = new Date(Date.now() + 120_000).toISOString()
        const signalingUrl = `ws://${host}/v1/signaling`
        return Response.json({ callId, sessionId: 'session-1', signalingUrl, token: 'good', iceServers: [], expiresAt })
      },
    })
    const browser = await openChromium()
    t.teardown(() => browser.close())
    const page = await browser.context.newPage()
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(`http://127.0.0.1:${stage.port}/shop`)
    await page.getByRole('button', { name: 'Call' }).click()
    await page.getByText('connected, cut 0, heard').waitFor()
    const line = { type: 'transcript', role: 'agent', turnIndex: 0, ts: '2026-01-01T00:00:00.000Z' }
    stage.say({ ...line, text: 'Good', isFinal: false })
    stage.say({ ...line, text: 'Good morning.', isFinal: true })
    stage.say({ type: 'interrupted' })
    await page.getByText('Good morning.').waitFor()
    await page.getByText('cut 1').waitFor()
    t.equal(await page.locator('p').count(), 1)
    await page.evaluate('leave()')
    await page.waitForFunction(`document.getElementById('root').childElementCount === 0`)
    await new Promise<void>((resolve) => {
      const look = (): void => (stage.signaling.sessions() === 0 ? resolve() : void setTimeout(look, 20))
      look()
    })
    t.same(complaints, [])
  },
)

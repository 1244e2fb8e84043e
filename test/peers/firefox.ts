/**
 * Owns a headless Firefox with a fake microphone, for tests that need the other browser. It is driven by WebDriver BiDi, which Debian's
 * build speaks; playwright's Firefox is a build of its own.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { WebSocket } from 'ws'
import type { BrowserOptions, BrowserPage } from './browser-page.ts'

export const firefoxPath = '/usr/bin/firefox-esr'

/** Nothing but loopback is asked for: what is not a call of the test goes to a proxy that is not there. */
const deadPort = 9
const preferences = {
  'network.dns.disabled': true,
  'network.proxy.type': 1,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': deadPort,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': deadPort,
  'network.proxy.no_proxies_on': '127.0.0.1',
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'app.normandy.enabled': false,
  'browser.safebrowsing.malware.enabled': false,
  'browser.safebrowsing.phishing.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'extensions.getAddons.cache.enabled': false,
  'extensions.update.enabled': false,
  'media.autoplay.default': 0,
  'media.navigator.streams.fake': true,
  'media.navigator.permission.disabled': true,
  'permissions.default.microphone': 1,
} as const

export async function openFirefox({ speech }: BrowserOptions = {}): Promise<BrowserPage> {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-firefox-'))
  const lines = Object.entries(preferences).map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});`)
  await writeFile(path.join(folder, 'user.js'), lines.join('\n'))
  const flags = ['--headless', '--no-remote', '--remote-debugging-port', '0', '--profile', folder, 'about:blank']
  const env = { ...process.env, MOZ_CRASHREPORTER_DISABLE: '1' }
  const child = spawn(firefoxPath, flags, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  async function end(): Promise<void> {
    child.kill('SIGKILL')
    await exited
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    const bidi = await connect(await addressOf(child))
    const page = await pageOf(bidi, end)
    if (speech !== undefined) await page.preload(speakingMicrophone((await readFile(speech)).toString('base64')))
    return page
  } catch (error) {
    await end()
    throw error
  }
}

/** Firefox tells its port on stderr. Throws with its own words when it does not come up. */
async function addressOf(child: { readonly stderr: Readable }): Promise<string> {
  const said: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    const address = /WebDriver BiDi listening on (ws:\/\/\S+)/.exec(line)?.[1]
    said.push(line)
    if (address) return (child.stderr.resume(), address)
  }
  throw new Error(`Firefox did not come up: ${said.join('\n')}`)
}

async function pageOf(bidi: Bidi, end: () => Promise<void>): Promise<BrowserPage> {
  await bidi.ask('session.new', { capabilities: {} })
  const tree = await bidi.ask<{ contexts: { context: string }[] }>('browsingContext.getTree', {})
  const [top] = tree.contexts
  if (!top) throw new Error('Firefox has no page')
  const { context } = top
  await bidi.ask('session.subscribe', { events: ['log.entryAdded'] })
  return {
    goto: async (url) => void (await bidi.ask('browsingContext.navigate', { context, url, wait: 'complete' })),
    async evaluate<Value>(expression: string): Promise<Value> {
      const answer = await bidi.ask<Evaluated>('script.evaluate', {
        expression: `Promise.resolve(${expression}).then((value) => JSON.stringify(value ?? null))`,
        target: { context },
        awaitPromise: true,
        userActivation: true,
      })
      if (answer.type === 'exception') throw new Error(answer.exceptionDetails.text)
      return JSON.parse(answer.result.value) as Value
    },
    preload: async (script) =>
      void (await bidi.ask('script.addPreloadScript', { functionDeclaration: `() => {${script}}` })),
    complaints: bidi.complaints,
    async closeTab() {
      // Firefox ends with its last tab.
      await bidi.ask('browsingContext.create', { type: 'tab' })
      await bidi.ask('browsingContext.close', { context, promptUnload: false })
    },
    async close() {
      bidi.close()
      await end()
    },
  }
}

/**
 * Firefox's fake microphone knows one tone: this one plays a WAV file from the moment it is asked for. An element plays without a sound
 * card, an AudioContext does not.
 */
const speakingMicrophone = (wav: string): string => `
  const speech = Uint8Array.from(atob('${wav}'), (character) => character.charCodeAt(0))
  if (navigator.mediaDevices) navigator.mediaDevices.getUserMedia = async () => {
    const player = new Audio(URL.createObjectURL(new Blob([speech], { type: 'audio/wav' })))
    const microphone = player.mozCaptureStream()
    await player.play()
    return microphone
  }
`

type Evaluated =
  | { readonly type: 'success'; readonly result: { readonly value: string } }
  | { readonly type: 'exception'; readonly exceptionDetails: { readonly text: string } }

type Bidi = {
  ask<Answer>(method: string, params: object): Promise<Answer>
  complaints(): readonly string[]
  close(): void
}

/** Commands and their answers, and what the console shows. */
async function connect(address: string): Promise<Bidi> {
  const socket = new WebSocket(`${address}/session`)
  const waiting = new Map<number, PromiseWithResolvers<never>>()
  const complaints: string[] = []
  let asked = 0
  socket.on('message', (content: Buffer) => {
    const { id, type, result, error, message, params } = JSON.parse(content.toString())
    if (type === 'event') return void (params.level === 'error' && complaints.push(params.text))
    const asker = waiting.get(id)
    waiting.delete(id)
    if (type === 'success') asker?.resolve(result as never)
    else asker?.reject(new Error(`${error}: ${message}`))
  })
  socket.on('close', () => {
    for (const { reject } of waiting.values()) reject(new Error('Firefox is gone'))
  })
  await once(socket, 'open')
  return {
    ask<Answer>(method: string, params: object): Promise<Answer> {
      const asker = Promise.withResolvers<never>()
      waiting.set(++asked, asker)
      socket.send(JSON.stringify({ id: asked, method, params }))
      return asker.promise
    },
    complaints: () => complaints,
    close: () => socket.terminate(),
  }
}

/**
 * Owns the caller of ten turns in Chromium: a page of the service with the browser client that integrators use, and a microphone into which the test
 * speaks when it likes.
 */
import type { Page } from 'playwright-core'
import { createHeard } from '../../../tools/start/self-test/hear-events.ts'
import { bytesOf } from '../../../model/frame.ts'
import type { OpenBrowser } from '../../peers/chromium.ts'
import type { CallerLine } from './caller.ts'

type Line = {
  readonly type: 'transcript'
  readonly role: string
  readonly text: string
  readonly isFinal: boolean
}

/** What the page tells of its call. */
type Told =
  | { readonly type: 'status'; readonly status: string; readonly reason: string | null }
  | Line
  | { readonly type: 'interrupted' }
  | { readonly type: 'problem'; readonly details: string }

export type PageCaller = CallerLine & {
  readonly told: readonly Told[]
  /** What the browser had to complain about. */
  readonly complaints: readonly string[]
  close(): Promise<void>
}

/** In the page. */
type InPage = {
  tell(told: Told): void
  speak(samples: string): void
  agentLoudAt: number
}

const microphone = `
  const context = new AudioContext({ sampleRate: 16000 })
  const line = context.createMediaStreamDestination()
  navigator.mediaDevices.getUserMedia = async () => line.stream.clone()
  window.agentLoudAt = -Infinity
  window.speak = (samples) => {
    const pcm = new Int16Array(Uint8Array.from(atob(samples), (letter) => letter.charCodeAt(0)).buffer)
    const buffer = context.createBuffer(1, pcm.length, 16000)
    buffer.copyToChannel(Float32Array.from(pcm, (sample) => sample / 32768), 0)
    const source = new AudioBufferSourceNode(context, { buffer })
    source.connect(line)
    source.start()
  }
`
/** Of the client's meter: above what a silent line has. */
const audible = 0.02
const look = { polling: 20, timeout: 120_000 } as const

/** `session`: as the API gave it. */
export async function callFromPage(browser: OpenBrowser, url: string, session: unknown): Promise<PageCaller> {
  const told: Told[] = []
  const complaints: string[] = []
  const heard = createHeard<Told>()
  const turns = createHeard<Line>()
  let count = 0
  const page = await openTelling(browser, url, (news) => {
    told.push(news)
    heard.take(news)
    if (news.type === 'transcript' && news.isFinal) turns.take(news)
  })
  page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())))
  page.on('pageerror', (error) => void complaints.push(error.message))
  await page.evaluate(placeCall, { session, audible })
  return {
    told,
    complaints,
    turn: () => turns.until(() => true, count++),
    sound: async () => void (await page.waitForFunction(isSounding, undefined, look)),
    silence: async (ms) => void (await page.waitForFunction(isSilent, ms, look)),
    say: (speech) => speakIn(page, speech),
    over: heard.until((news) => news.type === 'status' && news.status === 'ended'),
    seen: () => told,
    close: () => page.close(),
  }
}

/** A page that is opened beside others may never learn the function that it tells by: another one takes its place. */
async function openTelling({ context }: OpenBrowser, url: string, tell: (news: Told) => void): Promise<Page> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const page = await context.newPage()
    await page.exposeFunction('tell', tell)
    await page.addInitScript(microphone)
    await page.goto(url)
    const told = page.waitForFunction(() => 'tell' in globalThis, undefined, { timeout: 5_000 })
    if (await told.catch(() => null)) return page
    await page.close()
  }
  throw new Error('the page cannot tell of its call')
}

const isSilent = (ms: number): boolean => performance.now() - (globalThis as unknown as InPage).agentLoudAt > ms
const isSounding = (): boolean => performance.now() - (globalThis as unknown as InPage).agentLoudAt < 100

const speakIn = (page: Page, speech: Int16Array): Promise<void> =>
  page.evaluate(
    (samples) => (globalThis as unknown as InPage).speak(samples),
    Buffer.from(bytesOf(speech)).toString('base64'),
  )

/** Runs in the page, as an integrator's code does. */
async function placeCall({ session, audible }: { session: unknown; audible: number }): Promise<void> {
  const here = globalThis as unknown as InPage
  const address = '/parley-client.js'
  const { createCall } = (await import(address)) as { createCall(options: object): unknown }
  createCall({
    session,
    onStatus: (status: string, reason: string | null) => here.tell({ type: 'status', status, reason }),
    onTranscript: ({ role, text, isFinal }: Line) => here.tell({ type: 'transcript', role, text, isFinal }),
    onInterrupted: () => here.tell({ type: 'interrupted' }),
    onProblem: ({ details }: { details: string }) => here.tell({ type: 'problem', details }),
    onLevel({ agent }: { agent: number }) {
      if (agent > audible) here.agentLoudAt = performance.now()
    },
  })
}

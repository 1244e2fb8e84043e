/** The whole way: the page in a browser calls the demo worker with a spoken WAV as microphone, on the real service with default settings and the embedded engine. */
import { systemClock } from '../../app/clock.ts'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type Test } from 'tap'
import { replay } from '../../actors/call/machine/replay.ts'
import { newId } from '../../app/core.ts'
import { consoleLinkOf } from '../../tools/start/console-link.ts'
import { toId, type CallId } from '../../model/ids.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { createEmbeddedEngine } from '../../voice/engines/embedded/engine.ts'
import { complaintsOf, sees, tellPolicy, type BrowserPage } from '../peers/browser-page.ts'
import { browsers } from '../peers/browsers.ts'
import { openDemoService, type DemoService } from '../scenes/open-demo.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openFakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { spy } from '../scenes/page-call.ts'
import { parseWav } from '../scenes/parse-wav.ts'

const rateHz = 16000

type Engine = Awaited<ReturnType<typeof createEmbeddedEngine>>

/** Silence while the agent greets, then the same answer every few seconds: the test does not depend on how fast the machine is. */
async function spokenWav(engine: Engine, file: string): Promise<void> {
  const yes = await engine.speak('Yes, please.', 'slt')
  const track = new Int16Array(rateHz * 90)
  for (let second = 8; second < 85; second += 6) track.set(yes, second * rateHz)
  const bytes = new Uint8Array(track.buffer)
  await writeFile(file, Buffer.concat([wavHeaderOf({ rateHz, channels: 1 }, bytes.length), bytes]))
}

const packets = `peers.at(-1).getStats().then((stats) => {
  const of = (type) => [...stats.values()].find((entry) => entry.type === type && entry.kind === 'audio')
  const { packetsReceived: received = 0, totalAudioEnergy: energy = 0 } = of('inbound-rtp') ?? {}
  return { received, energy, sent: of('outbound-rtp')?.packetsSent ?? 0 }
})`
type Packets = { readonly received: number; readonly energy: number; readonly sent: number }

const packetsOf = (page: BrowserPage): Promise<Packets> => page.evaluate(packets)

/** A final line of the transcript that fits. */
const line = (page: BrowserPage, role: 'user' | 'agent', words: string): Promise<void> =>
  sees(
    page,
    `[...document.querySelectorAll('#transcript li[data-role=${role}][data-final=true]')]
      .some(({ textContent }) => /${words}/i.test(textContent))`,
  )

const press = (page: BrowserPage): Promise<void> => page.evaluate(`document.getElementById('call').click()`)

for (const browser of browsers())
  test(
    `a person calls from the page in ${browser.name}, is heard and answered, loses the socket, comes back and hangs up`,
    { skip: browser.skip, timeout: 180_000 },
    async (t) => {
      const engine = await createEmbeddedEngine({ log: createQuietLog(), clock: systemClock })
      t.teardown(() => engine.close())
      const { service, demo, database } = await openDemoService(t, engine)
      const receiver = await openFakeWebhookReceiver(t)
      const request = { eventType: '*', url: receiver.url('/all') } as const
      const subscription = await createSubscription(service.sql, service.box, {
        accountId: demo.accountId,
        request,
        newId,
        now: Date.now(),
      })
      receiver.trust('/all', subscription.signingSecret ?? '')
      receiver.script('/all', [{ status: 200, body: '{}' }], { forever: true })
      const wav = path.join(database.dataDir, 'answers.wav')
      await spokenWav(engine, wav)
      const page = await browser.open({ speech: wav })
      t.teardown(() => page.close())
      await page.preload(spy)
      await page.preload(tellPolicy)
      await page.goto(service.url)

      await press(page)
      await line(page, 'agent', 'welcome to Parley')
      const before = await packetsOf(page)
      t.ok(before.energy > 0, 'the agent is heard')
      await line(page, 'user', 'yes')

      await page.evaluate('sockets.at(-1).close(4000)')
      await sees(page, `sockets.at(-1).url.includes('resume=')`)
      await line(page, 'agent', 'where would')
      const after = await packetsOf(page)
      t.ok(
        after.received > before.received && after.sent > before.sent,
        'sound went on both ways while the socket was gone',
      )
      const picture = process.env['SCREENSHOT']
      if (picture) await page.screenshot?.(picture)

      await press(page)
      const ended = await receiver.next('call.ended')
      const told = ended.data as { callId: string; status: string; recordingAvailable: boolean; transcript: unknown[] }
      t.match(told, { status: 'completed', recordingAvailable: true })
      t.equal(receiver.counts().refused, 0, 'every delivery was signed as documented')
      t.equal(receiver.deliveries.at(-1)?.type, 'call.ended', 'nothing comes after it')
      t.same(page.complaints(), [], 'the page has nothing to complain about')

      const get = async (what: string) => {
        const answer = await fetch(`${service.url}/v1/accounts/${demo.accountId}/phone-calls/${told.callId}${what}`, {
          headers: { 'x-api-key': demo.apiKey ?? '' },
        })
        return (await answer.json()) as Record<string, unknown> & { url: string }
      }
      t.match(await get(''), {
        status: 'completed',
        direction: 'inbound',
        postProcessingStatus: 'completed',
        outcome: 'completed',
      })
      const transcript = (await get('/transcript')) as unknown as { speaker: string; timestamps: { from: string } }[]
      t.same(new Set(transcript.map((segment) => segment.speaker)), new Set(['user', 'agent']))
      t.same(transcript, told.transcript, 'call.ended carries the same transcript')

      const audio = await get('/audio/url')
      const recording = parseWav(new Uint8Array(await (await fetch(audio.url)).arrayBuffer()))
      t.equal(recording.channels, 2)
      const [agent, caller] = [loudness(recording.samples, 0, 1, 3), loudness(recording.samples, 1, 1, 3)]
      t.ok(agent > 10 * caller, 'left is the agent, who greets; right is the caller, who is still silent')
      t.ok(loudness(recording.samples, 1, 0, 60) > 0, 'right carries the caller later')
      t.equal((await fetch(audio.url, { headers: { range: 'bytes=0-43' } })).status, 206)

      const log = await listCallEvents(service.sql, toId<'call'>(told.callId) as CallId)
      t.same(replay(log).differences, [], 'the log of the call replays')

      await t.test('from the page of a worker in the console, too', (t) => testCall(t, page, { service, demo }))
    },
  )

/** docs/console.md: a worker is called from its page. */
async function testCall(t: Test, page: BrowserPage, { service, demo }: Pick<DemoService, 'service' | 'demo'>) {
  const link = await consoleLinkOf(service)
  await page.goto(String(link))
  const worker = `${service.url}/console/workers/${demo.workerId}`
  const click = (name: string) =>
    page.evaluate(
      `[...document.querySelectorAll('.test-call button, .test-call a')].find((one) => one.textContent === ${JSON.stringify(name)}).click()`,
    )
  await page.goto(`${worker}?part=call`)
  await sees(page, `document.querySelector('.test-call button')`)
  await click('Call the agent')
  await sees(page, `/welcome to Parley/i.test(document.querySelector('.test-call .turn.agent')?.textContent)`)
  await sees(page, `(await ${packets}).energy > 0`)
  await page.evaluate(`(() => {
    const input = document.querySelector('.test-call input')
    input.value = 'Yes, please'
    input.dispatchEvent(new Event('input', { bubbles: true }))
  })()`)
  await sees(page, `document.querySelector('.test-call input').value === 'Yes, please'`)
  await page.evaluate(`document.querySelector('.test-call form').requestSubmit()`)
  await sees(page, `/yes, please/i.test(document.querySelector('.test-call .turn.user')?.textContent)`)
  await click('Hang up')
  await sees(page, `/You hung up/.test(document.querySelector('.test-call').textContent)`)
  await click('Look at this call')
  await sees(
    page,
    `/Why it ended/.test(document.body.textContent) && /yes, please/i.test(document.querySelector('.turns')?.textContent)`,
  )
  t.same(complaintsOf(page), [], 'the policy kept nothing away')
}

/** Mean energy of one channel of two, between two times in seconds. */
function loudness(samples: Int16Array, channel: number, from: number, to: number): number {
  let energy = 0
  const last = Math.min(samples.length, to * rateHz * 2)
  for (let index = from * rateHz * 2 + channel; index < last; index += 2) energy += (samples[index] ?? 0) ** 2
  return energy / Math.max(1, (last - from * rateHz * 2) / 2)
}

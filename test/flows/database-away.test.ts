/** The whole service while its database stands still, or is killed: telephone calls talk on as if nothing were, and are told in full afterwards. */
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createHearingEngine, engineRateHz, type HearingSession } from '../fake/hearing-engine.ts'
import { createRtpPeer, type RtpPeer } from '../fake/rtp-peer.ts'
import { openSipPeer } from '../fake/sip-peer.ts'
import { sdp } from '../fake/sip-wire.ts'
import { freezePostgres, killPostgres } from '../scenes/frozen-postgres.ts'
import { until } from '../scenes/in-time.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'
import { parsePrometheus, totalOf } from '../scenes/prometheus-text.ts'

/** Ms. Each second the caller says something, and the agent answers for so long. */
const [exchange, answer] = [1_000, 800]

/** Each exchange begins a second after the one before, however late that was. */
async function converse({ emit }: HearingSession, texts: readonly string[]): Promise<void> {
  const tone = new Int16Array((engineRateHz * answer) / 1_000).map((_, at) => 8_000 * Math.sin(at / 4))
  for (const [index, text] of texts.entries()) {
    const at = index * exchange
    emit({ type: 'user_text', text: `ask ${text}`, isFinal: true, confidence: 1, from: at, to: at + 50 })
    const itemId = `item ${text}`
    emit({ type: 'agent_text', itemId, text: `answer ${text}` })
    emit({ type: 'audio', itemId, payload: new Uint8Array(tone.slice().buffer) })
    emit({ type: 'item_done', itemId })
    await pause(exchange)
  }
  // The rest of it is still to be heard.
  await pause(exchange)
}

/** The longest time without sound, in ms, from the first sound to the last one. */
function listen(rtp: RtpPeer) {
  const law = lawOfEncoding('pcmu')
  let [last, longest, stopped] = [0, 0, false]
  void (async () => {
    while (!stopped) {
      const { bytes } = await rtp.next()
      const samples = new Int16Array(bytes.length - 12)
      law.decode(bytes.subarray(12), samples)
      const isLoud = samples.some((sample) => Math.abs(sample) > 1_000)
      if (!isLoud) continue
      const now = performance.now()
      if (last > 0) longest = Math.max(longest, now - last)
      last = now
    }
  })()
  return () => {
    stopped = true
    return longest
  }
}

for (const how of ['stands still for twelve seconds', 'is killed'] as const)
  test(
    `a database that ${how} beside telephone calls is not heard, and loses no word`,
    { timeout: 120_000 },
    async (t) => {
      const engine = createHearingEngine({ tone: null })
      const stage = await openPhoneStage(t, engine, { settings: { METRICS_PORT: '0' } })
      const scrape = async () =>
        parsePrometheus(await (await fetch(`http://127.0.0.1:${stage.service.metricsPort}/metrics`)).text())
      const [staying, leaving] = [await stage.addLine(), await stage.addLine()]
      const peer = await openSipPeer(stage.port)
      t.teardown(() => peer.close())
      const call = async (number: string) => {
        const rtp = await createRtpPeer()
        t.teardown(() => rtp.close())
        const dialog = peer.invite({ to: `sip:${number}@127.0.0.1`, body: sdp(rtp.local.port) })
        while ((await dialog.answered()).status !== 200) continue
        dialog.ack()
        return { dialog, session: await engine.of(number), silence: listen(rtp) }
      }
      const [one, two] = [await call(staying.number), await call(leaving.number)]
      const texts = Array.from({ length: 16 }, (_, index) => `number ${index}`)
      const talking = [converse(one.session, texts), converse(two.session, texts.slice(0, 8))]
      await pause(2_500)
      t.equal(totalOf(await scrape(), 'parley_db_up'), 1)
      const goOn = how === 'is killed' ? (killPostgres(stage.dataDir), () => {}) : freezePostgres(stage.dataDir)
      t.teardown(goOn)
      const mending = pause(12_000).then(goOn)
      const away = await scrape()
      t.equal(
        totalOf(away, 'parley_calls_running', { state: 'in_progress' }),
        2,
        'a scrape tells what it knows meanwhile',
      )
      if (how !== 'is killed') {
        t.equal(totalOf(away, 'parley_db_up'), 0)
        t.same(away.get('parley_deliveries_waiting')?.samples, [], 'nobody knows how many there are')
      }
      await talking[1]
      t.equal((await two.dialog.request('BYE')).status, 200)
      await mending
      await talking[0]
      t.equal((await one.dialog.request('BYE')).status, 200)
      const pauses = [one.silence(), two.silence()]
      t.comment(`the longest pause between two sounds: ${pauses.map(Math.round).join(' and ')} ms`)
      t.ok(Math.max(...pauses) < 2 * exchange - answer, 'no answer is missing')
      for (const [line, said] of [
        [staying, texts],
        [leaving, texts.slice(0, 8)],
      ] as const) {
        const { told, row } = await line.ended()
        t.match(row, { status: 'completed', endedBy: 'caller' })
        const heard = (told['transcript'] as readonly { readonly text: string }[]).map(({ text }) => text)
        // On a machine that is busy the next question comes before the answer is over.
        for (const kind of ['ask', 'answer'])
          t.same(
            heard.filter((text) => text.startsWith(kind)),
            said.map((text) => `${kind} ${text}`),
          )
      }
      await until(() => stage.service.running() === 0)
      const after = await scrape()
      t.equal(totalOf(after, 'parley_db_up'), 1)
      t.equal(after.get('parley_deliveries_waiting')?.samples.length, 1)
      t.same(
        stage.log.lines.filter(({ message }) => message.includes('put aside')),
        [],
      )
    },
  )

/**
 * docs/contract/rest.md "Disclosure" on real lines: SIP and RTP, inbound and outbound, and WebRTC, with the whole service and its own voice. What must be
 * said first is said to its end although the caller talks into it, and how much of it was heard is a fact of the call.
 */
import { test, type Test } from 'tap'
import { systemClock as clock } from '../../app/clock.ts'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { WebCallSession } from '../../model/web-call.ts'
import { createSyntheticCaller } from '../../tools/callers/synthetic-caller.ts'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import { openEngineStage, type EngineLine, type EngineLineOptions, type EngineStage } from '../scenes/engine-stage.ts'
import { inTime, until } from '../scenes/in-time.ts'
import { parseWav } from '../scenes/parse-wav.ts'
import type { CallerLine } from '../scenes/ten-turns/caller.ts'
import { openTestPhone } from '../scenes/ten-turns/phone.ts'

const text = 'This call is recorded, and you are talking to a machine.'
const question = 'Shall I book it?'
const voiceId = 'slt'
const now = (): number => performance.now()

test('what must be said first is said first and to its end on every kind of line', { timeout: 170_000 }, async (t) => {
  const stage = await openEngineStage(t, {})
  const phone = await openTestPhone(t, stage)
  const gateway = { host: '127.0.0.1', port: phone.port }
  const inbound = await addLine(stage, { name: 'inbound' })
  const outbound = await addLine(stage, { name: 'outbound', gateway })
  const web = await addLine(stage, { name: 'web' })
  const broken = await addLine(stage, { name: 'broken' })
  const lasts = (await stage.embedded.speak(text, voiceId)).length / 16
  const over = await stage.embedded.speak('Yes, please, and hurry up.', 'rms')

  t.jobs = 2
  await Promise.all([
    t.test('an inbound call whose caller talks into it', { buffered: true }, async (t) => {
      const caller = await phone.call(inbound)
      await talksOver(caller, over, inbound)
      await caller.hangUp()
      await proveDisclosed(t, stage, inbound, lasts)
    }),
    t.test('an outbound call, before who answers has said a word', { buffered: true }, async (t) => {
      const request = { workerId: outbound.workerId, phoneNumber: '+12025550199' }
      const calling = phone.called()
      await stage.rest('POST', '/phone-calls', request)
      const caller = phone.speakerOn(await (await calling).answer(), outbound)
      await talksOver(caller, over, outbound)
      await caller.hangUp()
      await proveDisclosed(t, stage, outbound, lasts)
    }),
    t.test('a call from a browser', { buffered: true }, async (t) => {
      const { call, voice } = await callFromBrowser(t, stage, web)
      await talksOver(voice, over, web)
      await call.hangUp()
      await proveDisclosed(t, stage, web, lasts)
    }),
    t.test('a caller who hangs up in the middle of it', { buffered: true }, async (t) => {
      const caller = await phone.call(broken)
      await inTime('the voice', caller.sound())
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      await caller.hangUp()
      const ended = await inTime('call.ended', broken.next('call.ended'))
      const call = (await stage.rest('GET', `/phone-calls/${String(ended['callId'])}`)) as unknown as Call
      t.match(call, { outcome: 'completed', disclosure: { completed: false } })
      const { playedMs } = call.disclosure
      t.ok(playedMs > 500 && playedMs < lasts - 500, `${playedMs} of ${lasts} ms`)
      const said = broken.events('call.transcript')
      t.equal(said.length, 1)
      t.ok(text.startsWith(String(said[0]?.['text'])) && said[0]?.['text'] !== text, String(said[0]?.['text']))
    }),
  ])
})

function addLine(stage: EngineStage, over: Pick<EngineLineOptions, 'name' | 'gateway'>): Promise<EngineLine> {
  const script = `ask book (yes/no): ${question}\nend It is booked.`
  const config = { disclosureText: text, voiceId, recordingChannelMode: 'split' } as const
  return stage.addLine({ ...over, script, config })
}

/** From its first sound on, until the agent has asked behind it. */
async function talksOver(
  caller: Pick<CallerLine, 'sound' | 'say'>,
  speech: Int16Array,
  line: EngineLine,
): Promise<void> {
  const said = () => line.events('call.transcript').map(({ role, text }) => `${String(role)}: ${String(text)}`)
  await inTime('the voice', caller.sound(), said)
  await caller.say(speech)
  await until(() => said().some((words) => words.startsWith('agent: ') && words !== `agent: ${text}`), said)
}

async function callFromBrowser(t: Test, stage: EngineStage, line: EngineLine) {
  const session = WebCallSession.parse(await stage.rest('POST', '/web-calls', { workerId: line.workerId }))
  const call = await placeWebCall({ ...session, createCaller: () => createWeriftCaller(), onMessage() {} })
  t.teardown(() => call.hangUp())
  const ticker = createTicker({ now, after: (ms, action) => clock.after(ms, action) })
  t.teardown(() => ticker.close())
  const audio = await call.caller.connected
  const voice = createSyntheticCaller({ caller: call.caller, audio, opus: createOpusLibrary(), ticker, now })
  t.teardown(() => voice.close())
  return { call, voice }
}

type Call = {
  readonly outcome: string
  readonly disclosure: { readonly playedMs: number; readonly completed: boolean }
}

/** `lasts`: ms of the text in the voice of the line. */
async function proveDisclosed(t: Test, stage: EngineStage, line: EngineLine, lasts: number): Promise<void> {
  const ended = await inTime('call.ended', line.next('call.ended'), () => line.events('call.transcript'))
  const place = `/phone-calls/${String(ended['callId'])}`
  const call = (await stage.rest('GET', place)) as unknown as Call
  t.match(call, { outcome: 'completed', disclosure: { completed: true } })
  const { playedMs } = call.disclosure
  t.ok(Math.abs(playedMs - lasts) < 400, `${playedMs} of ${lasts} ms`)
  const transcript = (await stage.rest('GET', `${place}/transcript`)) as unknown as object[]
  t.match(transcript[0], { speaker: 'agent', text, timestamps: { from: '00:00:00' } })
  t.notOk('warnings' in call, JSON.stringify(call))

  const { url } = await stage.rest('GET', `${place}/audio/url`)
  const sound = parseWav(new Uint8Array(await (await fetch(String(url))).arrayBuffer()))
  t.equal(sound.channels, 2)
  const during = Math.floor((playedMs / 1_000) * sound.rateHz)
  const loudIn = (channel: number) =>
    sound.samples.subarray(0, 2 * during).filter((sample, at) => at % 2 === channel && Math.abs(sample) > 300).length
  const [agent, caller] = [loudIn(0), loudIn(1)]
  t.ok(agent > during / 10, `the agent is in the recording: ${agent} of ${during} samples`)
  t.equal(caller, 0, 'the caller is not, before all of it has been said')
}

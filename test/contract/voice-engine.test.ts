/** The rules of the VoiceEngine port, over every engine. An engine comes with a call in which it speaks first and then listens. */
import { systemClock } from '../../app/clock.ts'
import { test, type Test } from 'tap'
import { samplesPerFrame } from '../../model/frame.ts'
import type { EngineConfig, EngineEvent, VoiceEngine } from '../../model/voice-engine.ts'
import { createEmbeddedEngine } from '../../voice/engines/embedded/engine.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { callConfig, openSpokenCall } from '../fake/spoken-call.ts'

type Candidate = {
  readonly engine: VoiceEngine
  /** A call in which the agent speaks, then asks something. */
  readonly config: EngineConfig
  /** An answer after which the call is over, in the format `hears`. */
  readonly answer: Int16Array
  /** A configuration that no session can be opened with. */
  readonly impossible: EngineConfig
}
type Open = () => Promise<Candidate>

const engines: Readonly<Record<string, Open>> = {
  async embedded() {
    const engine = await createEmbeddedEngine({ log: createQuietLog(), clock: systemClock, threads: 1 })
    const script =
      'say Welcome. This line is long enough to be cut off.\nask tea (yes/no): Would you like tea?\nend Fine.'
    return {
      engine,
      config: callConfig({ script }),
      answer: await engine.speak('Yes, please.', 'rms'),
      impossible: callConfig({ language: 'xx' }),
    }
  },
}

const announcement = 'This call is recorded, for your safety & ours. Case #7.'
const announcing = (config: EngineConfig): EngineConfig => ({
  ...config,
  direction: 'inbound',
  worker: { ...config.worker, inboundStaticMessageEnabled: true, inboundStaticMessageText: announcement },
})
const isSpeech = (event: EngineEvent): boolean => event.type.startsWith('user_')

const rules: Readonly<Record<string, (t: Test, candidate: Candidate) => Promise<void>>> = {
  'it names itself and says what it hears and speaks': async (t, { engine }) => {
    t.match(engine.name, /^[a-z][a-z0-9_]*$/)
    for (const format of [engine.hears, engine.speaks]) t.ok(samplesPerFrame(format) >= 160)
  },
  'a session speaks by itself, and not before it is in the hands of who opened it': async (t, { engine, config }) => {
    const events: EngineEvent[] = []
    const session = await engine.open(config, (event) => events.push(event))
    t.same(events, [])
    session.close()
    const call = await openSpokenCall(engine, config)
    const { itemId, text } = await call.agent()
    t.ok(text.length > 0)
    t.ok(call.soundOf(itemId) > 500)
    call.session.close()
  },
  'sound comes in whole samples, and an item is done after its text and all of its sound': async (t, candidate) => {
    const call = await openSpokenCall(candidate.engine, candidate.config)
    const { itemId } = await call.agent()
    const ofItem = call.events.filter((event) => 'itemId' in event && event.itemId === itemId)
    t.equal(ofItem.at(-1)?.type, 'item_done')
    t.equal(ofItem.filter((event) => event.type === 'item_done').length, 1)
    const sampleBytes = candidate.engine.speaks.encoding === 'pcm16' ? 2 : 1
    for (const event of ofItem) if (event.type === 'audio') t.equal(event.payload.length % sampleBytes, 0)
    call.session.close()
  },
  'speech starts, stops and has its text, at times that the frames of the line have counted': async (t, candidate) => {
    const call = await openSpokenCall(candidate.engine, candidate.config)
    await call.agentHeard()
    await call.agentHeard()
    await call.silence(1000)
    await call.say(candidate.answer)
    const final = await call.next('user_text', (event) => event.isFinal)
    const [started, ...rest] = call.events.filter(isSpeech)
    const stopped = rest.find((event) => event.type === 'user_speech_stopped')
    t.ok(started?.type === 'user_speech_started' && started.at >= 900 && started.at <= 1500)
    t.ok(stopped?.type === 'user_speech_stopped' && stopped.at > 1200)
    t.ok(final.from >= 900 && final.to > final.from && final.to <= 1000 + candidate.answer.length / 16 + 900)
    t.ok(final.confidence === null || (final.confidence >= 0 && final.confidence <= 1))
    t.ok(final.text.length > 0)
    call.session.close()
  },
  'it is finished after the last item is done, once': async (t, { engine, config, answer }) => {
    const call = await openSpokenCall(engine, config)
    await call.agentHeard()
    await call.agentHeard()
    await call.say(answer)
    await call.next('finished')
    const types = call.events.map((event) => event.type)
    t.equal(types.filter((type) => type === 'finished').length, 1)
    t.ok(types.lastIndexOf('item_done') < types.indexOf('finished'))
    t.ok(types.lastIndexOf('audio') < types.lastIndexOf('item_done'))
    call.session.close()
  },
  'silence is not speech': async (t, { engine, config }) => {
    const call = await openSpokenCall(engine, config)
    await call.agentHeard()
    await call.silence(2000)
    t.notOk(call.events.some(isSpeech))
    call.session.close()
  },
  'an item that was cut off has no more sound, and the talk goes on': async (t, { engine, config, answer }) => {
    const call = await openSpokenCall(engine, config)
    const { itemId } = await call.next('audio')
    call.session.interrupt({ itemId, playedMs: 100 })
    const ms = call.soundOf(itemId)
    const next = await call.agent()
    t.not(next.itemId, itemId)
    t.equal(call.soundOf(itemId), ms)
    call.session.played(next.itemId)
    await call.say(answer)
    t.ok((await call.next('user_text', (event) => event.isFinal)).text)
    call.session.close()
  },
  'what it remembers is JSON and opens a new session that goes on': async (t, { engine, config }) => {
    const call = await openSpokenCall(engine, config)
    await call.agentHeard()
    const { text } = await call.agent()
    const memory = call.events.findLast((event) => event.type === 'memory')?.memory ?? null
    call.session.close()
    t.same(JSON.parse(JSON.stringify(memory)), memory)
    const again = await openSpokenCall(engine, { ...config, memory })
    t.equal((await again.agent()).text, text)
    again.session.close()
  },
  'the static message of an inbound call is said first, word for word, and heard whole whatever the line brings':
    async (t, { engine, config, answer }) => {
      const call = await openSpokenCall(engine, announcing(config))
      const { itemId, text } = await call.agent()
      t.equal(text, announcement)
      const random = createRandom(5)
      await call.say(Int16Array.from({ length: 16_000 }, () => (random.next() - 0.5) * 12_000))
      await call.say(answer)
      t.notOk(call.events.some(isSpeech), 'nobody is listened to yet')
      t.equal(call.events.filter((event) => event.type === 'agent_text').length, 1, 'the agent waits for its end')
      call.session.played(itemId)
      t.not((await call.agent()).text, announcement)
      call.session.close()
    },
  'the static message is not said again by a session that goes on, nor on an outbound call': async (
    t,
    { engine, config },
  ) => {
    const call = await openSpokenCall(engine, announcing(config))
    await call.agent()
    const memory = call.events.findLast((event) => event.type === 'memory')?.memory ?? null
    t.not(memory, null, 'it is remembered with its own turn')
    call.session.close()
    const again = await openSpokenCall(engine, { ...announcing(config), memory })
    t.not((await again.agent()).text, announcement)
    again.session.close()
    const outbound = await openSpokenCall(engine, { ...announcing(config), direction: 'outbound' })
    await outbound.silence(5000)
    t.not((await outbound.agent()).text, announcement)
    outbound.session.close()
  },
  'a configuration it cannot serve is refused': async (t, { engine, impossible }) => {
    await t.rejects(engine.open(impossible, () => t.fail('a refused session says nothing')))
  },
  'a closed session says nothing and takes anything': async (t, { engine, config }) => {
    const call = await openSpokenCall(engine, config)
    const { itemId } = await call.next('audio')
    call.session.close()
    call.session.close()
    const said = call.events.length
    call.session.played(itemId)
    call.session.interrupt(null)
    call.session.dtmf('1')
    await call.silence(1000)
    t.equal(call.events.length, said)
  },
  'closing the engine twice is closing it once': async (t, { engine }) => {
    await engine.close()
    await engine.close()
    t.pass()
  },
}

for (const [name, open] of Object.entries(engines))
  test(name, async (engine) => {
    const candidate = await open()
    for (const [rule, prove] of Object.entries(rules)) await engine.test(rule, (t) => prove(t, candidate))
  })

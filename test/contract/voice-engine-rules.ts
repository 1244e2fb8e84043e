/** The rules of the VoiceEngine port, over every engine. An engine comes with a call in which it speaks first and then listens. */
import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { bytesOf as soundOf, samplesPerFrame } from '../../model/frame.ts'
import type { JsonObject } from '../../model/json.ts'
import {
  EngineRefusal,
  maxMemoryBytes,
  type AttendEvent,
  type EngineConfig,
  type EngineEvent,
  type Said,
  type VoiceEngine,
} from '../../model/voice-engine.ts'
import { createMemoryBound } from '../../actors/conversation/memory-bound.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { until } from '../scenes/in-time.ts'
import { openSpokenCall, type SpokenCall } from '../scenes/spoken-call.ts'

export type Candidate = {
  readonly engine: VoiceEngine
  /**
   * A call in which the agent speaks, then asks something. What it says can be cut off: more than a second of sound. A new candidate for every
   * rule: a provider that is scripted begins anew.
   */
  readonly config: EngineConfig
  /** An answer after which the agent says its last words and the call is over. 16-bit samples at 16 kHz, as are the others. */
  readonly answer: Int16Array
  /** The same call, in which the agent calls the tool `lookup` with `{"key":"blue"}` after `wish`, and then says something of its result. */
  readonly withTool: { readonly config: EngineConfig; readonly wish: Int16Array }
  /** A memory as of the engine's own, far beyond what is kept of any; of an engine that has none, anybody's. */
  readonly swollen: JsonObject
  /** A configuration that no session can be opened with. */
  readonly impossible: EngineConfig
  close(): Promise<void>
}

export const lookupTool = {
  name: 'lookup',
  description: 'Looks a colour up.',
  inputSchema: { type: 'object' as const, properties: { key: { type: 'string' } }, required: ['key'] },
}

const announcement = 'This call is recorded, for your safety & ours. Case #7.'
const announcing = (config: EngineConfig): EngineConfig => ({
  ...config,
  direction: 'inbound',
  worker: { ...config.worker, inboundStaticMessageEnabled: true, inboundStaticMessageText: announcement },
})
const isSpeech = (event: EngineEvent): boolean => event.type.startsWith('user_')
const silentFor = 60_000

/** The engine's own lists bound what a configuration may name. */
const agreed = ({ engine, config }: Candidate): boolean =>
  JSON.stringify(engine.hears).includes(JSON.stringify(config.formats.hears)) &&
  JSON.stringify(engine.speaks).includes(JSON.stringify(config.formats.speaks))

/** All that the agent says is heard until it listens. */
async function hearAgentOut(call: SpokenCall): Promise<Said> {
  const text = await call.agentHeard()
  await call.listens()
  return { role: 'agent', text }
}

const memoryOf = (call: SpokenCall) => call.events.findLast((event) => event.type === 'memory')?.memory ?? null

const bytesOf = (json: unknown): number => Buffer.byteLength(JSON.stringify(json))

const rules: Readonly<Record<string, (t: Test, candidate: Candidate) => Promise<void>>> = {
  'it names itself and says what it hears and speaks': async (t, candidate) => {
    t.match(candidate.engine.name, /^[a-z][a-z0-9_]*$/)
    const formats = [...candidate.engine.hears, ...candidate.engine.speaks]
    for (const format of formats) t.ok(samplesPerFrame(format) >= 160)
    t.ok(agreed(candidate))
  },
  'a session speaks by itself, and not before it is in the hands of who opened it': async (t, { engine, config }) => {
    const events: EngineEvent[] = []
    const session = await engine.open(config, (event) => events.push(event))
    t.same(events, [])
    session.close()
  },
  'its first words have text and sound': async (t, { engine, config }) => {
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
    const sampleBytes = candidate.config.formats.speaks.encoding === 'pcm16' ? 2 : 1
    for (const event of ofItem) if (event.type === 'audio') t.equal(event.payload.length % sampleBytes, 0)
    call.session.close()
  },
  'speech starts, stops and has its text, at times that the frames of the line have counted': async (t, candidate) => {
    const call = await openSpokenCall(candidate.engine, candidate.config)
    await hearAgentOut(call)
    const before = call.at()
    await call.silence(1000)
    await call.say(candidate.answer)
    const final = await call.next('user_text', (event) => event.isFinal && event.text !== '')
    const started = call.events.find((event) => event.type === 'user_speech_started')
    const stopped = call.events.find((event) => event.type === 'user_speech_stopped')
    const spoken = before + 1000
    const over = spoken + candidate.answer.length / 16 + 900
    t.ok(started?.type === 'user_speech_started' && started.at >= spoken - 100 && started.at <= spoken + 500)
    t.ok(stopped?.type === 'user_speech_stopped' && stopped.at > spoken + 200 && stopped.at <= over)
    t.ok(final.from >= spoken - 400 && final.to > final.from && final.to <= over)
    t.ok(final.confidence === null || (final.confidence >= 0 && final.confidence <= 1))
    call.session.close()
  },
  'a caller who hangs up behind their last word is heard out: one final text, and nothing said': async (
    t,
    candidate,
  ) => {
    const call = await openSpokenCall(candidate.engine, candidate.config)
    await hearAgentOut(call)
    const items = new Set(call.events.flatMap((event) => (event.type === 'audio' ? [event.itemId] : [])))
    await call.silence(500)
    const last = candidate.answer.findLastIndex((sample) => Math.abs(sample) > 300)
    await call.say(candidate.answer.slice(0, last + 1), 0)
    const from = call.events.length
    await call.session.hearOut()
    const finals = call.events.filter((event) => event.type === 'user_text' && event.isFinal && event.text !== '')
    t.equal(finals.length, 1)
    const late = call.events.slice(from).filter((event) => event.type === 'audio' && !items.has(event.itemId))
    t.equal(late.length, 0)
    await call.session.hearOut()
    call.session.close()
    await call.session.hearOut()
  },
  'each end of speech is followed by one final text': async (t, { engine, config, answer }) => {
    const call = await openSpokenCall(engine, config)
    await hearAgentOut(call)
    await call.say(answer)
    await call.next('finished')
    const order = call.events.flatMap((event) => {
      if (event.type === 'user_speech_stopped') return ['stopped']
      return event.type === 'user_text' && event.isFinal ? ['text'] : []
    })
    t.ok(order.length >= 2 && order.length % 2 === 0)
    t.same(
      order,
      order.map((_, index) => (index % 2 === 0 ? 'stopped' : 'text')),
    )
  },
  'one that only hears a caller tells their words, the last ones too, and says nothing': async (t, candidate) => {
    const { engine, config, answer } = candidate
    if (!engine.attend) return t.comment('it cannot but answer')
    const { callId, direction, language, worker } = config
    const events: AttendEvent[] = []
    const attending = await engine.attend({ callId, direction, language, worker }, (event) => void events.push(event))
    const finals = () => events.filter((event) => event.type === 'user_text' && event.isFinal && event.text !== '')
    let ms = 0
    const hear = async (samples: Int16Array): Promise<void> => {
      for (let at = 0; at < samples.length; at += 320, ms += 20) {
        const frame = new Int16Array(320)
        frame.set(samples.subarray(at, at + 320))
        attending.hear(soundOf(frame))
        if (ms % 200 === 0) await turn()
      }
    }
    await hear(new Int16Array(16_000))
    await hear(answer)
    // Who may say anything is given longer pauses.
    await hear(new Int16Array(40_000))
    await until(() => finals().length === 1)
    const [said] = finals() as Extract<AttendEvent, { type: 'user_text' }>[]
    t.ok(said!.from >= 600 && said!.to > said!.from && said!.to <= ms, JSON.stringify({ said, ms }))
    const last = answer.findLastIndex((sample) => Math.abs(sample) > 300)
    await hear(answer.slice(0, last + 1))
    await attending.hearOut()
    t.equal(finals().length, 2)
    t.same(
      events.filter(({ type }) => type !== 'user_text' && type !== 'used'),
      [],
    )
    attending.close()
    attending.close()
    attending.hear(new Uint8Array(640))
    await attending.hearOut()
    t.equal(finals().length, 2)
  },
  'it is finished after the last item is done, once': async (t, { engine, config, answer }) => {
    const call = await openSpokenCall(engine, config)
    await hearAgentOut(call)
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
    await hearAgentOut(call)
    await call.silence(2000)
    t.notOk(call.events.some(isSpeech))
    call.session.close()
  },
  'a caller who stays silent is asked again, and then the call is over': async (t, { engine, config }) => {
    const call = await openSpokenCall(engine, config)
    const heard = call.hearEverything()
    for (let ms = 0; ms < silentFor && !call.events.some(({ type }) => type === 'finished'); ms += 500) {
      await call.silence(500)
      await call.settled()
    }
    await call.next('finished')
    t.ok(heard().length >= 3, 'it was asked before the call was ended')
    call.session.close()
  },
  'an item that was cut off has no more sound, and the talk goes on': async (t, { engine, config, answer }) => {
    const call = await openSpokenCall(engine, config)
    const { itemId } = await call.next('audio')
    await call.sayOver(answer, itemId, 100)
    const ms = call.soundOf(itemId)
    const next = await call.agent()
    t.not(next.itemId, itemId)
    t.equal(call.soundOf(itemId), ms)
    call.session.close()
  },
  'what was said before opens a new session that goes on: it waits, or says what is due': async (t, candidate) => {
    const { engine, config } = candidate
    const call = await openSpokenCall(engine, config)
    const said = await hearAgentOut(call)
    const memory = memoryOf(call)
    call.session.close()
    t.same(JSON.parse(JSON.stringify(memory)), memory)
    const again = await openSpokenCall(engine, { ...config, memory, history: [said], owesReply: true })
    t.ok((await again.agent()).text)
    const items = (of: SpokenCall) => of.events.flatMap((event) => (event.type === 'audio' ? [event.itemId] : []))
    const before = new Set(items(call))
    t.notOk(
      items(again).some((itemId) => before.has(itemId)),
      'no name of an item is used again',
    )
    again.session.close()
  },
  'in place of another engine that was lost the agent speaks first, and then listens': async (
    t,
    { engine, config, answer },
  ) => {
    const history = [
      { role: 'agent', text: 'Which day suits you?' },
      { role: 'user', text: 'Friday.' },
    ] as const
    const call = await openSpokenCall(engine, { ...config, history, owesReply: true, bridges: true })
    const { text } = await hearAgentOut(call)
    // What a model is told to say is held by its opening (test/voice/talk.test.ts).
    t.match(text, engine.name === 'embedded' ? /interrupted/ : /./)
    await call.say(answer)
    t.ok(call.events.some(isSpeech), 'the caller is listened to')
    call.session.close()
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
      t.equal(new Set(call.events.flatMap((event) => (event.type === 'agent_text' ? [event.itemId] : []))).size, 1)
      call.session.played(itemId)
      t.not((await call.agent()).text, announcement)
      call.session.close()
    },
  'the static message is not said again by a session that goes on': async (t, { engine, config }) => {
    const call = await openSpokenCall(engine, announcing(config))
    const { text } = await call.agent()
    const memory = memoryOf(call)
    call.session.close()
    const history = [{ role: 'agent', text } as const]
    const again = await openSpokenCall(engine, { ...announcing(config), memory, history, owesReply: true })
    t.not((await again.agent()).text, announcement)
    again.session.close()
  },
  'an outbound call has no static message, and the agent speaks when the callee does not': async (t, candidate) => {
    const outbound = await openSpokenCall(candidate.engine, { ...announcing(candidate.config), direction: 'outbound' })
    await outbound.silence(3500)
    await outbound.settled()
    t.same(
      outbound.events.filter(({ type }) => type === 'audio'),
      [],
      'the callee may speak first',
    )
    await outbound.silence(1500)
    t.not((await outbound.agent()).text, announcement)
    outbound.session.close()
  },
  'a tool is called once with its arguments, and its result is spoken about': async (t, { engine, withTool }) => {
    const call = await openSpokenCall(engine, { ...withTool.config, tools: [lookupTool] })
    await hearAgentOut(call)
    await call.say(withTool.wish)
    const { id, name, arguments: given } = await call.next('tool_call')
    t.equal(name, 'lookup')
    t.same(given, { key: 'blue' })
    call.hearEverything()
    call.session.toolResult(id, name, { status: 'success', data: { result: 'seven' } })
    t.ok((await call.agent()).text)
    t.equal(call.events.filter(({ type }) => type === 'tool_call').length, 1)
    call.session.close()
  },
  'a tool that failed is an answer too, and one of another session is survived': async (t, { engine, withTool }) => {
    const call = await openSpokenCall(engine, { ...withTool.config, tools: [lookupTool] })
    await hearAgentOut(call)
    call.session.toolResult('of another session', 'lookup', { status: 'success', data: {} })
    await call.say(withTool.wish)
    await call.next('tool_call')
    // A model may have asked for it when it was told the news, and once more when the caller spoke.
    await call.settled()
    const error = { code: 'TOOL_FAILED', message: 'The tool failed.' } as const
    for (const event of call.events)
      if (event.type === 'tool_call') call.session.toolResult(event.id, event.name, { status: 'error', error })
    t.ok((await call.agent()).text)
    t.notOk(call.events.some(({ type }) => type === 'failed'))
    call.session.close()
  },
  'the service keeps no more of its memory than any may have, however much its tools answer, and a session goes on from what is kept':
    async (t, { engine, withTool, swollen }) => {
      const log = createQuietLog()
      const { boundedIn, kept } = createMemoryBound(engine, log)
      const config = { ...withTool.config, tools: [lookupTool] }
      const call = await openSpokenCall(boundedIn(engine), config)
      await hearAgentOut(call)
      await call.say(withTool.wish)
      const { id, name } = await call.next('tool_call')
      call.hearEverything()
      const result = Array.from({ length: 500 }, (_, at) => `${at} 検索`.repeat(100))
      call.session.toolResult(id, name, { status: 'success', data: { result } })
      t.ok((await call.agent()).text)
      t.ok(bytesOf(memoryOf(call)) <= maxMemoryBytes)
      call.session.close()

      t.ok(bytesOf(swollen) > 2 * maxMemoryBytes)
      const memory = kept(swollen) ?? null
      t.ok(bytesOf(memory) <= maxMemoryBytes)
      t.equal(memory === null, engine.shorten === undefined, 'shortened by who knows how, else not taken')
      t.equal(
        kept({ nobody: ['knows', 'x'.repeat(maxMemoryBytes)] }),
        undefined,
        'what is none of its own is not taken',
      )
      t.equal(log.lines.filter(({ fields }) => 'maxMemoryBytes' in fields).length, 1, 'told once')
      const said = [{ role: 'agent', text: 'Welcome.' }] as const
      const again = await openSpokenCall(engine, { ...config, memory, history: said, owesReply: true })
      t.ok((await again.agent()).text)
      again.session.close()
    },
  'what it is told to say it says word for word': async (t, { engine, config }) => {
    const call = await openSpokenCall(engine, config)
    await hearAgentOut(call)
    call.session.say('Please call us back tomorrow.')
    await call.next('agent_text', (event) => event.text === 'Please call us back tomorrow.')
    t.pass()
    call.session.close()
  },
  'it has the message of its script for an answering machine, says it to its end, and is finished': async (
    t,
    stage,
  ) => {
    const { engine, config, answer } = stage
    const message = 'Please call us back tomorrow.'
    const none = await openSpokenCall(engine, config)
    t.equal(none.session.voicemail, null)
    none.session.close()
    const script = `${config.script ?? 'say Hello.'}\nvoicemail: ${message}`
    const call = await openSpokenCall(engine, { ...config, direction: 'outbound', script })
    t.equal(call.session.voicemail, message)
    await call.silence(6_000)
    await call.next('audio')
    call.session.interrupt(null)
    call.session.sayLast(message)
    await call.say(answer)
    const { itemId } = await call.next('agent_text', ({ text }) => text === message)
    await call.next('finished')
    t.ok(call.soundOf(itemId) > 0)
    const types = call.events.map(({ type }) => type)
    t.ok(types.lastIndexOf('item_done') < types.indexOf('finished'))
    t.equal(types.filter((type) => type === 'finished').length, 1)
    call.session.close()
  },
  'in a session for it alone it says words as soon as it is told to, listens to nobody, and is finished': async (
    t,
    { engine, config, answer },
  ) => {
    const words = 'This call is recorded.'
    const history = [{ role: 'user', text: 'Hello.' }] as const
    const call = await openSpokenCall(engine, { ...config, script: null, instructions: null, tools: [], history })
    call.session.sayLast(words)
    await call.say(answer)
    const { itemId } = await call.next('agent_text', ({ text }) => text === words)
    await call.next('finished')
    t.ok(call.soundOf(itemId) > 0)
    t.equal(new Set(call.events.flatMap((event) => (event.type === 'audio' ? [event.itemId] : []))).size, 1)
    t.notOk(call.events.some(({ type }) => type === 'user_speech_started'))
    call.session.close()
  },
  'what is typed counts as said, word for word, and is answered': async (t, { engine, config }) => {
    const call = await openSpokenCall(engine, config)
    await hearAgentOut(call)
    const from = call.events.length
    call.session.typed('Yes, please.')
    await call.silence(1000)
    await call.next('audio')
    const spoken = call.events.slice(from).filter(isSpeech)
    t.match(spoken, [
      { type: 'user_speech_started' },
      { type: 'user_speech_stopped' },
      { type: 'user_text', text: 'Yes, please.', isFinal: true },
    ])
    t.equal(spoken.length, 3)
    call.session.close()
  },
  'a configuration it cannot serve is refused': async (t, { engine, impossible }) => {
    await t.rejects(
      engine.open(impossible, () => t.fail('a refused session says nothing')),
      EngineRefusal,
    )
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
    call.session.typed('Nobody reads this.')
    call.session.say('Nobody hears this.')
    call.session.instruct('Say nothing.')
    call.session.toolResult('x', 'lookup', { status: 'success' })
    await call.silence(1000)
    t.equal(call.events.length, said)
  },
  'closing the engine twice is closing it once': async (t, { engine }) => {
    await engine.close()
    await engine.close()
    t.pass()
  },
}

/** `open` is called for every rule. */
export function proveVoiceEngine(name: string, open: () => Promise<Candidate>): void {
  for (const [rule, prove] of Object.entries(rules))
    test(`${name}: ${rule}`, async (t) => {
      const candidate = await open()
      try {
        await prove(t, candidate)
      } finally {
        await candidate.close()
      }
    })
}

/** Calls with the embedded engine, spoken and heard: what a caller can do in them. */
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import type { EngineConfig, EngineEvent, EngineTool } from '../../model/voice-engine.ts'
import { createEmbeddedEngine } from '../../voice/engines/embedded/engine.ts'
import { createAgentSpeech } from '../../voice/engines/embedded/agent-speech.ts'
import { answeringMachineTextOf } from '../../voice/engines/embedded/answering-machine.ts'
import { patientClock } from '../fake/patient-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { callConfig, openSpokenCall } from '../scenes/spoken-call.ts'
import { hiss, joined, overTelephone } from '../scenes/telephone-sound.ts'

const log = createQuietLog()
const engine = await createEmbeddedEngine({ log, clock: patientClock, threads: 1 })

const drinks = `say Welcome to the tea house. We are open until nine.
ask tea (yes/no): Would you like tea, {{customer.firstName}}?
if tea is yes: end (send_tea): Tea it is.
ask drink (coffee | fruit juice): What else, coffee or fruit juice?
end You said {{drink}}.`

const nextActions = [{ key: 'send_tea', name: 'Send tea' }]
const withDrinks = (changes: Partial<EngineConfig> = {}): EngineConfig =>
  callConfig({
    script: drinks,
    customer: { type: 'customer', firstName: 'Ada' },
    worker: { ...callConfig().worker, nextActions },
    ...changes,
  })
const typesOf = (events: readonly EngineEvent[]): string[] =>
  events.map((event) => event.type).filter((type, index, all) => type !== all[index - 1])

test('a caller answers, the answer is noted, and the call ends with the next action', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  t.equal(await call.agentHeard(), 'Welcome to the tea house. We are open until nine.')
  t.equal(await call.agentHeard(), 'Would you like tea, Ada?')
  const from = call.events.length
  await call.say(await engine.speak('Yes, please.', 'slt'))
  const { text, confidence, from: began, to } = await call.next('user_text', (event) => event.isFinal)
  t.equal(text, 'yes please')
  t.ok((confidence ?? 0) > 0.5)
  t.ok(to - began > 400 && to - began < 2000, `${began} to ${to}`)
  t.match(await call.next('noted'), { key: 'tea', value: true })
  t.equal((await call.agent()).text, 'Tea it is.')
  t.match(await call.next('finished'), { nextAction: 'send_tea' })
  const order = typesOf(call.events.slice(from).filter((event) => event.type !== 'user_text' || event.isFinal))
  t.equal(
    order.join(' '),
    'user_speech_started user_speech_stopped user_text noted memory agent_text audio item_done finished',
  )
  call.session.close()
})

/** Nothing but the words: the caller hangs up behind the last sound. */
const wordsOf = (speech: Int16Array): Int16Array =>
  speech.slice(0, speech.findLastIndex((sample) => Math.abs(sample) > 300) + 1)

test('what a caller says right before they hang up is understood, noted, and decides what is next', async (t) => {
  for (const behind of [0, 40, 100, 400]) {
    const call = await openSpokenCall(engine, withDrinks())
    await call.agentHeard()
    await call.agentHeard()
    const from = call.events.length
    await call.say(wordsOf(await engine.speak('Yes, please.', 'slt')), behind)
    await call.session.hearOut()
    const events = call.events.slice(from)
    const finals = events.filter((event) => event.type === 'user_text' && event.isFinal)
    t.match(finals, [{ text: 'yes please' }], `${behind} ms`)
    t.equal(finals.length, 1)
    t.match(
      events.filter(({ type }) => type === 'noted'),
      [{ key: 'tea', value: true }],
    )
    t.match(
      events.filter(({ type }) => type === 'finished'),
      [{ nextAction: 'send_tea' }],
    )
    t.notOk(
      events.some(({ type }) => type === 'audio'),
      'nothing is said to nobody',
    )
    await call.session.hearOut()
    call.session.close()
  }
})

test('a text that is not final tells what it establishes, and keys that were pressed count without a pause', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  await call.agentHeard()
  await call.agentHeard()
  const speech = joined(wordsOf(await engine.speak('Yes, please.', 'slt')), new Int16Array(200 * 16))
  for (let at = 0; at < speech.length; at += 100 * 16) {
    await call.say(speech.subarray(at, at + 100 * 16), 0)
    // As fast as life: what is understood of it comes before the rest.
    await call.settled()
  }
  const interim = await call.next('user_text', (event) => !event.isFinal && event.notes !== undefined)
  t.same(interim.notes, [{ key: 'tea', value: true }])
  call.session.close()
  const pin = 'ask pin (digits 4-8): Your number?\nend Thanks.'
  const pressing = await openSpokenCall(engine, callConfig({ script: pin }))
  await pressing.agentHeard()
  for (const digit of '12345') pressing.session.dtmf(digit)
  await pressing.session.hearOut()
  t.match(await pressing.next('noted'), { key: 'pin', value: '12345' })
  pressing.session.close()
})

test('who hangs up in silence, before the agent speaks, or twice, is not waited for', async (t) => {
  const early = await openSpokenCall(engine, withDrinks())
  await early.session.hearOut()
  t.same(early.events, [])
  early.session.close()
  await early.session.hearOut()
  const silent = await openSpokenCall(engine, withDrinks())
  await silent.agentHeard()
  await silent.agentHeard()
  const from = silent.events.length
  await silent.silence(300)
  await Promise.all([silent.session.hearOut(), silent.session.hearOut()])
  t.same(silent.events.slice(from), [])
  silent.session.close()
})

test('instructions are said not to be followed; those in statements are, where the operator wants it', async (t) => {
  const prompted = await openSpokenCall(engine, withDrinks({ instructions: 'You are a waiter. Ask for tea.' }))
  t.match(await prompted.next('warned'), { warning: { type: 'INSTRUCTIONS_NOT_FOLLOWED' } })
  t.match(await prompted.agentHeard(), /^Welcome to the tea house/, 'the script is followed')
  prompted.session.close()
  const following = await createEmbeddedEngine({
    log: createQuietLog(),
    clock: patientClock,
    hearing: 'vad',
    followsInstructions: true,
  })
  t.teardown(() => following.close())
  const inStatements = await openSpokenCall(
    following,
    withDrinks({ instructions: 'ask size (small | large): Which size?' }),
  )
  t.equal(await inStatements.agentHeard(), 'Which size?')
  t.notOk(inStatements.events.some(({ type }) => type === 'warned'))
  inStatements.session.close()
  const inProse = await openSpokenCall(following, withDrinks({ instructions: 'Be kind to everybody.' }))
  t.match(await inProse.next('warned'), { warning: { type: 'INSTRUCTIONS_NOT_FOLLOWED' } })
  t.match(await inProse.agentHeard(), /^Welcome to the tea house/)
  inProse.session.close()
})

test('a caller who speaks over a question has answered it, and is noticed soon enough to silence the agent', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  await call.agentHeard()
  const { itemId } = await call.agent()
  await call.silence(200)
  const speech = await engine.speak('No, thank you.', 'rms')
  const onset = 200 + speech.findIndex((sample) => Math.abs(sample) > 300) / 16
  let heardFrames = 0
  const hear = call.session.hear.bind(call.session)
  const framesUntilStarted = new Promise<number>((resolve) => {
    Object.assign(call.session, {
      hear(payload: Uint8Array) {
        heardFrames++
        hear(payload)
        if (call.events.some((event) => event.type === 'user_speech_started')) resolve(heardFrames)
      },
    })
  })
  const said = call.say(speech)
  const noticed = 200 + (await framesUntilStarted) * 20 - onset
  t.ok(noticed <= 220, `${Math.round(noticed)} ms after the first sound`)
  call.session.interrupt({ itemId, playedMs: 500 })
  await said
  t.match((await call.next('user_text', (event) => event.isFinal)).text, /^nop?e? thank you$/)
  t.match(await call.next('noted'), { key: 'tea', value: false })
  t.match((await call.agent()).text, /^What else/)
  call.session.close()
})

test('speech over a line that asks nothing goes on with the next line, and goodbye ends the call', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  const { itemId } = await call.agent()
  const said = call.say(await engine.speak('The weather is nice in summer.', 'rms'))
  await call.next('user_speech_started')
  call.session.interrupt({ itemId, playedMs: 300 })
  await said
  t.match(await call.next('user_text', (event) => event.isFinal), { text: '[unclear]', confidence: 0 })
  t.match(await call.agentHeard(), /^Would you like tea/)
  await call.say(await engine.speak('Goodbye.', 'rms'))
  t.equal((await call.agent()).text, 'Goodbye.')
  t.match(await call.next('finished'), { nextAction: null })
  call.session.close()
})

test('a question without an answer is asked again, counted by the frames of the line', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  await call.agentHeard()
  await call.agentHeard()
  await call.silence(5900)
  t.equal(call.events.filter((event) => event.type === 'agent_text').length, 2, 'not before six seconds')
  await call.silence(200)
  t.match(await call.agentHeard(), /^Are you still there\?/)
  await call.silence(6100)
  t.match(await call.agentHeard(), /^I cannot hear you/)
  await call.silence(6100)
  t.match((await call.agent()).text, /Goodbye\.$/)
  await call.next('finished')
  call.session.close()
})

test('bangs shorter than 100 ms and hum are no speech', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  await call.agentHeard()
  await call.agentHeard()
  const noise = new Int16Array(3 * 16000)
  for (let at = 0; at < noise.length; at++) noise[at] = Math.round(300 * Math.sin((2 * Math.PI * 50 * at) / 16000))
  for (const from of [8000, 24000, 40000])
    for (let at = from; at < from + 1440; at++) noise[at] = at % 7 < 3 ? 15000 : -15000
  await call.say(noise)
  t.notOk(call.events.some((event) => event.type === 'user_speech_started'))
  call.session.close()
})

test('keys answer, and silence the agent', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  await call.agentHeard()
  const { itemId } = await call.agent()
  call.session.dtmf('2')
  await call.next('user_speech_started')
  t.notOk(
    call.events.slice(call.events.length - 2).some((event) => event.type === 'agent_text'),
    'nothing new is said before the old is silent',
  )
  call.session.interrupt({ itemId, playedMs: 100 })
  t.match((await call.agent()).text, /^What else/)
  t.same(
    call.events.find((event) => event.type === 'noted'),
    { type: 'noted', key: 'tea', value: false },
  )
  call.session.close()
})

test('a key over the last question ends the call in order, whenever word comes that the question was cut', async (t) => {
  const last = 'ask tea (yes/no): Would you like tea with your breakfast?\nend Goodbye then.'
  for (const word of ['soon', 'never']) {
    const call = await openSpokenCall(engine, callConfig({ script: last }))
    const { itemId } = await call.agent()
    call.session.dtmf('1')
    t.match(await call.next('noted'), { value: true })
    if (word === 'soon') call.session.interrupt({ itemId, playedMs: 300 })
    else await call.silence(1200)
    t.equal((await call.agent()).text, 'Goodbye then.', word)
    await call.next('finished')
    call.session.close()
  }
})

test('the last words are said whatever goes on, and nothing after them', async (t) => {
  const announced = { inboundStaticMessageEnabled: true, inboundStaticMessageText: 'This call is recorded.' }
  const config = withDrinks({ worker: { ...callConfig().worker, ...announced } })
  const words = 'Nobody is here any more.'
  const last = async (call: Awaited<ReturnType<typeof openSpokenCall>>, title: string): Promise<void> => {
    const { itemId } = await call.next('agent_text', ({ text }) => text === words)
    await call.next('finished')
    call.session.played(itemId)
    await call.silence(8000)
    await call.settled()
    const said = call.events.filter((event) => event.type === 'agent_text').at(-1)
    t.match(said, { text: words }, title)
    t.equal(call.events.filter(({ type }) => type === 'finished').length, 1)
    const count = (type: EngineEvent['type']) => call.events.filter((event) => event.type === type).length
    t.equal(count('user_speech_started'), count('user_speech_stopped'))
    call.session.close()
  }

  const early = await openSpokenCall(engine, config)
  early.session.sayLast(words)
  await last(early, 'before the first word')

  const announcing = await openSpokenCall(engine, config)
  await announcing.agent()
  announcing.session.sayLast(words)
  await last(announcing, 'in place of an announcement')

  const interrupted = await openSpokenCall(engine, withDrinks())
  const { itemId } = await interrupted.agent()
  const speech = interrupted.say(await engine.speak('Just one moment, please.', 'rms'))
  await interrupted.next('user_speech_started')
  interrupted.session.sayLast(words)
  interrupted.session.interrupt({ itemId, playedMs: 300 })
  await speech
  await last(interrupted, 'while the caller speaks')

  const added = await openSpokenCall(engine, withDrinks())
  await added.agent()
  added.session.say('By the way.')
  added.session.say('It is late.')
  added.session.sayLast(words)
  await last(added, 'in place of words that were to be added')
})

test('frames of any size are frames, and the day is read out as one says it', async (t) => {
  const call = await openSpokenCall(engine, withDrinks({ script: 'ask tea (yes/no): {{today}}: tea?\nend Fine.' }))
  t.match(await call.agentHeard(), /^[A-Z][a-z]+day, the [a-z ]+ of [A-Z][a-z]+: tea\?$/)
  const lost = log.lines.length
  const speech = call.say(await engine.speak('Yes, please.', 'rms'))
  await call.next('user_speech_started')
  for (const bytes of [0, 0, 0, 0, 0, 0, 3, 100_000]) call.session.hear(new Uint8Array(bytes))
  await speech
  await call.next('user_text', (event) => event.isFinal)
  call.session.close()
  t.same(log.lines.slice(lost), [], 'the recogniser has not died of it')
})

test('a memory that another version wrote is none: who was greeted is not greeted again', async (t) => {
  const history = [{ role: 'agent', text: 'Welcome to the tea house. We are open until nine.' }] as const
  for (const memory of ['garbage', { version: 2, place: 7 }, { version: 1, step: 999 }]) {
    const call = await openSpokenCall(engine, withDrinks({ memory, history, owesReply: true }))
    t.equal((await call.agent()).text, 'Would you like tea, Ada?')
    call.session.close()
  }
})

test('a session that is opened with what the last one remembered says the current line again', async (t) => {
  const first = await openSpokenCall(engine, withDrinks())
  await first.agentHeard()
  await first.agent()
  const memory = first.events.findLast((event) => event.type === 'memory')?.memory ?? null
  first.session.close()
  const second = await openSpokenCall(engine, withDrinks({ memory: JSON.parse(JSON.stringify(memory)) }))
  t.equal(await second.agentHeard(), 'Would you like tea, Ada?')
  await second.say(await engine.speak('No.', 'awb'))
  t.match(await second.next('noted'), { key: 'tea', value: false })
  second.session.close()
})

test('a line that was broken off by the loss of a process is gone on with, and then the script; one that is still being played is not said again', async (t) => {
  const first = await openSpokenCall(engine, withDrinks())
  const { itemId } = await first.agent()
  const welcome = first.events.findLast((event) => event.type === 'memory')?.memory ?? null
  first.session.played(itemId)
  await first.agent()
  const question = first.events.findLast((event) => event.type === 'memory')?.memory ?? null
  first.session.close()
  const greeted = [{ role: 'agent', text: 'Welcome to the tea house.' }] as const

  const broken = { history: greeted, memory: welcome, owesReply: true, brokenOff: { rest: 'We are open until nine.' } }
  const second = await openSpokenCall(engine, withDrinks(broken))
  t.equal(await second.agentHeard(), 'We are open until nine.')
  t.equal(await second.agentHeard(), 'Would you like tea, Ada?')
  second.session.close()

  const asked = [...greeted, { role: 'agent', text: 'Would you like tea, Ada?' }] as const
  const playing = { history: asked, memory: question, owesReply: false, unheardMs: 10_000 }
  const third = await openSpokenCall(engine, withDrinks(playing))
  for (let ms = 0; ms < 15_000; ms += 20) third.session.hear(new Uint8Array(640))
  t.notOk(
    third.events.some((event) => event.type === 'agent_text'),
    'the caller has 6 s from the end of the question on',
  )
  await third.say(await engine.speak('No.', 'awb'))
  t.match(await third.next('noted'), { key: 'tea', value: false })
  third.session.close()
})

test('over a telephone line a greeting of any words lets the agent begin, and its end is not talked over', async (t) => {
  const outbound = { direction: 'outbound', script: 'This is the tea house.' } as const
  const random = createRandom(3)
  for (const greeting of [
    'Hello?',
    'Miller speaking.',
    'Good morning, thank you for calling Miller and Sons, this is Anna.',
  ]) {
    const call = await openSpokenCall(engine, withDrinks(outbound))
    const speech = overTelephone(joined(hiss(random, 1200), await engine.speak(greeting, 'rms')))
    await call.say(speech)
    await call.agent()
    const types = call.events.map(({ type }) => type)
    t.equal(types.indexOf('user_speech_stopped') < types.indexOf('agent_text'), true, greeting)
    const stopped = call.events.find((event) => event.type === 'user_speech_stopped')
    t.ok(stopped && Math.abs(stopped.at - speech.length / 16) < 500, `${stopped?.at} of ${speech.length / 16}`)
    call.session.close()
  }
})

test('what an answering machine says is caught in its greeting, and what a person says is not taken for it', async (t) => {
  const outbound = { direction: 'outbound', script: 'This is the tea house.' } as const
  const greet = async (text: string, voice: string) => {
    const call = await openSpokenCall(engine, withDrinks(outbound))
    await call.say(overTelephone(await engine.speak(text, voice)))
    const heard = await call.next('user_text', (event) => event.isFinal)
    call.session.close()
    return heard.text
  }
  const machine = `I can't come to the phone right now. Please leave your name and number after the tone, and I will get back to you.`
  for (const voice of ['rms', 'slt', 'kal16'])
    t.match(await greet(machine, voice), /leave your name … after the tone/, voice)
  const people = [
    'Oh hello, one moment please, I will just close the door and turn down the music, the children are so loud today.',
    'Sorry it took me so long, the phone was in the kitchen and I had to run, all right, now tell me.',
    'My husband is in the garden at the moment, he will be back in a few minutes, you can try it again after lunch.',
  ]
  for (const text of people) for (const voice of ['rms', 'awb']) t.notMatch(await greet(text, voice), /…/, voice)
  t.equal(await greet('Hello?', 'rms'), 'hello', 'short words are understood as before')
})

test('two phrases of a machine are told with what was not understood between them, one is none', async (t) => {
  const isKnown = (word: string): boolean => !word.startsWith('+')
  const textOf = (words: string) => answeringMachineTextOf(words.split(' '), isKnown)
  t.equal(textOf('+HH +AY leave your name +AE +N after the tone'), '… leave your name … after the tone')
  t.equal(textOf('leave a message after the beep +D'), 'leave a message after the beep …')
  t.equal(textOf('+HH after the tone +AY'), null)
  t.equal(textOf('+T +IH'), null)
})

test('on an outbound call the callee speaks first, or has had the time to', async (t) => {
  const outbound = { direction: 'outbound', script: 'This is the tea house.' } as const
  const quiet = await openSpokenCall(engine, withDrinks(outbound))
  await quiet.silence(3900)
  t.same(quiet.events, [])
  await quiet.silence(200)
  t.equal((await quiet.agent()).text, 'This is the tea house.')
  quiet.session.close()
  const polite = await openSpokenCall(engine, withDrinks(outbound))
  await polite.say(await engine.speak('Hello?', 'slt'))
  t.match(await polite.next('user_text', (event) => event.isFinal), { text: 'hello' })
  t.equal((await polite.agent()).text, 'This is the tea house.')
  polite.session.close()
})

test('without a script the agent says so and ends; instructions alone cannot be followed, which is logged once', async (t) => {
  const call = await openSpokenCall(engine, callConfig())
  t.match((await call.agent()).text, /No call script/)
  await call.next('finished')
  for (let times = 0; times < 2; times++) {
    const prompted = await openSpokenCall(engine, callConfig({ instructions: 'You are a pirate.' }))
    t.match((await prompted.agent()).text, /automated voice that follows written scripts only/)
    await prompted.next('finished')
  }
  t.equal(log.lines.filter(({ message }) => message.includes('cannot follow instructions')).length, 1)
})

test('what cannot be done is refused at the opening: another language, a script with errors', async (t) => {
  await t.rejects(
    engine.open(callConfig({ language: 'de-DE' }), () => undefined),
    /English only, not "de-DE"/,
  )
  const script = 'say Hello.\nask drink (tea | xyzzyx): What?\nend (nowhere): Bye.'
  await t.rejects(
    engine.open(withDrinks({ script }), () => undefined),
    /line 2: the word "xyzzyx" is not in the pronouncing dictionary: .*; line 3: "nowhere" is no next action/,
  )
})

test('an unknown voice is replaced by the default one, with a word in the log', async (t) => {
  const call = await openSpokenCall(engine, callConfig({ worker: { ...callConfig().worker, voiceId: 'marin' } }))
  await call.agent()
  t.match(log.lines.at(-1), { level: 'warn', fields: { voiceId: 'marin' } })
})

const orderTool: EngineTool = {
  name: 'external__find_order',
  description: 'Finds an order.',
  inputSchema: { type: 'object', properties: { number: { type: 'string' } }, required: ['number'] },
}
const orders = `say Welcome.
ask order (digits 3): Which order?
tool find_order (number: {{order}}) into found: One moment.
if found is error: say I cannot find it.
if found.state is late: say It is late.
end Goodbye then.`
const withOrders = (changes: Partial<EngineConfig> = {}): EngineConfig =>
  callConfig({ script: orders, tools: [orderTool], ...changes })
const finalsOf = (events: readonly EngineEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'user_text' && event.isFinal ? [event.text] : []))

test('typed words answer in the middle of a sentence, cut the agent off, and are asked again where they deny or mean two things', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  await call.agentHeard()
  const { itemId } = await call.agent()
  const from = call.events.length
  call.session.typed('Well, no.')
  call.session.interrupt({ itemId, playedMs: 100 })
  t.match(await call.next('noted'), { key: 'tea', value: false })
  const then = typesOf(call.events.slice(from))
  t.same(
    then.slice(0, then.indexOf('memory') + 1),
    ['user_speech_started', 'user_speech_stopped', 'user_text', 'noted', 'memory'],
    'and it is silent by then',
  )
  await call.agentHeard()
  for (const text of ['I do not want coffee', 'Is it coffee or fruit juice?']) {
    call.session.typed(text)
    t.match(await call.agentHeard(), /coffee or fruit juice/, text)
  }
  call.session.typed('I think I would like to have the FRUIT JUICE today, thanks')
  t.match(await call.next('noted'), { key: 'drink', value: 'fruit juice' })
  t.same(finalsOf(call.events).slice(-1), ['I think I would like to have the FRUIT JUICE today, thanks'])
  call.session.close()
  const figures = await openSpokenCall(
    engine,
    callConfig({ script: 'ask pin (digits 3-8): Your number?\nask seats (number 1-99): How many?\nend Thanks.' }),
  )
  await figures.agentHeard()
  figures.session.typed('My code is 40-27')
  t.equal(await figures.agentHeard(), 'I heard 4 0 2 7. Is that right?', 'digits are read back, however they come')
  figures.session.typed('yes')
  t.match(await figures.next('noted'), { key: 'pin', value: '4027' })
  await figures.agentHeard()
  figures.session.typed('42')
  t.match(await figures.next('noted'), { key: 'seats', value: 42 })
  figures.session.close()
})

test('digits are pressed, the tool is called with them, and its result is said', async (t) => {
  const call = await openSpokenCall(engine, withOrders())
  await call.agentHeard()
  const { itemId } = await call.agent()
  const from = call.events.length
  for (const digit of '427') call.session.dtmf(digit)
  call.session.interrupt({ itemId, playedMs: 100 })
  const { id, name, arguments: given } = await call.next('tool_call')
  t.same([name, given], ['external__find_order', { number: '427' }])
  t.same(finalsOf(call.events.slice(from)), ['', '[pressed 4 2 7]'])
  const types = typesOf(call.events.slice(from)).join(' ')
  t.match(
    types,
    /^user_speech_started user_speech_stopped (memory )?user_text (memory )?user_text noted memory tool_call/,
  )
  call.session.toolResult(id, name, { status: 'success', data: { result: { state: 'late' } } })
  t.equal(await call.agentHeard(), 'One moment.')
  t.equal(await call.agentHeard(), 'It is late.')
  call.session.close()
})

test('digits are spoken and read back, and who speaks while the tool runs is listened to', async (t) => {
  const call = await openSpokenCall(engine, withOrders())
  await call.agentHeard()
  await call.agentHeard()
  await call.say(await engine.speak('Four two seven.', 'rms'))
  await call.silence(1000)
  t.equal(await call.agentHeard(), 'I heard 4 2 7. Is that right?')
  await call.say(await engine.speak('Yes.', 'rms'))
  t.match(await call.next('noted'), { key: 'order', value: '427' })
  const { id } = await call.next('tool_call')
  await call.agentHeard()
  await call.say(await engine.speak('The weather is nice in summer.', 'rms'))
  t.match(await call.next('tool_canceled'), { id })
  t.equal((await call.agent()).text, 'I cannot find it.')
  call.session.close()
})

test('a tool that never answers has failed after twenty seconds of the line', async (t) => {
  const call = await openSpokenCall(engine, withOrders())
  await call.agentHeard()
  await call.agentHeard()
  for (const digit of '427') call.session.dtmf(digit)
  await call.agentHeard()
  await call.silence(19_900)
  t.notOk(call.events.some((event) => event.type === 'tool_canceled'))
  await call.silence(300)
  await call.next('tool_canceled')
  t.equal((await call.agent()).text, 'I cannot find it.')
  call.session.close()
})

test('a session that goes on while a tool runs does not call it again, and takes its result', async (t) => {
  const first = await openSpokenCall(engine, withOrders())
  await first.agentHeard()
  await first.agentHeard()
  for (const digit of '427') first.session.dtmf(digit)
  const { id, name } = await first.next('tool_call')
  const memory = first.events.findLast((event) => event.type === 'memory')?.memory ?? null
  first.session.close()
  const history = [{ role: 'agent', text: 'One' }] as const
  const second = await openSpokenCall(engine, withOrders({ memory, history, owesReply: true }))
  const { itemId, text } = await second.agent()
  t.equal(text, 'One moment, please.')
  t.notOk(first.events.some((event) => event.type === 'agent_text' && event.itemId === itemId))
  second.session.played(itemId)
  second.session.toolResult(id, name, { status: 'success', data: { result: { state: 'late' } } })
  t.equal((await second.agent()).text, 'It is late.')
  t.notOk(second.events.some((event) => event.type === 'tool_call'))
  second.session.close()
})

test('a session that goes on when all has been heard is silent until the caller answers', async (t) => {
  const first = await openSpokenCall(engine, withDrinks())
  await first.agentHeard()
  await first.agentHeard()
  const memory = first.events.findLast((event) => event.type === 'memory')?.memory ?? null
  first.session.close()
  const history = [{ role: 'agent', text: 'Would you like tea, Ada?' }] as const
  const second = await openSpokenCall(engine, withDrinks({ memory, history }))
  await second.silence(1000)
  t.notOk(second.events.some((event) => event.type === 'agent_text'))
  await second.say(await engine.speak('No.', 'awb'))
  t.match(await second.next('noted'), { key: 'tea', value: false })
  second.session.close()
})

const house = 'say We are open until nine. We have tea, coffee and juice. We are closed on Monday.\nend Goodbye then.'

test('a backchannel over the agent is no interruption: the agent goes on with the sentence that was cut', async (t) => {
  const okay = await engine.speak('Okay.', 'rms')
  const murmur = (await engine.speak('Oh the weather.', 'rms')).subarray(0, 16 * 400)
  for (const [nod, text] of [
    [okay, 'okay'],
    [murmur, null],
  ] as const) {
    const call = await openSpokenCall(engine, callConfig({ script: house }))
    const { itemId } = await call.agent()
    const first = (await engine.speak('We are open until nine.', 'rms')).length / 16
    const said = call.say(nod)
    await call.next('user_speech_started')
    call.session.interrupt({ itemId, playedMs: first + 300 })
    await said
    if (text !== null) t.match(await call.next('user_text', (event) => event.isFinal), { text })
    t.equal(await call.agentHeard(), 'We have tea, coffee and juice. We are closed on Monday.')
    t.equal((await call.agent()).text, 'Goodbye then.')
    call.session.close()
  }
})

test('keys are taken while something rustles, and a question that a key has cut does not come back', async (t) => {
  const call = await openSpokenCall(engine, withOrders())
  await call.agentHeard()
  const { itemId } = await call.agent()
  call.session.dtmf('4')
  call.session.interrupt({ itemId, playedMs: 100 })
  await call.next('user_text', ({ isFinal }) => isFinal)
  const random = createRandom(4)
  // In strokes: what is quite even is no more than the noise of the line.
  const rustle = Int16Array.from(
    { length: 16 * 400 },
    (_, index) => (random.next() - 0.5) * (index % 1280 < 800 ? 16000 : 4000),
  )
  await call.say(rustle)
  await call.next('user_text', ({ isFinal }) => isFinal)
  await call.silence(200)
  t.same(
    call.events.flatMap((event) => (event.type === 'agent_text' ? [event.text] : [])),
    ['Welcome.', 'Which order?'],
  )
  for (const digit of '27') call.session.dtmf(digit)
  t.match(await call.next('noted'), { value: '427' })
  call.session.close()
})

test('the speech goes on with the sentence that was cut, unless that was answered', async (t) => {
  const open = () => {
    const events: EngineEvent[] = []
    const silence = new Int16Array(16 * 1000)
    const synthesiser = {
      sentence: () => Promise.resolve(silence),
      speak: () => Promise.resolve(silence),
      wake: () => undefined,
      close: () => Promise.resolve(),
    }
    const emit = (event: EngineEvent): void => void events.push(event)
    const speech = createAgentSpeech({
      synthesiser,
      voice: 'rms',
      itemPrefix: 'x-',
      emit,
      onFailed: (error) => t.error(error),
    })
    const texts = (): string[] => events.flatMap((event) => (event.type === 'agent_text' ? [event.text] : []))
    return { speech, texts }
  }
  const say = async (playedMs: number | null) => {
    const { speech, texts } = open()
    speech.say('One is here. Two is here. Three is here.', () => undefined)
    await turn()
    t.equal(speech.fallSilent(0), true)
    t.equal(speech.fallSilent(20), false, 'it is silent already')
    t.equal(speech.interrupted(playedMs === null ? null : { itemId: 'x-1', playedMs }), false)
    return { speech, texts }
  }
  for (const [playedMs, rest] of [
    [1500, 'Two is here. Three is here.'],
    [1900, 'Three is here.'],
    [null, 'One is here. Two is here. Three is here.'],
  ] as const) {
    const { speech, texts } = await say(playedMs)
    t.equal(speech.goOn(), true)
    await turn()
    t.equal(texts().at(-1), rest)
  }
  t.equal((await say(3000)).speech.goOn(), false, 'all of it was heard')
  const { speech } = await say(1500)
  speech.forget()
  t.equal(speech.goOn(), false)
  const early = open()
  early.speech.say('One is here. Two is here.', () => undefined)
  await turn()
  early.speech.fallSilent(0)
  early.speech.forget()
  early.speech.interrupted({ itemId: 'x-1', playedMs: 500 })
  t.equal(early.speech.goOn(), false, 'nor when word of the cut comes later')
})

test('a backchannel after the end of a sentence lets the next one come', async (t) => {
  const call = await openSpokenCall(engine, callConfig({ script: house }))
  const { itemId } = await call.agent()
  const said = call.say(await engine.speak('Okay.', 'rms'))
  await call.next('user_speech_started')
  call.session.played(itemId)
  await said
  t.equal((await call.agent()).text, 'Goodbye then.')
  call.session.close()
})

test('words that somebody else wants said come after the line, word for word, and the script goes on', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  const { itemId } = await call.agent()
  call.session.say('Your table is ready now.')
  call.session.say('Please come soon.')
  call.session.played(itemId)
  t.equal(await call.agentHeard(), 'Your table is ready now.')
  t.equal(await call.agentHeard(), 'Please come soon.')
  t.equal(await call.agentHeard(), 'Would you like tea, Ada?')
  call.session.say('We close at nine.')
  t.equal(await call.agentHeard(), 'We close at nine.', 'while the caller thinks: at once')
  await call.silence(5900)
  t.notOk(call.events.some((event) => event.type === 'agent_text' && event.text.startsWith('Are you still')))
  await call.say(await engine.speak('No.', 'awb'))
  t.match(await call.next('noted'), { key: 'tea', value: false })
  call.session.close()
})

test('an intent is said at a question, and who asks for a person is passed on', async (t) => {
  const script = `intent refund: I want my money back / refund
on refund: say We pay back within a week.
ask tea (yes/no): Would you like tea?
transfer Front desk: Wait.
end Bye.`
  const transfer = { ...orderTool, name: 'call__transfer' }
  const call = await openSpokenCall(engine, callConfig({ script, tools: [transfer] }))
  await call.agentHeard()
  await call.say(await engine.speak('I want my money back.', 'rms'))
  t.equal(await call.agentHeard(), 'We pay back within a week.')
  t.equal(await call.agentHeard(), 'Would you like tea?')
  await call.say(await engine.speak('Speak to a person.', 'rms'))
  t.match(await call.next('tool_call'), { name: 'call__transfer', arguments: { to: 'Front desk' } })
  call.session.close()
})

test('each end of speech is followed by one final text, empty for noise', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  await call.agentHeard()
  await call.agentHeard()
  const random = createRandom(4)
  const cough = Int16Array.from({ length: 16 * 260 }, () => (random.next() - 0.5) * 16000)
  await call.say(cough)
  await call.say(await engine.speak('The weather is nice in summer.', 'rms'))
  await call.next('user_text', (event) => event.isFinal && event.text === '[unclear]')
  const marks = call.events.flatMap((event) => {
    if (event.type === 'user_speech_stopped') return ['stopped']
    return event.type === 'user_text' && event.isFinal ? ['text'] : []
  })
  t.equal(marks.filter((mark) => mark === 'stopped').length, marks.filter((mark) => mark === 'text').length)
  t.equal(finalsOf(call.events).at(-1), '[unclear]')
  call.session.close()
})

test('sixteen calls at once all have their answers understood', async (t) => {
  const speech = await engine.speak('Yes, please.', 'rms')
  const calls = await Promise.all(
    Array.from({ length: 16 }, async () => {
      const call = await openSpokenCall(engine, withDrinks())
      await call.agentHeard()
      await call.agentHeard()
      await call.say(speech)
      const { value } = await call.next('noted')
      call.session.close()
      return value
    }),
  )
  t.same(
    calls,
    Array.from({ length: 16 }, () => true),
  )
})

test('a script that is at its end leaves its message on a machine all the same', async (t) => {
  const script = 'say Hello, this is the clinic.\nvoicemail: Please call us back.'
  const call = await openSpokenCall(engine, callConfig({ script, direction: 'outbound' }))
  await call.silence(5_000)
  t.equal(await call.agentHeard(), 'Hello, this is the clinic.')
  await call.next('finished')
  call.session.interrupt(null)
  call.session.sayLast(call.session.voicemail ?? '')
  t.equal((await call.agent()).text, 'Please call us back.')
  await call.next('finished')
  call.session.close()
})

test('an engine is closed twice, and its sessions say nothing any more', async (t) => {
  const call = await openSpokenCall(engine, withDrinks())
  await engine.close()
  await engine.close()
  call.session.close()
  const said = call.events.length
  call.session.hear(new Uint8Array(640))
  call.session.played('item-1')
  call.session.interrupt(null)
  call.session.dtmf('1')
  call.session.close()
  t.equal(call.events.length, said)
  await t.rejects(
    engine.open(withDrinks(), () => undefined),
    /the embedded engine is closed/,
  )
})

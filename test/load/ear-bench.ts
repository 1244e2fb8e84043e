/**
 * Owns `npm run bench voice ear`: how well the embedded engine hears voices it was not tuned with, what it takes for a caller that is none, which nods
 * over its words cost a line, and how often a worn line hangs up a call. Anybody can run it where apt-get reaches Debian's packages.
 */
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createResampler } from '../../media/pcm/resample.ts'
import { createCallerActivity } from '../../media/vad/caller-activity.ts'
import { levelOf } from '../../media/vad/voice-activity.ts'
import { createVoiceDetectors } from '../../media/vad/voice-detector.ts'
import { createCallerSpeech, type Understood } from '../../voice/engines/embedded/caller-speech.ts'
import { readPronunciations } from '../../voice/engines/embedded/pronunciations.ts'
import { createRecognition, type Recognition } from '../../voice/engines/embedded/recognition.ts'
import { createUnderstandings, type Understandings } from '../../voice/engines/embedded/understanding.ts'
import { doubtedOf } from '../../voice/script/dialogue/doubted-request.ts'
import type { Expected, Slot } from '../../voice/script/expected.ts'
import { closingScript } from '../../voice/script/script.ts'
import { systemClock } from '../../app/clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom, type Random } from '../fake/random.ts'
import { otherHoldMusic } from '../scenes/hold-music.ts'
import { constantNoises, holdMusic, signals, soundOf } from '../scenes/line-noises.ts'
import { otherVoices, promptMusic, promptVoice, removeVoices, type Voice } from './ear-voices.ts'
import { printTable } from './table.ts'

type Ear = { readonly recognition: Recognition; readonly understandings: Understandings }
type Line = { readonly slot: Slot; readonly text: string; readonly spoken: string; readonly wants: string | number }
/** `doubted`: another value, which is read back before it is noted. */
type Count = { right: number; rejected: number; doubted: number; wrong: number }

const today = '2026-11-21'
const choices = (names: readonly string[]): Slot => ({
  kind: 'choices',
  choices: names.map((name) => ({ value: name, name, phrases: [name] })),
})

const wishes = ['a bus ticket', 'the morning train', 'first class', 'with a bicycle', 'two children', 'a full refund']
const more = ['rent a car', 'lost luggage', 'open an account', 'something else', 'in the garden', 'before lunch']
const answers = choices([...wishes, ...more])
const digits: Slot = { kind: 'digits', min: 4, max: 4 }
const number: Slot = { kind: 'number', min: 1, max: 99 }
const line = (slot: Slot, text: string, wants: string | number = text): Line => ({ slot, text, spoken: text, wants })
const linesOfVoices: readonly Line[] = [
  ...[...wishes, ...more].map((name) => line(answers, name)),
  line(digits, 'four two seven one', '4271'),
  line(digits, 'nine oh three eight', '9038'),
  line(number, 'twenty one', 21),
  line(number, 'fifteen', 15),
  line({ kind: 'date' }, 'next tuesday', '2026-11-24'),
  line({ kind: 'date' }, 'december twenty fourth', '2026-12-24'),
  line({ kind: 'time' }, 'half past three', '15:30'),
  line({ kind: 'time' }, "seven o'clock in the evening", '19:00'),
]

const alphabet =
  'alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa quebec romeo sierra tango uniform victor whiskey yankee zulu'
const spelled = choices(alphabet.split(' '))
const units = ['', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine']
const prompt = (slot: Slot, text: string, spoken: string, wants: string | number = text): Line => ({
  slot,
  text,
  spoken,
  wants,
})
/** `spoken` names the files of the prompts. */
const linesOfPeople: readonly Line[] = [
  ...alphabet.split(' ').map((word) => prompt(spelled, word, `phonetic/${word[0]}_p`)),
  ...['4271', '9038', '1625', '7750', '3194', '2846'].map((code) =>
    prompt(
      digits,
      code,
      code
        .split('')
        .map((digit) => `digits/${digit}`)
        .join(' '),
      code,
    ),
  ),
  ...[5, 9, 11, 13, 14, 15, 16, 17, 18, 19, 30, 40, 50, 60, 70, 80, 90].map((of) =>
    prompt(number, String(of), `digits/${of}`, of),
  ),
  ...[21, 34, 47, 52, 68, 73, 89, 95].map((of) =>
    prompt(number, String(of), `digits/${Math.floor(of / 10)}0 digits/${of % 10}`, of),
  ),
  ...[1, 2, 3, 4, 5, 6, 8, 9, 11].map((hour) =>
    prompt(
      { kind: 'time' },
      `${units[hour] ?? hour} o'clock`,
      `digits/${hour} digits/oclock digits/p-m`.replace(' digits/p-m', ''),
      `${String(hour < 7 ? hour + 12 : hour).padStart(2, '0')}:00`,
    ),
  ),
  ...['today', 'tomorrow'].map((day, index) => prompt({ kind: 'date' }, day, `digits/${day}`, `2026-11-2${index + 1}`)),
  ...[23, 24, 25, 26, 27].map((date, index) =>
    prompt({ kind: 'date' }, `day ${index + 1}`, `digits/day-${index + 1}`, `2026-11-${date}`),
  ),
]

export async function benchEar(): Promise<void> {
  const tell = (text: string): void => console.log(text)
  await using closing = new AsyncDisposableStack()
  closing.defer(removeVoices)
  const deps = { clock: systemClock, log: createQuietLog() }
  const recognition = closing.adopt(await createRecognition({ ...deps, threads: 1 }), (opened) => opened.close())
  const ear: Ear = { recognition, understandings: createUnderstandings(await readPronunciations()) }
  const voices = await otherVoices(tell)
  const people = promptVoice(tell)
  await benchVoices(ear, voices, people)
  await benchNonSpeech(tell)
  await benchNods(ear, voices)
  await benchHangUps(ear, [...voices, ...(people === null ? [] : [people])])
}

async function benchVoices(ear: Ear, voices: readonly Voice[], people: Voice | null): Promise<void> {
  console.log('\nvoices that nothing was tuned with; aims: people 90 % right wide, 75 % by telephone, wrong 3 %\n')
  const rows: Record<string, string>[] = []
  const misses: string[] = []
  for (const group of new Set([...(people ? ['people'] : []), ...voices.map((voice) => voice.group)])) {
    const speakers = group === 'people' && people ? [people] : voices.filter((voice) => voice.group === group)
    const counts = { wide: noCount(), telephone: noCount() }
    for (const voice of speakers)
      for (const said of group === 'people' ? linesOfPeople : linesOfVoices) {
        const sound = await voice.say(said.spoken)
        for (const [name, carried] of [
          ['wide', sound],
          ['telephone', telephone(sound)],
        ] as const) {
          const heard = await hear(ear, carried, { slot: said.slot, intents: [], confirming: false })
          const verdict = verdictOf(heard, said)
          counts[name][verdict]++
          if (verdict !== 'right') misses.push(`${voice.name}, ${name}: ${said.text} → ${heard.text || verdict}`)
        }
      }
    rows.push({ voices: group, '16 kHz': sharesOf(counts.wide), 'µ-law': sharesOf(counts.telephone) })
  }
  printTable(rows)
  console.log(`\nnot right:\n${misses.join('\n')}`)
}

const noCount = (): Count => ({ right: 0, rejected: 0, doubted: 0, wrong: 0 })
const sharesOf = ({ right, rejected, doubted, wrong }: Count): string =>
  `${right} right, ${rejected} rejected, ${doubted} wrong but read back, ${wrong} wrong of ${right + rejected + doubted + wrong}`

/** What dialogue/answers.ts makes of a value. */
const isReadBack = ({ isAlike }: { readonly isAlike?: boolean }, confidence: number): boolean =>
  isAlike === true || confidence < 0.7

function verdictOf({ meaning, confidence }: Understood, { slot, wants }: Line): keyof Count {
  if (meaning === null) return 'rejected'
  if (meaning.kind === 'value' && meaning.value === wants) return 'right'
  if (meaning.kind === 'value') return slot.kind === 'digits' || isReadBack(meaning, confidence) ? 'doubted' : 'wrong'
  // No answer to these questions: they are asked again.
  if (meaning.kind === 'request' && (meaning.request === 'yes' || meaning.request === 'no')) return 'rejected'
  if (meaning.kind !== 'choice' || slot.kind !== 'choices') return 'wrong'
  return slot.choices[meaning.index]?.name === wants ? 'right' : 'wrong'
}

/** At the level that the ear makes of the loudest frame of a beginning, with some silence around. */
async function hear({ recognition, understandings }: Ear, sound: Int16Array, expected: Expected): Promise<Understood> {
  const around = 16 * 320
  const heard = new Int16Array(Math.ceil(sound.length / 320) * 320 + 2 * around)
  heard.set(sound, around)
  const onset = Math.max(
    0,
    heard.findIndex((sample) => Math.abs(sample) > 300),
  )
  const levels = Array.from({ length: 9 }, (_, index) =>
    levelOf(heard.subarray(onset + index * 320, onset + index * 320 + 320)),
  )
  const gain = Math.min(16, 800 / Math.max(1, ...levels))
  const understanding = understandings.understandingFor(expected, today)
  const speech = createCallerSpeech({ recognition, understanding, gain, onText: () => undefined })
  for (let at = 0; at < heard.length; at += 320) speech.add(heard.slice(at, at + 320))
  return speech.end()
}

async function benchNonSpeech(tell: (text: string) => void): Promise<void> {
  console.log('\nwhat is nobody’s voice, 25 s each (music of the package 60 s), wide and by telephone; aim: 0 onsets\n')
  const createDetector = await createVoiceDetectors()
  const onsetsIn = (sound: Int16Array): readonly [number, number] => {
    const activity = createCallerActivity(createDetector())
    let [onsets, held, isSpeaking] = [0, 0, false]
    for (let at = 0; at + 320 <= sound.length; at += 320) {
      const event = activity.hear(sound.slice(at, at + 320), false)
      if (event?.type === 'started') onsets++
      if (event !== null) isSpeaking = event.type === 'started'
      if (isSpeaking) held++
    }
    activity.close()
    return [onsets, held / 50]
  }
  const groups: readonly (readonly [string, readonly Int16Array[]])[] = [
    ['tones, signals, keys, beeps', Object.values(signals).map((wave) => soundOf(25_000, wave()))],
    ['constant noise', Object.values(constantNoises).map((wave) => soundOf(25_000, wave()))],
    ['hold music, synthetic', Object.values(holdMusic).map((wave) => soundOf(25_000, wave()))],
    ['hold music, synthetic, of other kinds', Object.values(otherHoldMusic).map((wave) => soundOf(25_000, wave()))],
    ['hold music, recorded', promptMusic(tell)],
  ]
  printTable(
    groups.map(([name, sounds]) => {
      const found = sounds.flatMap((sound) => [onsetsIn(sound), onsetsIn(telephone(sound))])
      return {
        sound: name,
        lines: String(found.length),
        'with an onset': String(found.filter(([onsets]) => onsets > 0).length),
        'held, s': found.reduce((sum, [, held]) => sum + held, 0).toFixed(1),
      }
    }),
  )
}

/** Over a line that asks nothing; what is neither a nod nor too short to be an answer costs the line. */
async function benchNods(ear: Ear, voices: readonly Voice[]): Promise<void> {
  const nods = ['uh huh', 'mm', 'mm hmm', 'i see', 'right', 'okay', 'yeah', 'got it', 'all right', 'oh okay']
  let [lost, total] = [0, 0]
  const losses: string[] = []
  for (const voice of voices)
    for (const text of nods) {
      const sound = await voice.say(text)
      for (const carried of [sound, telephone(sound)]) {
        const {
          meaning,
          isNoise,
          text: heard,
        } = await hear(ear, carried, { slot: { kind: 'none' }, intents: [], confirming: false })
        const isNod = meaning?.kind === 'request' && ['yes', 'nod', 'hello'].includes(meaning.request)
        const isShort = meaning === null && spokenMs(carried) < 700
        total++
        if (isNoise || isNod || isShort) continue
        lost++
        losses.push(`${voice.name}: ${text} → ${heard === '' ? 'not understood' : heard}`)
      }
    }
  console.log(`\nnods over the agent’s words that cost its line: ${lost} of ${total}; aim: 5 %\n${losses.join('\n')}`)
}

const spokenMs = (sound: Int16Array): number =>
  (sound.findLastIndex((sample) => Math.abs(sample) > 300) - sound.findIndex((sample) => Math.abs(sample) > 300)) / 16

const worn = 1000

/** Answers and others under noise, at a question: what is taken for an end or a transfer, and how much of that is not asked about first. */
async function benchHangUps(ear: Ear, voices: readonly Voice[]): Promise<void> {
  const random = createRandom(5)
  const script = { ...closingScript(''), asides: new Map([['person', []]]) }
  const sounds = new Map<string, Int16Array>()
  let [taken, carriedOut] = [0, 0]
  for (let round = 0; round < worn; round++) {
    const voice = random.pick(voices)
    const said = random.pick(voice.group === 'people' ? linesOfPeople : linesOfVoices)
    const key = `${voice.name} ${said.spoken}`
    const sound = sounds.get(key) ?? (await voice.say(said.spoken))
    sounds.set(key, sound)
    const heard = await hear(ear, noisy(telephone(sound), random), { slot: said.slot, intents: [], confirming: false })
    const { meaning, confidence } = heard
    if (meaning?.kind !== 'request' || (meaning.request !== 'goodbye' && meaning.request !== 'person')) continue
    taken++
    if (doubtedOf(script, meaning.request, confidence) === null) carriedOut++
  }
  console.log(
    `\n${worn} lines under noise, 0 to 15 dB: ${taken} taken for an end or a transfer, ${carriedOut} not asked about first; aim: 0`,
  )
}

function noisy(sound: Int16Array, random: Random): Int16Array {
  const level = levelOf(sound.filter((sample) => Math.abs(sample) > 300)) * 10 ** (-(15 * random.next()) / 20)
  return sound.map((sample) =>
    Math.max(-32_768, Math.min(32_767, sample + Math.sqrt(3) * level * (2 * random.next() - 1))),
  )
}

function telephone(sound: Int16Array): Int16Array {
  const narrow = createResampler(16_000, 8000)?.convert(sound).slice() ?? sound
  const law = lawOfEncoding('pcmu')
  const coded = new Uint8Array(narrow.length)
  law.encode(narrow, coded)
  law.decode(coded, narrow)
  return createResampler(8000, 16_000)?.convert(narrow).slice() ?? narrow
}

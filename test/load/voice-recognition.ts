/**
 * Owns how well the embedded engine understands: answers to a question with many, spoken values, intents within other speech, free speech, and
 * what is no answer at all, by three voices, on a wide line and through a telephone's G.711. The voices are synthetic: people do worse.
 */
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createResampler } from '../../media/pcm/resample.ts'
import { createCallerSpeech, type Understood } from '../../voice/engines/embedded/caller-speech.ts'
import type { Expected, Slot } from '../../voice/script/expected.ts'
import type { FliteVoice } from '../../voice/engines/embedded/flite.ts'
import { createRecognition, type Recognition } from '../../voice/engines/embedded/recognition.ts'
import { affirmative, negative, type Choice } from '../../voice/script/phrases.ts'
import { readPronunciations } from '../../voice/engines/embedded/pronunciations.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { createUnderstandings } from '../../voice/engines/embedded/understanding.ts'
import { levelOf } from '../../media/vad/voice-activity.ts'
import { systemClock } from '../../app/clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'

const answers = [
  'yes',
  'no',
  'tea',
  'coffee',
  'fruit juice',
  'a glass of water',
  'inside',
  'outside',
  'near the window',
  'at the bar',
  'monday morning',
  'tuesday afternoon',
  'any time on friday',
  'next week',
  'the blue one',
  'the red one',
  'a small table',
  'a large table',
  'cancel my booking',
  'change my booking',
  'make a booking',
  'opening hours',
  'where are you',
  'pay my bill',
  'talk about my bill',
  'my order is late',
  'something is broken',
  'send it again',
  'credit card',
  'bank transfer',
  'cash on delivery',
  'by post',
  'by e-mail',
  'call me back',
  'i have no idea',
  'not interested',
  'tell me more',
  'technical support',
  'sales department',
  'something else',
] as const

/** The same to another question. Nothing was ever tuned with these: keep it so, and write new ones when something was. */
const heldOutAnswers = [
  'yes',
  'no',
  'a bus ticket',
  'the morning train',
  'one way',
  'there and back',
  'first class',
  'second class',
  'with a bicycle',
  'two children',
  'my wife and i',
  'only myself',
  'a seat by the door',
  'upstairs',
  'downstairs',
  'in the garden',
  'before lunch',
  'after dinner',
  'late at night',
  'on saturday evening',
  'sometime in march',
  'the day before',
  'as soon as possible',
  'rent a car',
  'report a fault',
  'lost luggage',
  'open an account',
  'close my account',
  'renew the contract',
  'a new address',
  'the wrong size',
  'too expensive',
  'a full refund',
  'green and white',
  'plain black',
  'vegetarian',
  'without sugar',
  'customer relations',
  'leave a message',
  'none of these',
] as const

/** Whatever way to say yes was heard is right. */
const phrasesOfAnswer: Readonly<Record<string, readonly string[]>> = { yes: affirmative, no: negative }

/** Words, and the value that they should come to; today is Saturday, the 21st of November 2026. */
const values: readonly (readonly [Slot, string, string | number])[] = [
  [{ kind: 'digits', min: 4, max: 4 }, 'four two seven one', '4271'],
  [{ kind: 'digits', min: 4, max: 4 }, "it's nine oh three eight", '9038'],
  [{ kind: 'digits', min: 4, max: 4 }, 'double five one two', '5512'],
  [{ kind: 'digits', min: 6, max: 6 }, 'my number is three eight one nine four six', '381946'],
  [{ kind: 'digits', min: 3, max: 8 }, 'seven zero two five five', '70255'],
  [{ kind: 'number', min: 1, max: 20 }, 'four', 4],
  [{ kind: 'number', min: 1, max: 99 }, 'twenty one', 21],
  [{ kind: 'number', min: 0, max: 999 }, 'a hundred and five', 105],
  [{ kind: 'number', min: 0, max: 9999 }, 'two thousand three hundred', 2300],
  [{ kind: 'date' }, 'tomorrow', '2026-11-22'],
  [{ kind: 'date' }, 'next tuesday', '2026-11-24'],
  [{ kind: 'date' }, 'on the third of may', '2027-05-03'],
  [{ kind: 'date' }, 'december twenty fourth', '2026-12-24'],
  [{ kind: 'date' }, 'in two weeks', '2026-12-05'],
  [{ kind: 'time' }, 'half past three', '15:30'],
  [{ kind: 'time' }, 'at nine in the morning', '09:00'],
  [{ kind: 'time' }, 'three thirty p m', '15:30'],
  [{ kind: 'time' }, 'noon', '12:00'],
]

const intents: readonly Choice[] = ['cancel my order', 'opening hours', 'speak to the doctor', 'lost my card'].map(
  (name) => ({ value: name, name, phrases: [name] }),
)
const speechWithIntent: readonly (readonly [string, number])[] = [
  ['Well, actually I called because I want to cancel my order from last week.', 0],
  ['Can you tell me your opening hours on Sunday?', 1],
  ['My son is ill and he needs to speak to the doctor today.', 2],
  ['I think that I have lost my card somewhere in town.', 3],
]

const others = [
  'The weather is nice in summer.',
  'My dog ate the newspaper.',
  'I was born in London.',
  'What time is it?',
  'Nobody knows how this works.',
  'The children went to school by bus.',
  'We have been waiting for an hour.',
  'Please speak up, I am driving.',
  'He said that she would come later.',
  'There is a bird on the roof.',
]

const dictated = [
  'I would like to know when you are open on Sunday.',
  'My washing machine is broken and makes a loud noise.',
  'Can you tell me about the price of the large room?',
  'Please send the bill to my office in the city.',
]

export type Count = { readonly right: number; readonly total: number }
export type RecognitionRow = {
  readonly voice: FliteVoice
  readonly rateHz: 8000 | 16_000
  /** 40 answers to one question. */
  readonly answers: Count
  /** Answers that were taken for others. */
  readonly mistaken: number
  /** 40 answers that nothing was tuned with. */
  readonly heldOut: Count
  readonly heldOutMistaken: number
  readonly heldOutMisses: readonly string[]
  readonly values: Count
  /** Values that were taken for others. */
  readonly misheard: number
  /** Caught in the middle of other speech. */
  readonly intents: Count
  /** What is none of the answers, values or intents, and was not understood. */
  readonly others: Count
  /** Words of free speech. */
  readonly words: Count
  /** What went wrong: what was said, and what was heard instead. */
  readonly misses: readonly string[]
}

type Line = (speech: Int16Array) => Int16Array
type Say = (text: string) => Promise<Int16Array>
type Listen = (text: string, expected: Expected) => Promise<Understood>

const today = '2026-11-21'
const around = 16 * 320
const voices = ['rms', 'slt', 'awb'] as const

/** Prints nothing. `only`: a faster look at one voice. */
export async function measureRecognition(only: readonly FliteVoice[] = voices): Promise<readonly RecognitionRow[]> {
  const deps = { clock: systemClock, log: createQuietLog() }
  await using closing = new AsyncDisposableStack()
  const recognition = closing.adopt(await createRecognition({ ...deps, threads: 1 }), (opened) => opened.close())
  const synthesiser = closing.adopt(await createSynthesiser(deps), (opened) => opened.close())
  const { understandingFor } = createUnderstandings(await readPronunciations())
  const rows: RecognitionRow[] = []
  for (const voice of only) {
    for (const [rateHz, line] of [
      [16_000, wideLine],
      [8000, telephoneLine],
    ] as const) {
      const say: Say = (text) => synthesiser.speak(text, voice)
      const listen: Listen = async (text, expected) =>
        hear(recognition, line(await say(text)), understandingFor(expected, today))
      rows.push({ voice, rateHz, ...(await countsOf(listen)) })
    }
  }
  return rows
}

async function countsOf(listen: Listen): Promise<Omit<RecognitionRow, 'voice' | 'rateHz'>> {
  const misses: string[] = []
  const heldOutMisses: string[] = []
  const all = choicesOf(answers)
  const asked = await answered(answers, { listen, misses })
  const heldOut = await answered(heldOutAnswers, { listen, misses: heldOutMisses })
  const valued = await counted(values, async ([slot, text, value]) => {
    const heard = await listen(text, { slot, intents: [], confirming: false })
    const isRight = heard.meaning?.kind === 'value' && heard.meaning.value === value
    if (!isRight) misses.push(missOf(text, heard))
    return { isRight, isOther: !isRight && heard.meaning !== null }
  })
  const caught = await counted(speechWithIntent, async ([text, index]) => {
    const heard = await listen(text, { ...expecting(choicesOf(['yes', 'no'])), intents })
    const isRight = heard.meaning?.kind === 'intent' && heard.meaning.index === index
    if (!isRight) misses.push(missOf(text, heard))
    return { isRight, isOther: false }
  })
  const slots: readonly Slot[] = [all, ...new Map(values.map(([slot]) => [slot.kind, slot])).values()]
  const rejected = await counted(others, async (text) => {
    const heard = await Promise.all(slots.map((slot) => listen(text, { slot, intents, confirming: false })))
    const taken = heard.filter(({ meaning }) => meaning !== null)
    misses.push(...taken.map((instead) => missOf(text, instead)))
    return { isRight: taken.length === 0, isOther: false }
  })
  const words = await wordsTaken(listen)
  return {
    answers: asked,
    mistaken: asked.mistaken,
    heldOut,
    heldOutMistaken: heldOut.mistaken,
    heldOutMisses,
    values: valued,
    misheard: valued.mistaken,
    intents: caught,
    others: rejected,
    words,
    misses,
  }
}

/** Each of the answers to the question that has them all. */
function answered(
  given: readonly string[],
  { listen, misses }: { readonly listen: Listen; readonly misses: string[] },
): Promise<Count & { readonly mistaken: number }> {
  const all = choicesOf(given)
  return counted(given.entries(), async ([index, text]) => {
    const heard = await listen(text, expecting(all))
    const { meaning } = heard
    const isRight = meaning?.kind === 'choice' && meaning.index === index
    if (!isRight) misses.push(missOf(text, heard))
    return { isRight, isOther: !isRight && meaning !== null }
  })
}

const missOf = (said: string, { text, confidence }: Understood): string => `${said} → ${text} (${confidence})`

async function counted<Item>(
  items: Iterable<Item>,
  tell: (item: Item) => Promise<{ readonly isRight: boolean; readonly isOther: boolean }>,
): Promise<Count & { readonly mistaken: number }> {
  let [right, total, mistaken] = [0, 0, 0]
  for (const item of items) {
    const { isRight, isOther } = await tell(item)
    total++
    if (isRight) right++
    if (isOther) mistaken++
  }
  return { right, total, mistaken }
}

/** Words of a sentence that are in what was heard. */
async function wordsTaken(listen: Listen): Promise<Count> {
  let [right, total] = [0, 0]
  for (const text of dictated) {
    const heard = await listen(text, { slot: { kind: 'free' }, intents: [], confirming: false })
    const found = new Set(heard.text.split(' '))
    const said = text
      .toLowerCase()
      .replace(/[^a-z ]/g, '')
      .split(' ')
    total += said.length
    right += said.filter((word) => found.has(word)).length
  }
  return { right, total }
}

const choicesOf = (names: readonly string[]): Slot => ({
  kind: 'choices',
  choices: names.map((name) => ({ value: name, name, phrases: phrasesOfAnswer[name] ?? [name] })),
})
const expecting = (slot: Slot): Expected => ({ slot, intents: [], confirming: false })

/** As it comes from a line: some silence around, at the level that the ear makes of its loudest frame. */
async function hear(
  recognition: Recognition,
  line: Int16Array,
  understanding: ReturnType<ReturnType<typeof createUnderstandings>['understandingFor']>,
): Promise<Understood> {
  const onset = Math.max(
    0,
    line.findIndex((sample) => Math.abs(sample) > 300),
  )
  const levels = Array.from({ length: 9 }, (_, index) =>
    levelOf(line.subarray(onset + index * 320, onset + index * 320 + 320)),
  )
  const gain = Math.min(16, 800 / Math.max(1, ...levels))
  const speech = createCallerSpeech({ recognition, understanding, gain, onText: () => undefined })
  for (let at = 0; at < line.length; at += 320) speech.add(line.slice(at, at + 320))
  return speech.end()
}

const wideLine: Line = (speech) => {
  const line = new Int16Array(Math.ceil(speech.length / 320) * 320 + 2 * around)
  line.set(speech, around)
  return line
}

/** µ-law with a noise 35 dB below the speech, as a good line has it. */
const telephoneLine: Line = (speech) => {
  const random = createRandom(8)
  const noise = Math.sqrt(3) * levelOf(speech.filter((sample) => Math.abs(sample) > 300)) * 10 ** (-35 / 20)
  const wide = wideLine(speech).map((sample) => sample + noise * (2 * random.next() - 1))
  const narrow = createResampler(16_000, 8000)?.convert(wide).slice() ?? wide
  const law = lawOfEncoding('pcmu')
  const coded = new Uint8Array(narrow.length)
  law.encode(narrow, coded)
  law.decode(coded, narrow)
  return createResampler(8000, 16_000)?.convert(narrow).slice() ?? narrow
}

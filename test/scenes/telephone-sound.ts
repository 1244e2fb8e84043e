/** Owns sound as a telephone line brings it: narrow, µ-law coded, with the hiss of a line between the words. 16 kHz. */
import { joined as joinedPieces } from '../../media/pcm/joined.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { createResampler } from '../../media/pcm/resample.ts'
import type { Random } from '../fake/random.ts'

const perMs = 16

export const joined = (...parts: readonly Int16Array[]): Int16Array => joinedPieces(parts)

export const hiss = (random: Random, ms: number, level = 20): Int16Array =>
  Int16Array.from({ length: ms * perMs }, () => (random.next() * 2 - 1) * level)

/** All tones at once, each at `level`. */
export const tones = (hertz: readonly number[], ms: number, level = 6000): Int16Array =>
  Int16Array.from({ length: ms * perMs }, (_, index) =>
    hertz.reduce((sum, pitch) => sum + level * Math.sin((2 * Math.PI * pitch * index) / 16_000), 0),
  )

/** Notes that are plucked, one after another, with their overtones. */
export function tune(random: Random, ms: number, noteMs: number): Int16Array {
  const scale = [262, 294, 330, 349, 392, 440, 494, 523]
  const notes = Array.from({ length: Math.ceil(ms / noteMs) }, () => {
    const pitch = random.pick(scale)
    const note = tones([pitch, 2 * pitch, 3 * pitch], noteMs, 2500)
    return note.map((sample, index) => sample * Math.exp((-3 * index) / note.length))
  })
  return joined(...notes)
}

export const louder = (sound: Int16Array, factor: number): Int16Array =>
  sound.map((sample) => Math.max(-32_768, Math.min(32_767, sample * factor)))

export function overTelephone(sound: Int16Array): Int16Array {
  const narrow = createResampler(16_000, 8000)?.convert(sound).slice() ?? sound
  const law = lawOfEncoding('pcmu')
  const coded = new Uint8Array(narrow.length)
  law.encode(narrow, coded)
  law.decode(coded, narrow)
  return createResampler(8000, 16_000)?.convert(narrow).slice() ?? narrow
}

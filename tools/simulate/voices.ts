/** Owns the sounds that callers make: speech in several voices, pitches and speeds, a cough, and a room full of people. */
import { systemClock as clock } from '../../app/clock.ts'
import { joined } from '../../media/pcm/joined.ts'
import { silentLog } from '../../model/log.ts'
import { fliteVoices, type FliteVoice } from '../../voice/engines/embedded/flite.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import { createRandom, type Random } from '../chaos/random.ts'
import { resized, stretched } from './stretch.ts'

export type Voice = { readonly voice: FliteVoice; readonly pitch: number; readonly speed: number }

export type Voices = {
  /** 16-bit at 16 kHz. */
  speak(text: string, voice: Voice): Promise<Int16Array>
  cough(random: Random): Int16Array
  people(): Promise<Int16Array>
  close(): Promise<void>
}

const rateHz = 16_000
const talk = [
  'We were there last summer, and the weather was lovely all the time.',
  'I told him that the meeting is on Thursday, but he would not listen.',
  'Have you seen the new place around the corner?',
  'She said the train was half an hour late again.',
] as const

export async function openVoices(): Promise<Voices> {
  const synthesiser = await createSynthesiser({ clock, log: silentLog })
  const speak: Voices['speak'] = async (text, { voice, pitch, speed }) => {
    const plain = await synthesiser.speak(text, voice)
    // Resizing raises the pitch and shortens; stretching gives the length back, and the speed.
    return resized(stretched(plain, pitch / speed), 1 / pitch)
  }
  let people: Promise<Int16Array> | null = null
  return {
    speak,
    cough: coughOf,
    people: () => (people ??= peopleOf(speak)),
    close: () => synthesiser.close(),
  }
}

/** Four who talk at once, each from another sentence on. */
async function peopleOf(speak: Voices['speak']): Promise<Int16Array> {
  const speakers = await Promise.all(
    fliteVoices.map(async (voice, index) => {
      const order = talk.map((_, at) => talk[(at + index) % talk.length] ?? '')
      const said: Int16Array[] = []
      for (const text of order) said.push(await speak(text, { voice, pitch: 0.9 + 0.1 * index, speed: 1 }))
      return joined(said)
    }),
  )
  const length = Math.min(...speakers.map((said) => said.length))
  return Int16Array.from(
    { length },
    (_, at) => speakers.reduce((sum, said) => sum + (said[at] ?? 0), 0) / speakers.length,
  )
}

/** Two bursts of noise that die away, the second one softer. */
function coughOf(random: Random): Int16Array {
  const own = createRandom(random.below(2 ** 31))
  const burst = (ms: number, level: number): Int16Array => {
    let last = 0
    return Int16Array.from({ length: (rateHz * ms) / 1000 }, (_, at) => {
      last = 0.6 * last + 0.4 * (2 * own.next() - 1)
      const dying = Math.exp((-5 * at) / ((rateHz * ms) / 1000))
      return level * dying * last
    })
  }
  return joined([
    burst(180 + own.below(80), 22_000),
    new Int16Array((rateHz * 80) / 1000),
    burst(140 + own.below(60), 15_000),
  ])
}

/** `any`: which one the seed says. */
export const voiceOf = (
  wanted: { readonly voice: FliteVoice | 'any'; readonly pitch: number; readonly speed: number },
  random: Random,
): Voice => ({ ...wanted, voice: wanted.voice === 'any' ? random.pick(fliteVoices) : wanted.voice })

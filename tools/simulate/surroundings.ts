/** Owns what is heard around a caller: noise, people who talk, and the agent's own sound that comes back. All of it by the seed. */
import type { Random } from '../chaos/random.ts'
import { sampleOf } from '../../media/pcm/half-band.ts'
import { frameMs } from '../../model/frame.ts'
import { frameSamples } from '../callers/line-sound.ts'
import type { Scenario } from './scenario.ts'

export type Surroundings = {
  /** What is sent when this is said while that is heard. */
  around(spoken: Int16Array, heard: Int16Array): Int16Array
}

const fullScale = 32_768
const factorOf = (decibels: number): number => 10 ** (decibels / 20)

/** `babble`: people who talk all the time, as loud as full scale allows; it is repeated. */
export function createSurroundings(
  { noise, babble, echo }: Scenario['surroundings'],
  { random, people }: { readonly random: Random; readonly people: Int16Array },
): Surroundings {
  const kept: Int16Array[] = []
  const delayed = echo ? Math.max(1, Math.round(echo.delay / frameMs)) : 0
  const hiss = noise === undefined ? null : createHiss(random, factorOf(noise) * fullScale)
  const loudness = babble === undefined ? 0 : (factorOf(babble) * fullScale) / Math.max(1, rootMeanSquare(people))
  let at = people.length === 0 ? 0 : random.below(people.length)
  if (!hiss && !echo && babble === undefined) return { around: (spoken) => spoken }
  return {
    around(spoken, heard) {
      const back = echo ? backFrom(kept, heard, delayed) : null
      const backAt = echo ? factorOf(echo.level) : 0
      const frame = new Int16Array(frameSamples)
      for (let i = 0; i < frameSamples; i++) {
        let sum = spoken[i] ?? 0
        if (hiss) sum += hiss()
        if (loudness > 0) sum += loudness * (people[(at + i) % people.length] ?? 0)
        if (back) sum += backAt * (back[i] ?? 0)
        frame[i] = sampleOf(sum)
      }
      at += frameSamples
      return frame
    },
  }
}

/** What was heard so many frames ago. */
function backFrom(kept: Int16Array[], heard: Int16Array, delayed: number): Int16Array | null {
  kept.push(heard)
  return kept.length > delayed ? (kept.shift() ?? null) : null
}

/** Noise as of a room: the low is louder than the high (one pole). */
function createHiss(random: Random, level: number): () => number {
  const kept = 0.9
  // The pole takes away; the spread of evenly distributed numbers is 1/√3.
  const gain = level * Math.sqrt(3 * (1 - kept * kept))
  let last = 0
  return () => (last = kept * last + gain * (2 * random.next() - 1))
}

const rootMeanSquare = (samples: Int16Array): number =>
  Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / Math.max(1, samples.length))

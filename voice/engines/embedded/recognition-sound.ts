/** Owns what goes into a recogniser and what comes out: sound at the level that it likes, and its segments as words with scores. */
import { isPhone } from './grammar.ts'
import type { HeardWords } from './recognition-messages.ts'
import { createBandwidthExtension, louder } from './bandwidth-extension.ts'
import type { Segment } from './pocketsphinx.ts'

/** Loudness of a least significant bit or so: the recogniser does not like digital silence. */
const dither = 4

export type Preparation = {
  /** At the level that the recogniser likes, with all that a voice has, and never quite silent. */
  prepare(samples: Int16Array): Int16Array
  /** What no telephone carries has come. */
  isWide(): boolean
}

/** A new one for every utterance: nothing of the last one is left. `isWide`: what is missing above a telephone's band is not missing by the line. */
export function createPreparation(gain: number, isWide = false): Preparation {
  const noise = createNoise()
  const band = createBandwidthExtension(noise)
  return {
    prepare: (samples) =>
      Int16Array.from(isWide ? louder(samples, gain) : band.restore(samples, gain), (sample) =>
        Math.max(-32768, Math.min(32767, Math.round(sample + dither * noise()))),
      ),
    isWide: () => isWide || band.isWide(),
  }
}

/** From -1 to 1, always the same (a linear congruential generator): the same sound gives the same words. */
function createNoise(): () => number {
  let state = 1
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 31 - 1
  }
}

/** Shorter segments have scores of chance. In frames of 10 ms. */
const tellingWord = 8
const tellingSilence = 12

/** Words without fillers, and how well the sound fits them. */
export function summaryOf(segments: readonly Segment[]): HeardWords {
  const spoken = segments.filter(({ word }) => !isFiller(word))
  const score = spoken.reduce((sum, segment) => sum + segment.score, 0) / Math.max(1, framesOf(spoken))
  const first = segments.findIndex(({ word }) => !isFiller(word))
  const telling = segments.slice(first).filter((segment) => {
    const frames = framesOf([segment])
    return frames >= (isFiller(segment.word) ? tellingSilence : tellingWord)
  })
  const worst = Math.min(0, ...telling.map((segment) => segment.score / framesOf([segment])))
  return { words: spoken.map(({ word }) => plainWord(word)), score, worst }
}

/** What scores lower is something else, and so is what has a worse part than `worstPart`. Found by trying with four voices. */
export const worstScore = -43
export const worstPart = -60
/** Any speech has something of digits and numbers: what is none scores from -33 down. */
export const worstValue = -36
/** Fewer phones than this are a noise that looked like speech. */
const speechPhones = 3

export const isNoise = ({ words }: HeardWords): boolean =>
  words.length === 0 || (words.every(isPhone) && words.length < speechPhones)

/** Not understood, or not in every grammar. */
export const isPoor = (heard: HeardWords): boolean =>
  !isNoise(heard) && (heard.words.some(isPhone) || heard.score < worstValue || heard.worst < worstPart)

const isFiller = (word: string): boolean => /^[<[(]/.test(word)
const framesOf = (segments: readonly Segment[]): number =>
  segments.reduce((sum, { start, end }) => sum + end - start + 1, 0)

/** `the(2)` is the second way to say `the`. */
export const plainWord = (word: string): string => (isPhone(word) ? word : word.replace(/\(\d\)$/, ''))

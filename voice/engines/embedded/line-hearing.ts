/**
 * Owns by which model an utterance is heard: as a telephone's until it has sound that no telephone carries, then from its beginning once more as a wide
 * line's. A line whose room is heard shows what it is with the first frame; a very clean one with its first s. What was not understood at the end is heard
 * once more by a model that fits more: it costs those who would be asked again a tenth of the time that they spoke.
 */
import type { DecoderPool } from './decoder-pool.ts'
import type { Grammar } from './grammar.ts'
import type { LineModel } from './line-model.ts'
import type { Decoder } from './pocketsphinx.ts'
import type { HeardWords } from './recognition-messages.ts'
import { createPreparation, isPoor, summaryOf, type Preparation } from './recognition-sound.ts'
import type { SecondLook } from './second-looks.ts'

/** Of one utterance. */
export type LineHearing = {
  /** The words so far, fillers left out. */
  feed(samples: Int16Array): string
  stop(): { readonly heard: HeardWords; readonly look: SecondLook | null }
  /** It ends without a result, in whatever state it is. */
  drop(): void
}

/** Samples at 16 kHz, 5 s: who speaks longer does not answer, and everybody would wait for it. */
const mostLookedAgain = 80_000

/** `gain` brings it to the level that the recogniser likes. */
export function createLineHearing(pool: DecoderPool, grammar: Grammar, gain: number): LineHearing {
  let isWide = false
  let decoder = pool.take('telephone', grammar)
  let preparation: Preparation = createPreparation(gain)
  let raw: Int16Array[] = []
  let prepared: Int16Array[] = []

  const hear = (samples: Int16Array): string => {
    const piece = preparation.prepare(samples)
    prepared.push(piece)
    return decoder.feed(piece)
  }
  const beginWide = (): string => {
    isWide = true
    pool.giveBack(decoder)
    decoder = pool.take('wide', grammar)
    preparation = createPreparation(gain, isWide)
    prepared = []
    const words = raw.reduce((_, piece) => hear(piece), '')
    raw = []
    return words
  }
  return {
    feed(samples) {
      if (!isWide) raw.push(samples)
      const words = hear(samples)
      return !isWide && preparation.isWide() ? beginWide() : words
    },
    stop() {
      const heard = summaryOf(decoder.stop())
      pool.giveBack(decoder)
      const isLong = prepared.reduce((sum, piece) => sum + piece.length, 0) > mostLookedAgain
      if (isLong || !isPoor(heard)) return { heard, look: null }
      return { heard, look: createLook(pool, isWide ? 'unusual' : 'noisy', grammar, prepared) }
    },
    drop: () => pool.giveBack(decoder),
  }
}

/** Looks come one after another, so that all share their decoders. */
function createLook(pool: DecoderPool, model: LineModel, grammar: Grammar, sound: readonly Int16Array[]): SecondLook {
  const left = sound.values()
  let decoder: Decoder | null = null
  return {
    goOn() {
      decoder ??= pool.take(model, grammar)
      const { value: piece, done } = left.next()
      if (!done) {
        decoder.feed(piece)
        return null
      }
      const heard = summaryOf(decoder.stop())
      pool.giveBack(decoder)
      return heard
    },
  }
}

/**
 * Owns by which model an utterance is heard: as a telephone's until it has sound that no telephone carries, then from its beginning once more as a wide
 * line's. A line whose room is heard shows what it is with the first frame; a very clean one with its first s. What was not understood at the end is heard
 * once more by a model that fits more: it costs those who would be asked again a tenth of the time that they spoke.
 */
import type { Grammar } from './grammar.ts'
import type { LineModel } from './line-model.ts'
import type { Decoder } from './pocketsphinx.ts'
import type { HeardWords } from './recognition-messages.ts'
import { createPreparation, isPoor, summaryOf, type Preparation } from './recognition-sound.ts'
import type { SecondLook } from './second-looks.ts'

export type LineHearing = {
  /** Begins an utterance; what was under way is forgotten. `gain` brings it to the level that the recogniser likes. */
  start(grammar: Grammar, gain: number): void
  /** The words so far, fillers left out. */
  feed(samples: Int16Array): string
  stop(): { readonly heard: HeardWords; readonly look: SecondLook | null }
  /** The same without a result. */
  drop(): void
}

/** Samples at 16 kHz, 5 s: who speaks longer does not answer, and everybody would wait for it. */
const mostLookedAgain = 80_000

type CreateDecoder = (model: LineModel) => Decoder
type LookAgain = (model: LineModel, grammar: Grammar, sound: readonly Int16Array[]) => SecondLook

/**
 * What creates the hearings of one thread. Decoders for wide lines and for a second look are created when the first is needed; second looks come one after
 * another, so that all share their decoders.
 */
export function createLineHearings(createDecoder: CreateDecoder): () => LineHearing {
  const kept = new Map<LineModel, Decoder>()
  const decoderOf = (model: LineModel): Decoder => {
    const decoder = kept.get(model) ?? createDecoder(model)
    kept.set(model, decoder)
    return decoder
  }
  const lookAgain: LookAgain = (model, grammar, sound) => {
    let heard = 0
    return {
      goOn() {
        const decoder = decoderOf(model)
        if (heard === 0) decoder.start(grammar)
        const piece = sound[heard++]
        if (piece === undefined) return summaryOf(decoder.stop())
        decoder.feed(piece)
        return null
      },
    }
  }
  return () => createLineHearing(createDecoder, lookAgain)
}

function createLineHearing(createDecoder: CreateDecoder, lookAgain: LookAgain): LineHearing {
  const telephone = createDecoder('telephone')
  let wide: Decoder | null = null
  let decoder = telephone
  let preparation: Preparation = createPreparation(1)
  let grammar: Grammar | null = null
  let gain = 1
  let raw: Int16Array[] = []
  let prepared: Int16Array[] = []

  const hear = (samples: Int16Array): string => {
    const piece = preparation.prepare(samples)
    prepared.push(piece)
    return decoder.feed(piece)
  }
  const begin = (by: Decoder, isWide: boolean): void => {
    decoder = by
    preparation = createPreparation(gain, isWide)
    prepared = []
    if (grammar !== null) decoder.start(grammar)
  }
  const beginWide = (): string => {
    telephone.stop()
    wide ??= createDecoder('wide')
    begin(wide, true)
    return raw.reduce((_, piece) => hear(piece), '')
  }
  const isTelephone = (): boolean => decoder === telephone
  const forget = (): void => {
    raw = []
    prepared = []
  }
  return {
    start(next, loudness) {
      grammar = next
      gain = loudness
      raw = []
      begin(telephone, false)
    },
    feed(samples) {
      if (isTelephone()) raw.push(samples)
      const words = hear(samples)
      return isTelephone() && preparation.isWide() ? beginWide() : words
    },
    stop() {
      const heard = summaryOf(decoder.stop())
      const sound = prepared
      forget()
      const isLong = sound.reduce((sum, piece) => sum + piece.length, 0) > mostLookedAgain
      if (grammar === null || isLong || !isPoor(heard)) return { heard, look: null }
      return { heard, look: lookAgain(isTelephone() ? 'noisy' : 'unusual', grammar, sound) }
    },
    drop() {
      decoder.stop()
      forget()
    },
  }
}

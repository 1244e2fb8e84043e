/**
 * Owns the decoders of a recognition thread, of all models. Each takes 8 MB and 50 ms to be made. Who has heard an utterance out leaves it to the next one,
 * before all to one of a grammar that it has; and for callers on the line they are made before these speak.
 */
import { phoneWords, type Grammar } from './grammar.ts'
import type { LineModel } from './line-model.ts'
import type { Decoder } from './pocketsphinx.ts'

export type DecoderPool = {
  /** One that nobody uses, at the beginning of an utterance. Throws when `most` of the model are in use. */
  take(model: LineModel, grammar: Grammar): Decoder
  giveBack(decoder: Decoder): void
  /** Makes one of those that so many callers may need; false: all are there. */
  prepare(callers: number): boolean
}

type Entry = { readonly model: LineModel; readonly decoder: Decoder; isFree: boolean }

/** `most`: of each model. */
export function createDecoderPool(most: number, createDecoder: (model: LineModel) => Decoder): DecoderPool {
  const entries: Entry[] = []
  const of = (model: LineModel): readonly Entry[] => entries.filter((entry) => entry.model === model)
  let hasHeardWide = false

  const add = (model: LineModel): Entry => {
    if (of(model).length >= most) throw new Error('more utterances than decoders')
    const entry = { model, decoder: createDecoder(model), isFree: true }
    entries.push(entry)
    return entry
  }
  /** What lines are is not known before they are heard: most threads hear either telephones or browsers. */
  const missing = (callers: number): LineModel | null => {
    const wanted = Math.min(most, callers)
    if (of('telephone').length < Math.max(1, wanted)) return 'telephone'
    return of('wide').length < (hasHeardWide ? wanted : Math.min(1, wanted)) ? 'wide' : null
  }
  return {
    take(model, grammar) {
      const free = of(model).filter(({ isFree }) => isFree)
      const entry = free.find(({ decoder }) => decoder.knows(grammar)) ?? free[0] ?? add(model)
      entry.decoder.start(grammar)
      entry.isFree = false
      hasHeardWide ||= model === 'wide'
      return entry.decoder
    },
    giveBack(decoder) {
      for (const entry of entries) if (entry.decoder === decoder) entry.isFree = true
    },
    prepare(callers) {
      const model = missing(callers)
      // Each grammar has them, and to take them in is most of the work on the first one.
      if (model !== null) add(model).decoder.learn(phoneWords)
      return model !== null
    },
  }
}

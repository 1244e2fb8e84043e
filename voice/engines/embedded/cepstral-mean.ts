/**
 * Owns the mean that the recogniser takes from every frame, so that neither line nor noise matters. Left alone it is that of whoever spoke into
 * the same decoder before. The binding cannot set it, so it is looked up in the heap: every utterance begins with a usual mean and moves to its
 * own, and the same sound gives the same words.
 */
import { eachFound, wordAt, type Heap } from './recogniser-heap.ts'

export type CepstralMean = {
  /** Before an utterance. */
  reset(): void
  /** Before each piece of it: what has been heard of it counts. */
  follow(): void
}

/** As `feat.params` of the model has it: by this it is found. It is that of the speech that the model was made of, at another level. */
const modelMean = Float32Array.of(41, -5.29, -0.12, 5.09, 2.48, -4.07, -1.37, -1.78, -5.08, -2.05, -6.45, -1.42, 1.17)
/** Of synthetic voices at the level that the engine makes, with the silence around them: measured. */
const usualMean = [40, -7, 5.6, 5.8, 0.9, -1.6, 3.3, -2.3, -1, -0.2, 1, 1.2, 0]

/** As many frames of 10 ms as the usual mean counts for; the silence before the speech comes first, so that fewer would be too few. */
const usualFrames = 40

/** Places in the recogniser's structure, in words of 32 bits: mean, variance, sum, frames, length. */
const [sumAt, framesAt, lengthAt] = [2, 3, 4]

/** What it returns is to be called once after each decoder was made, before that hears anything. */
export function cepstralMeansOf(heap: Heap): () => CepstralMean {
  const next = eachFound('mean', (from, isNew) => findMean(heap, from, isNew))
  return () => meanOf(heap, next())
}

type Place = { readonly at: number; readonly owner: number }

function findMean({ HEAP32, HEAPF32 }: Heap, from: number, isNew: (at: number) => boolean): Place | null {
  const [first = 0] = modelMean
  for (let at = HEAPF32.indexOf(first, from); at >= 0; at = HEAPF32.indexOf(first, at + 1)) {
    if (!isNew(at) || !modelMean.every((value, index) => HEAPF32[at + index] === value)) continue
    const owner = ownerOf(HEAP32, at, from)
    if (owner !== null) return { at, owner }
  }
  return null
}

function meanOf({ HEAP32, HEAPF32 }: Heap, { at, owner }: Place): CepstralMean {
  const sum = wordAt(HEAP32, owner + sumAt) / 4
  return {
    reset() {
      HEAPF32.set(usualMean, at)
      HEAPF32.fill(0, sum, sum + usualMean.length)
      HEAP32[owner + framesAt] = 0
    },
    follow() {
      const frames = usualFrames + wordAt(HEAP32, owner + framesAt)
      for (const [index, usual] of usualMean.entries())
        HEAPF32[at + index] = (usual * usualFrames + (HEAPF32[sum + index] ?? 0)) / frames
    },
  }
}

/** The structure that points at the mean. */
function ownerOf(words: Int32Array, meanAt: number, from: number): number | null {
  for (let at = words.indexOf(meanAt * 4, from); at >= 0; at = words.indexOf(meanAt * 4, at + 1))
    if (words[at + lengthAt] === usualMean.length) return at
  return null
}

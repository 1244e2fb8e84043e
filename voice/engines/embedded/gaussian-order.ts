/**
 * Owns the order of the Gaussians in the recogniser's heap: by features, as gaussians.wat reads four of them at once, where they were loaded one after another.
 * They are looked up by the shape of the structure that points at them.
 */
import { eachFound, wordAt, type Heap } from './recogniser-heap.ts'

/** Of `gauden_t` from its fifth word on: codebooks, streams, and Gaussians in each of both. */
const counts = [42, 3, 128] as const
const [codebooks, streams, gaussians] = counts
const features = 13
/** Words of the structure. */
const [meansAt, variancesAt, countsAt, lengthsAt] = [0, 1, 4, 7]

/** What it returns is to be called once after each decoder was made, before that hears anything. */
export function gaussianOrderOf(heap: Heap): () => void {
  const next = eachFound('Gaussians', (from, isNew) => findGaussians(heap, from, isNew))
  return () => {
    const { at } = next()
    for (const values of [meansAt, variancesAt]) orderAll(heap, wordAt(heap.HEAP32, at + values))
  }
}

function findGaussians({ HEAP32 }: Heap, from: number, isNew: (at: number) => boolean): { at: number } | null {
  for (let first = HEAP32.indexOf(codebooks, from); first >= 0; first = HEAP32.indexOf(codebooks, first + 1)) {
    const at = first - countsAt
    const isOne = counts.every((count, index) => HEAP32[first + index] === count) && hasLengths(HEAP32, at)
    if (isOne && isNew(at)) return { at }
  }
  return null
}

function hasLengths(words: Int32Array, at: number): boolean {
  const lengths = wordAt(words, at + lengthsAt) / 4
  return Array.from({ length: streams }, (_, stream) => wordAt(words, lengths + stream)).every((n) => n === features)
}

/** `pointer`: of a table of codebooks, of tables of streams, of tables of Gaussians, which lie one behind the other. */
function orderAll({ HEAP32, HEAPF32 }: Heap, pointer: number): void {
  const before = new Float32Array(gaussians * features)
  for (let codebook = 0; codebook < codebooks; codebook++)
    for (let stream = 0; stream < streams; stream++) {
      const table = wordAt(HEAP32, wordAt(HEAP32, pointer / 4 + codebook) / 4 + stream)
      const from = wordAt(HEAP32, table / 4) / 4
      const values = HEAPF32.subarray(from, from + before.length)
      before.set(values)
      for (let gaussian = 0, at = 0; gaussian < gaussians; gaussian++)
        for (let feature = 0; feature < features; feature++) values[feature * gaussians + gaussian] = before[at++] ?? 0
    }
}

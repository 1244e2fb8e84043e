/**
 * Owns the order of the Gaussians in the recogniser's heap: by features, as gaussians.wat reads four of them at once, where they were loaded one after another.
 * The binding tells of no address, so they are looked up by the shape of the structure that points at them.
 */

export type Heap = { readonly HEAP32: Int32Array; readonly HEAPF32: Float32Array }

/** Of `gauden_t` from its fifth word on: codebooks, streams, and Gaussians in each of both. */
const counts = [42, 3, 128] as const
const [codebooks, streams, gaussians] = counts
const features = 13
/** Words of the structure. */
const [meansAt, variancesAt, countsAt, lengthsAt] = [0, 1, 4, 7]

/** What it returns is to be called once after each decoder was made, before that hears anything. */
export function gaussianOrderOf(heap: Heap): () => void {
  const done = new Set<number>()
  let last = 0
  return () => {
    // What is made later mostly lies behind.
    const place = findGaussians(heap, last, done) ?? findGaussians(heap, 0, done)
    if (place === null)
      throw new Error('the recogniser keeps its Gaussians in another shape than the version this was written for')
    done.add(place)
    last = place
    for (const at of [meansAt, variancesAt]) orderAll(heap, wordAt(heap, place + at))
  }
}

function findGaussians(heap: Heap, from: number, done: ReadonlySet<number>): number | null {
  const { HEAP32 } = heap
  for (let at = HEAP32.indexOf(codebooks, from); at >= 0; at = HEAP32.indexOf(codebooks, at + 1)) {
    const place = at - countsAt
    if (!done.has(place) && counts.every((count, index) => HEAP32[at + index] === count) && hasLengths(heap, place))
      return place
  }
  return null
}

function hasLengths(heap: Heap, place: number): boolean {
  const lengths = wordAt(heap, place + lengthsAt) / 4
  return Array.from({ length: streams }, (_, stream) => wordAt(heap, lengths + stream)).every((n) => n === features)
}

/** `pointer`: of a table of codebooks, of tables of streams, of tables of Gaussians, which lie one behind the other. */
function orderAll(heap: Heap, pointer: number): void {
  const before = new Float32Array(gaussians * features)
  for (let codebook = 0; codebook < codebooks; codebook++)
    for (let stream = 0; stream < streams; stream++) {
      const table = wordAt(heap, wordAt(heap, pointer / 4 + codebook) / 4 + stream)
      const from = wordAt(heap, table / 4) / 4
      const values = heap.HEAPF32.subarray(from, from + before.length)
      before.set(values)
      for (let gaussian = 0, at = 0; gaussian < gaussians; gaussian++)
        for (let feature = 0; feature < features; feature++) values[feature * gaussians + gaussian] = before[at++] ?? 0
    }
}

const wordAt = ({ HEAP32 }: Heap, at: number): number => HEAP32[at] ?? 0

/**
 * Owns how structures are looked up in the recogniser's heap, of which the binding tells no address: by their shape, each once, behind the one before at first,
 * where what is made later mostly lies. With eight decoders a look at all of the heap takes longer than making one.
 */

/** The same memory, as words of 32 bits. */
export type Heap = { readonly HEAP32: Int32Array; readonly HEAPF32: Float32Array }

type Find<Place> = (from: number, isNew: (at: number) => boolean) => Place | null

/** What it returns is to be called once after each decoder was made, before that hears anything. `find` gives the first new one from a word on; `what` it is, for the error. */
export function eachFound<Place extends { readonly at: number }>(what: string, find: Find<Place>): () => Place {
  const found = new Set<number>()
  let last = 0
  const isNew = (at: number): boolean => !found.has(at)
  return () => {
    const place = find(last, isNew) ?? find(0, isNew)
    if (place === null)
      throw new Error(`the recogniser keeps its ${what} in another shape than the version this was written for`)
    last = place.at
    found.add(last)
    return place
  }
}

export const wordAt = (words: Int32Array, at: number): number => words[at] ?? 0

/**
 * Owns memory for what is small, short-lived and very frequent: parts of larger pieces. A piece of memory of its own for each frame of sound would cost
 * eight times as much, and counts as memory outside the heap, which makes V8 collect all of it sooner.
 */

/** As that of Node's Buffer: who keeps a part keeps its piece. */
const pieceBytes = 8_192
/** More is a piece of its own. */
const longest = 2_048
const alignment = 8

let piece = new ArrayBuffer(pieceBytes)
let words = new Int32Array(piece)
let used = 0

/** Zeros, at an address that every kind of number may lie on. Nobody else writes there; it must not be handed to another thread, which would take the piece. */
export function pooledBytes(length: number): Uint8Array {
  if (length > longest) return new Uint8Array(length)
  if (used + length > pieceBytes) {
    piece = new ArrayBuffer(pieceBytes)
    words = new Int32Array(piece)
    used = 0
  }
  const bytes = new Uint8Array(piece, used, length)
  used += Math.ceil(length / alignment) * alignment
  return bytes
}

/** Of its own. */
export function pooledCopyOf(bytes: Uint8Array): Uint8Array {
  const copy = pooledBytes(bytes.length)
  copy.set(bytes)
  return copy
}

/** Of what lies in other memory from this word on, at most what a slot of a ring holds: without a view of it, which would be dearer than the copy. */
export function pooledCopyFrom(source: Int32Array, from: number, length: number): Uint8Array {
  const copy = pooledBytes(length)
  const to = copy.byteOffset / 4
  // The rest of the last word is nobody's: what begins behind it begins at a word.
  for (let at = 0; at * 4 < length; at++) words[to + at] = source[from + at]!
  return copy
}

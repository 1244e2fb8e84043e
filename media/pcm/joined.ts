/** Owns one sound made of several. */

export function joined(pieces: readonly Int16Array[]): Int16Array<ArrayBuffer> {
  const whole = new Int16Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

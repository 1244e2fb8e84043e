/** Owns bytes of a stream that wait for the rest of their message: one buffer that grows and is used again. */

export type ByteQueue = {
  append(chunk: Uint8Array): void
  /** All that waits: a view, good until the next `append`. */
  waiting(): Buffer
  /** The first bytes are done with. */
  drop(count: number): void
}

const initialBytes = 4096

export function createByteQueue(): ByteQueue {
  let buffer = Buffer.allocUnsafe(initialBytes)
  let [start, end] = [0, 0]

  function makeRoom(count: number): void {
    if (end + count <= buffer.length) return
    const size = end - start + count
    const roomy = size > buffer.length ? Buffer.allocUnsafe(2 ** Math.ceil(Math.log2(size))) : buffer
    end = buffer.copy(roomy, 0, start, end)
    start = 0
    buffer = roomy
  }

  return {
    append(chunk) {
      makeRoom(chunk.length)
      buffer.set(chunk, end)
      end += chunk.length
    },
    waiting: () => buffer.subarray(start, end),
    drop(count) {
      start += count
      if (start === end) start = end = 0
    },
  }
}

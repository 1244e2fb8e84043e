/**
 * Owns the bytes of one request's body until the application has answered: in one piece of memory, which grows as they come and is paid for
 * out of the budget for all bodies. Pieces are never kept as they come: a body of single bytes would cost a hundred times what it holds.
 */
import { Problem } from '../../model/problem.ts'
import type { ByteShare } from '../../net/byte-budget.ts'

export type BodyBuffer = {
  /** The problem that the reader of the body is to have, and nothing is held any more; null: there was room. */
  add(chunk: Uint8Array): Problem | null
  whole(): Uint8Array<ArrayBuffer>
}

/** Two pages; most bodies are smaller. */
const firstBytes = 8 * 1024

/** `declared`: as its length was announced, 0 when it was not. */
export function createBodyBuffer(declared: number, maxBytes: number, share: ByteShare): BodyBuffer {
  let buffer = new Uint8Array(0)
  let size = 0

  function grow(needed: number): boolean {
    const doubled = Math.min(maxBytes, Math.max(firstBytes, 2 ** Math.ceil(Math.log2(needed))))
    // No more than was announced, as long as that is true.
    const capacity = needed <= declared ? Math.min(declared, doubled) : doubled
    if (!share.hold(capacity)) return false
    const larger = new Uint8Array(capacity)
    larger.set(buffer.subarray(0, size))
    buffer = larger
    return true
  }

  function refuse(problem: Problem): Problem {
    buffer = new Uint8Array(0)
    size = 0
    share.release()
    return problem
  }

  return {
    add(chunk) {
      const needed = size + chunk.length
      if (needed > maxBytes) return refuse(tooLarge())
      if (needed > buffer.length && !grow(needed)) return refuse(noRoom())
      buffer.set(chunk, size)
      size = needed
      return null
    },
    whole: () => (size === buffer.length ? buffer : buffer.slice(0, size)),
  }
}

const tooLarge = (): Problem => new Problem('PAYLOAD_TOO_LARGE', 'The body is larger than a request may have.')

const noRoom = (): Problem =>
  new Problem('SERVICE_UNAVAILABLE', 'Too many bodies of requests are on their way. Try again soon.')

/** Reaches nobody: the client has left, or did not send its body in time. */
export const bodyGone = (): Problem => new Problem('SERVICE_UNAVAILABLE', 'The body did not arrive.')

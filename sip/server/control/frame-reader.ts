/**
 * Owns where one frame of the control protocol ends: `<decimal length in bytes>#<frame>`, one after the other in a stream of bytes. Several
 * may come in one piece and one in many pieces.
 */

/** As a real server bounds it. */
export const maxFrameBytes = 64 * 1024
const maxDigits = 5
const hash = 0x23

export type FrameReader = {
  /** False: what came is no frame, and nothing after it can be trusted. Holds at most one frame that is not complete. */
  push(piece: Uint8Array): boolean
}

export function createFrameReader(taken: (frame: Buffer) => void): FrameReader {
  let pending: Buffer[] = []
  let pendingBytes = 0
  /** Bytes that must be there before it is worth looking again; a frame in many pieces is joined once. */
  let wanted = 1

  function push(piece: Uint8Array): boolean {
    pending.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength))
    pendingBytes += piece.length
    if (pendingBytes < wanted) return true
    const rest = takeFrom(Buffer.concat(pending, pendingBytes))
    if (rest === null) return false
    pending = rest.length > 0 ? [rest] : []
    pendingBytes = rest.length
    return true
  }

  /** What is left over; null: garbage. */
  function takeFrom(bytes: Buffer): Buffer | null {
    let at = 0
    for (;;) {
      const rest = bytes.subarray(at)
      const length = lengthOf(rest)
      if (length === 'garbage') return null
      const end = length === 'incomplete' ? Infinity : length.start + length.bytes
      if (rest.length < end) {
        wanted = Number.isFinite(end) ? end : rest.length + 1
        return rest
      }
      if (length !== 'incomplete') taken(rest.subarray(length.start, end))
      at += end
    }
  }

  return { push }
}

function lengthOf(bytes: Buffer): { readonly start: number; readonly bytes: number } | 'incomplete' | 'garbage' {
  const digits = bytes.subarray(0, maxDigits + 1).indexOf(hash)
  const text = bytes.toString('latin1', 0, digits === -1 ? maxDigits + 1 : digits)
  if (digits === -1) return text.length <= maxDigits && /^\d*$/.test(text) ? 'incomplete' : 'garbage'
  const length = Number(text)
  const valid = /^\d+$/.test(text) && length > 0 && length <= maxFrameBytes
  return valid ? { start: digits + 1, bytes: length } : 'garbage'
}

/** A frame ready to be sent. */
export function frameOf(leader: string, message?: Uint8Array): Buffer {
  const head = message ? `${leader}\r\n` : leader
  const bytes = Buffer.byteLength(head) + (message?.length ?? 0)
  return Buffer.concat([Buffer.from(`${bytes}#${head}`), message ?? new Uint8Array()])
}

/**
 * Owns how ids are made: UUIDv7 (RFC 9562 §5.7 and §6.2, method 2), in order within a process. Random bytes are drawn for many ids at once,
 * because asking the system for them costs more than all the rest.
 */
import { randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'
import type { Id, NewId } from '../model/ids.ts'

const bytesOfOne = 16
const drawnAtOnce = 256

/** `now`: ms since the epoch. */
export function createNewId(now: () => number): NewId {
  const pool = new DataView(new ArrayBuffer(bytesOfOne * drawnAtOnce))
  let used = pool.byteLength
  let msecs = 0
  let seq = 0

  return <Kind extends string>(): Id<Kind> => {
    if (used === pool.byteLength) {
      randomFillSync(pool)
      used = 0
    }
    const random = new Uint8Array(pool.buffer, used, bytesOfOne)
    const at = now()
    if (at > msecs) {
      msecs = at
      // The highest bit is left for those that follow; the library writes other bytes of `random` than these.
      seq = pool.getUint32(used + 6) >>> 1
    } else {
      // In the same millisecond, or the clock was set back.
      seq = (seq + 1) >>> 0
      if (seq === 0) msecs++
    }
    used += bytesOfOne
    return v7({ random, msecs, seq }) as Id<Kind>
  }
}

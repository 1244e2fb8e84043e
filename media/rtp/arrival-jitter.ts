/** Owns how irregularly packets arrive: how much later than the quickest one 95 of 100 come, over the last 128. */

export type ArrivalJitter = {
  /** `timestamp` in RTP units of the clock. */
  readonly add: (timestamp: number, now: number) => void
  /** Milliseconds. */
  readonly p95: () => number
}

const remembered = 128
/** The sender's line and ours have parted (a restart, a pause): what was measured before means nothing. */
const jumpMs = 2000

export function createArrivalJitter(clockRateHz: number): ArrivalJitter {
  const delays = new Float64Array(remembered)
  const sorted = new Float64Array(remembered)
  // Changed in place: of numbers in variables each packet would make new ones.
  const line = { timestamp: 0, ms: 0 }
  let count = 0

  return {
    add(timestamp, now) {
      // Signed 32-bit difference: the timestamp wraps.
      line.ms += (((timestamp - line.timestamp) | 0) * 1000) / clockRateHz
      line.timestamp = timestamp
      const delay = now - line.ms
      if (count > 0 && Math.abs(delay - delays[(count - 1) % remembered]!) > jumpMs) count = 0
      delays[count % remembered] = delay
      count++
    },
    p95() {
      const size = Math.min(count, remembered)
      if (size === 0) return 0
      const ordered = sorted.subarray(0, size)
      ordered.set(delays.subarray(0, size))
      ordered.sort()
      return ordered[Math.floor((size - 1) * 0.95)]! - ordered[0]!
    },
  }
}

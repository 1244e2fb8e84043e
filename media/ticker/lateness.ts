/** Owns how punctual the ticker is: a histogram of fixed size over the last 10 to 20 seconds. */

export type Lateness = {
  /** Slots that were run late or in time. */
  readonly ticks: number
  /** Slots that were given up because the thread was too far behind. */
  readonly skipped: number
  /** Part of the ticks that came more than 10 ms late, 0–1. */
  readonly overTenMs: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** Slots since the ticker began. */
export type LatenessTotals = {
  readonly ticks: number
  /** Run more than `toleratedMs` late. */
  readonly late: number
  readonly skipped: number
}

export type LatenessMeter = {
  readonly add: (lateMs: number, now: number) => void
  readonly skip: (count: number, now: number) => void
  readonly read: (now: number) => Lateness
  readonly totals: () => LatenessTotals
}

/** A frame that is sent later than this after it was due is a late one, ms. */
export const toleratedMs = 10

const windowMs = 10_000
const bucketMs = 0.5
/** The last bucket takes everything from 256 ms on. */
export const buckets = 513
export const bucketOf = (lateMs: number): number => Math.min(buckets - 1, Math.max(0, Math.floor(lateMs / bucketMs)))
/** The upper edge. */
export const lateMsOf = (bucket: number): number => (bucket + 1) * bucketMs

type Window = { readonly counts: Uint32Array; ticks: number; skipped: number; overTen: number; max: number }

export function createLatenessMeter(): LatenessMeter {
  let current = emptyWindow()
  let previous = emptyWindow()
  let endsAt = -Infinity
  const counted = { ticks: 0, late: 0, skipped: 0 }

  const turnTo = (now: number) => {
    if (now < endsAt) return
    const older = previous
    previous = now < endsAt + windowMs ? current : cleared(current)
    current = cleared(older)
    endsAt = now + windowMs
  }

  return {
    add(lateMs, now) {
      turnTo(now)
      current.counts[bucketOf(lateMs)]!++
      current.ticks++
      counted.ticks++
      if (lateMs > toleratedMs) {
        current.overTen++
        counted.late++
      }
      current.max = Math.max(current.max, lateMs)
    },
    skip(count, now) {
      turnTo(now)
      current.skipped += count
      counted.skipped += count
    },
    read(now) {
      turnTo(now)
      const ticks = current.ticks + previous.ticks
      const max = Math.max(current.max, previous.max)
      return {
        ticks,
        skipped: current.skipped + previous.skipped,
        overTenMs: ticks === 0 ? 0 : (current.overTen + previous.overTen) / ticks,
        p50: Math.min(max, quantileOf(current.counts, previous.counts, ticks * 0.5)),
        p99: Math.min(max, quantileOf(current.counts, previous.counts, ticks * 0.99)),
        max,
      }
    },
    totals: () => ({ ...counted }),
  }
}

const emptyWindow = (): Window => ({ counts: new Uint32Array(buckets), ticks: 0, skipped: 0, overTen: 0, max: 0 })

function cleared(window: Window): Window {
  window.counts.fill(0)
  return Object.assign(window, { ticks: 0, skipped: 0, overTen: 0, max: 0 })
}

/** The upper edge of the bucket in which the `rank`th smallest lies. */
function quantileOf(a: Uint32Array, b: Uint32Array, rank: number): number {
  let seen = 0
  for (let bucket = 0; bucket < buckets; bucket++) {
    seen += a[bucket]! + b[bucket]!
    if (seen > 0 && seen >= rank) return lateMsOf(bucket)
  }
  return 0
}

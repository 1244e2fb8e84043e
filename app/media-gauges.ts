/** Owns what a media thread shows of its beat, in shared memory: its owner reads it at any time, and a thread that stands still says nothing. */
import type { MediaPlane } from '../media/plane/media-plane.ts'
import type { Lateness, LatenessTotals } from '../media/ticker/lateness.ts'
import type { Ticker } from '../media/ticker/ticker.ts'
import type { Cancel, Clock } from '../model/clock.ts'

const fields = [
  'ticks',
  'late',
  'skipped',
  'recentTicks',
  'recentSkipped',
  'overTenMs',
  'p50',
  'p99',
  'max',
  'writes',
] as const

/** Behind those that are written together: it grows in between. */
const sleptAt = fields.length

export const createGauges = (): SharedArrayBuffer =>
  new SharedArrayBuffer((fields.length + 1) * Float64Array.BYTES_PER_ELEMENT)

/** The result is told of each sleep of the thread, ms (media/ticker/slot-sleep.ts). */
export function createSleptGauge(memory: SharedArrayBuffer): (ms: number) => void {
  const values = new Float64Array(memory)
  return (ms) => void (values[sleptAt]! += ms)
}

const writtenEvery = 200

/** Written when they are asked for, and while there is sound so often that the gate before new calls sees it come late. */
export function keepGauges(
  memory: SharedArrayBuffer,
  { clock, ticker }: { clock: Pick<Clock, 'after'>; ticker: Pick<Ticker, 'totals' | 'lateness' | 'isBeating'> },
) {
  let cancel: Cancel | null = null
  let isClosed = false
  const again = (): void => {
    cancel = null
    write()
  }
  const write = (): void => {
    writeGauges(memory, ticker)
    if (ticker.isBeating()) writeSoon()
  }
  const writeSoon = (): void => {
    if (!isClosed) cancel ??= clock.after(writtenEvery, again)
  }
  return {
    write,
    /** The first line begins the beat. */
    onPlane: (plane: MediaPlane): MediaPlane => ({
      openPhone() {
        writeSoon()
        return plane.openPhone()
      },
      openWeb(...given) {
        writeSoon()
        return plane.openWeb(...given)
      },
    }),
    close() {
      isClosed = true
      cancel?.()
    },
  }
}

function writeGauges(memory: SharedArrayBuffer, ticker: Pick<Ticker, 'totals' | 'lateness'>): void {
  const totals = ticker.totals()
  const { ticks, skipped, overTenMs, p50, p99, max } = ticker.lateness()
  const writes = readGauges(memory).writes + 1
  const told = { ...totals, recentTicks: ticks, recentSkipped: skipped, overTenMs, p50, p99, max, writes }
  new Float64Array(memory).set(fields.map((field) => told[field]))
}

export function readGauges(memory: SharedArrayBuffer): {
  readonly totals: LatenessTotals
  readonly lateness: Lateness
  /** How often they were written: of a thread that stands still it does not grow. */
  readonly writes: number
  /** Ms, since it began. */
  readonly slept: number
} {
  const values = new Float64Array(memory)
  const of = (field: (typeof fields)[number]): number => values[fields.indexOf(field)] ?? 0
  return {
    writes: of('writes'),
    slept: values[sleptAt] ?? 0,
    totals: { ticks: of('ticks'), late: of('late'), skipped: of('skipped') },
    lateness: {
      ticks: of('recentTicks'),
      skipped: of('recentSkipped'),
      overTenMs: of('overTenMs'),
      p50: of('p50'),
      p99: of('p99'),
      max: of('max'),
    },
  }
}

/** Of several beats: counts in all, and of quantiles the worst. */
export function joinedLateness(all: readonly Lateness[]): Lateness {
  const sum = (of: (one: Lateness) => number): number => all.reduce((total, one) => total + of(one), 0)
  const worst = (of: (one: Lateness) => number): number => all.reduce((most, one) => Math.max(most, of(one)), 0)
  const ticks = sum((one) => one.ticks)
  return {
    ticks,
    skipped: sum((one) => one.skipped),
    overTenMs: ticks === 0 ? 0 : sum((one) => one.overTenMs * one.ticks) / ticks,
    p50: worst((one) => one.p50),
    p99: worst((one) => one.p99),
    max: worst((one) => one.max),
  }
}

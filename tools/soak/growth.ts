/**
 * Owns what counts as growth. Under load: the line that fits the samples best rises over the time by more than is allowed, and its slope is above 0 beyond
 * doubt (two standard errors). At rest: there is more at the end than after the warm-up, by more than is allowed. docs/simulate.md "Soak". Pure.
 */

export type Quantity = {
  readonly name: string
  readonly unit: 'bytes' | 'count'
  /** Under load and at rest this much is no growth: of the mean, and at least this. */
  readonly share: number
  readonly atLeast: number
}

const MB = 1024 * 1024

/** What is looked at in a process. Memory of the whole process has pages that are kept for later; what the heap holds after a collection has not. */
export const quantities = {
  rss: { name: 'resident memory', unit: 'bytes', share: 0.1, atLeast: 24 * MB },
  heap: { name: 'heap after collection', unit: 'bytes', share: 0.05, atLeast: 6 * MB },
  external: { name: 'external memory', unit: 'bytes', share: 0.1, atLeast: 8 * MB },
  timers: { name: 'timers', unit: 'count', share: 0.1, atLeast: 6 },
  handles: { name: 'other active resources', unit: 'count', share: 0.1, atLeast: 6 },
  sockets: { name: 'sockets', unit: 'count', share: 0.1, atLeast: 6 },
  descriptors: { name: 'file descriptors', unit: 'count', share: 0.1, atLeast: 8 },
  threads: { name: 'threads', unit: 'count', share: 0, atLeast: 2 },
} as const satisfies Readonly<Record<string, Quantity>>

export type QuantityName = keyof typeof quantities
export const quantityNames = Object.keys(quantities) as QuantityName[]
export type Sample = { readonly at: number } & Readonly<Record<QuantityName, number>>

export type Trend = {
  /** By which the line rises from the first sample to the last. */
  readonly rise: number
  /** That much is beyond doubt. */
  readonly surely: number
  readonly mean: number
}

/** Least squares. Of fewer than three samples nothing can be said: no rise. */
export function trendOf(points: readonly { readonly at: number; readonly value: number }[]): Trend {
  const count = points.length
  const mean = points.reduce((sum, { value }) => sum + value, 0) / Math.max(1, count)
  if (count < 3) return { rise: 0, surely: 0, mean }
  const middle = points.reduce((sum, { at }) => sum + at, 0) / count
  const spread = points.reduce((sum, { at }) => sum + (at - middle) ** 2, 0)
  if (spread === 0) return { rise: 0, surely: 0, mean }
  const slope = points.reduce((sum, { at, value }) => sum + (at - middle) * (value - mean), 0) / spread
  const left = points.reduce((sum, { at, value }) => sum + (value - mean - slope * (at - middle)) ** 2, 0)
  const error = Math.sqrt(left / (count - 2) / spread)
  const span = points.at(-1)!.at - points[0]!.at
  return { rise: slope * span, surely: (slope - 2 * error) * span, mean }
}

export type Verdict = {
  readonly name: string
  readonly unit: Quantity['unit']
  readonly mean: number
  readonly rise: number
  /** Null: it was not looked at, at rest. */
  readonly atRest: { readonly first: number; readonly last: number } | null
  readonly allowed: number
  readonly grows: boolean
}

export function verdictsOf(
  samples: readonly Sample[],
  rest: { readonly first: Sample; readonly last: Sample },
): Verdict[] {
  return quantityNames.map((key) => {
    const { name, unit, share, atLeast }: Quantity = quantities[key]
    const { rise, surely, mean } = trendOf(samples.map((sample) => ({ at: sample.at, value: sample[key] })))
    const atRest = { first: rest.first[key], last: rest.last[key] }
    const allowed = Math.max(atLeast, share * mean)
    const grows = (rise > allowed && surely > 0) || atRest.last - atRest.first > allowed
    return { name, unit, mean, rise, atRest, allowed, grows }
  })
}

/** Of these tables rows stay when a call is over: so many for each call. Of all others no row may stay. */
const history: readonly string[] = [
  'audit_entries',
  'call_events',
  'call_messages',
  'call_words',
  'calls',
  'deliveries',
  'delivery_attempts',
  'recordings',
  'transcript_turns',
  'web_sessions',
]
/** Rows of other tables that may come to stay. */
const strayRows = 5
/** Rows for each call may be so many times as many as in the warm-up. */
const moreForEachCall = 1.5

export type Counted = { readonly calls: number; readonly rows: Readonly<Record<string, number>> }

export type TableVerdict = {
  readonly table: string
  readonly rows: number
  readonly grown: number
  /** Null: not a table of history. */
  readonly forEachCall: { readonly before: number; readonly now: number } | null
  readonly grows: boolean
}

/** `begin`: before the first call; `first`: after the warm-up; `last`: at the end. All at rest. */
export function tableVerdictsOf(begin: Counted, first: Counted, last: Counted): TableVerdict[] {
  return Object.entries(last.rows).map(([table, rows]) => {
    const grown = rows - (first.rows[table] ?? 0)
    if (!history.includes(table)) return { table, rows, grown, forEachCall: null, grows: grown > strayRows }
    const per = (from: Counted, to: Counted): number =>
      ((to.rows[table] ?? 0) - (from.rows[table] ?? 0)) / Math.max(1, to.calls - from.calls)
    const forEachCall = { before: per(begin, first), now: per(first, last) }
    const isMore = forEachCall.now > forEachCall.before * moreForEachCall + 1
    return { table, rows, grown, forEachCall, grows: isMore }
  })
}

/** What a soak calls growth, without a soak. */
import { test } from 'tap'
import { quantityNames, tableVerdictsOf, trendOf, verdictsOf, type Sample } from '../../tools/soak/growth.ts'

const sample = (at: number, changes: Partial<Sample> = {}): Sample => ({
  ...(Object.fromEntries(quantityNames.map((name) => [name, 100])) as Sample),
  at,
  ...changes,
})
const growing = (samples: readonly Sample[], last = samples.at(-1) ?? sample(0)): string[] =>
  verdictsOf(samples, { first: sample(0), last })
    .filter(({ grows }) => grows)
    .map(({ name }) => name)

test('a timer that every call leaves behind is seen, and one that comes and goes is not', (t) => {
  const leaking = Array.from({ length: 20 }, (_, at) => sample(at * 1000, { timers: 100 + 3 * at }))
  t.same(growing(leaking), ['timers'])
  const busy = Array.from({ length: 20 }, (_, at) => sample(at * 1000, { timers: 100 + 40 * (at % 3) }))
  t.same(growing(busy, sample(20_000)), [])
  t.end()
})

test('what is there at rest and was not after the warm-up grows, whatever the samples under load say', (t) => {
  const flat = Array.from({ length: 10 }, (_, at) => sample(at * 1000))
  t.same(growing(flat, sample(10_000, { sockets: 111, threads: 103 })), ['sockets', 'threads'])
  t.same(growing(flat, sample(10_000, { sockets: 105, threads: 102 })), [])
  t.end()
})

test('the line is that of least squares, and of two samples nothing is said', (t) => {
  const { rise, surely, mean } = trendOf([0, 1, 2, 3, 4].map((at) => ({ at, value: 7 + 2 * at })))
  t.same([rise, surely, mean], [8, 8, 11])
  t.equal(trendOf([{ at: 0, value: 1 }]).rise, 0)
  t.equal(trendOf([0, 0, 0].map((at) => ({ at, value: 5 }))).rise, 0)
  const noisy = trendOf([0, 5, 1, 6, 2].map((value, at) => ({ at, value })))
  t.ok(noisy.rise > 0 && noisy.surely < 0, 'a rise within the noise is none beyond doubt')
  t.end()
})

test('tables of history have so many rows for each call, and all others keep none', (t) => {
  const counted = (calls: number, rows: Record<string, number>) => ({ calls, rows: { calls, ...rows } })
  const begin = counted(0, { call_events: 0, sip_dialogs: 0 })
  const first = counted(10, { call_events: 100, sip_dialogs: 1 })
  const growing = (rows: Record<string, number>): string[] =>
    tableVerdictsOf(begin, first, counted(30, rows))
      .filter(({ grows }) => grows)
      .map(({ table }) => table)
  t.same(growing({ call_events: 310, sip_dialogs: 2 }), [])
  t.same(growing({ call_events: 600, sip_dialogs: 7 }), ['call_events', 'sip_dialogs'])
  t.end()
})

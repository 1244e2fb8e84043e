/** What a load is made of: when callers come, how waits are counted, what is refused before anything is sent, how it reads. */
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { allowedHostsOf } from '../../tools/load/allowed-hosts.ts'
import { arrivalsOf } from '../../tools/load/arrivals.ts'
import { readExpectation, verdictOf } from '../../tools/load/expectations.ts'
import { createLineMeter } from '../../tools/load/line-meter.ts'
import { createLoadFigures } from '../../tools/load/load-figures.ts'
import type { LoadJob } from '../../tools/load/load-job.ts'
import { readLoadOptions, WrongOptions } from '../../tools/load/load-options.ts'
import { reportOf } from '../../tools/load/load-report.ts'
import { createLoadTally } from '../../tools/load/load-tally.ts'
import { placeAll } from '../../tools/load/run-load.ts'

const steady = { rate: 50, rampMs: 0, durationMs: 10_000, calls: 1_000_000, seed: 1 }

test('callers come at the rate that is asked for, the same ones for a seed, and fewer while it rises', (t) => {
  const [one, same, other] = [[...arrivalsOf(steady)], [...arrivalsOf(steady)], [...arrivalsOf({ ...steady, seed: 2 })]]
  t.same(one, same)
  t.notSame(one, other)
  t.equal(one.length, 500)
  t.ok(
    one.every((at, index) => at >= 0 && at < 10_000 && (index === 0 || at > (one[index - 1] ?? 0))),
    'in order, and within the time',
  )
  const risen = [...arrivalsOf({ ...steady, rampMs: 10_000 })]
  t.ok(Math.abs(risen.length - 250) <= 1, 'a rate that rises over the whole time brings half as many')
  t.ok(risen.filter((at) => at < 5_000).length < risen.length / 3)
  t.equal([...arrivalsOf({ ...steady, calls: 7 })].length, 7)
  t.end()
})

const job: LoadJob = {
  ways: ['web'],
  web: null,
  sip: null,
  arrivals: { rate: 200, rampMs: 0, durationMs: 1_000, calls: 200, seed: 1 },
  weather: { loss: 0, jitterMs: 0 },
  phrases: [],
  holdMs: 0,
  atOnce: 1_000,
  allowedHosts: [],
  files: [],
  part: 0,
  of: 1,
  beginsAt: 0,
}

test('a service that stands still is not let off: each caller who waits meanwhile counts with the whole of the wait', async (t) => {
  const tally = createLoadTally()
  const began = performance.now()
  // It serves nobody in the first 600 ms, and everybody at once behind it.
  const opens = began + 600
  const serve = async (due: number): Promise<void> => {
    await pause(Math.max(0, opens - performance.now()))
    tally.value('setUp', performance.now() - due)
  }
  await placeAll({ ...job, beginsAt: Date.now() }, { tally, stopping: new AbortController().signal }, (_index, due) =>
    serve(due),
  )
  const figures = createLoadFigures()
  figures.add(tally.take())
  const { measured, counts } = figures.read()
  t.equal(counts.due, 200, 'nobody stays away because others wait')
  t.equal(measured.setUp?.count, 200)
  // A closed loop would have had one call under way, one long wait in 80 or so, and a median of nothing.
  t.ok((measured.setUp?.p50 ?? 0) > 50, `the median of those who came is ${measured.setUp?.p50} ms`)
  t.ok((measured.setUp?.p99 ?? 0) > 500)
})

test('processes share the callers without losing or doubling one, and what is beyond their places fails aloud', async (t) => {
  const seen: number[] = []
  const signal = new AbortController().signal
  const arrivals = { ...job.arrivals, calls: 20, rate: 1_000 }
  const shared = [0, 1, 2].map((part) =>
    placeAll(
      { ...job, arrivals, part, of: 3, beginsAt: Date.now() },
      { tally: createLoadTally(), stopping: signal },
      (index) => {
        seen.push(index)
        return Promise.resolve()
      },
    ),
  )
  await Promise.all(shared)
  t.same(
    seen.toSorted((first, second) => first - second),
    Array.from({ length: 20 }, (_, index) => index),
  )
  const tally = createLoadTally()
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  setTimeout(open, 300)
  await placeAll({ ...job, arrivals, atOnce: 4, beginsAt: Date.now() }, { tally, stopping: signal }, () => gate)
  const { counts, errors } = tally.take()
  t.equal(counts.failed, 16)
  t.match(Object.keys(errors), [/--at-once/])
})

test('the meter of a line counts what is lost and late, and takes a packet out of order for what it is', (t) => {
  const meter = createLineMeter({ codec: 'pcmu', clockRateHz: 8000 })
  const add = (index: number, lateMs = 0): void =>
    meter.add({ sequenceNumber: (65_530 + index) & 0xffff, timestamp: (index * 160) >>> 0 }, index * 20 + lateMs)
  for (const index of [0, 1, 2, 3, 5, 4, 6, 9, 10]) add(index, index === 10 ? 100 : 0)
  const { received, lost, late, mos } = meter.read()
  t.same({ received, lost, late }, { received: 9, lost: 2, late: 1 })
  t.ok(mos !== null && mos < 4)
  t.same(createLineMeter({ codec: 'pcmu', clockRateHz: 8000 }).read().mos, null, 'of silence there is no opinion')
  t.end()
})

const wrong: readonly (readonly [words: string, says: RegExp])[] = [
  ['web', /say what is to be called: --self, or --url with --key, or --sip/],
  ['web --url http://127.0.0.1:1', /--url needs --key/],
  ['web --url ftp://x --key k', /--url must be an http or https address/],
  ['web --self --url http://127.0.0.1:1 --key k', /leave --url and --sip away/],
  ['sip --sip 127.0.0.1', /--sip must read like/],
  ['sip --sip sip:+1@127.0.0.1;transport=ws', /--transport must be udp, tcp or tls/],
  ['mixed --sip sip:+1@127.0.0.1', /calls by web need --url and --key/],
  ['web --self --rate fast', /--rate must be a number from 0.001 to 5000, not "fast"/],
  ['web --self --calls 1.5', /--calls must be a whole number/],
  ['web --self --loss 101', /--loss must be a number from 0 to 100/],
  ['web --self --expect setUp<5', /setUp needs one of min, p50/],
  ['web --self --expect speed.p95<5', /"speed" is none of errors, setUp/],
  ['web --self extra', /extra is no option/],
  ['web --self --unknown', /unknown/],
  ['replay --self', /name at least one session file/],
  [
    'web --url https://calls.example.com --key k',
    /calls.example.com is not this machine.*--i-may-load calls.example.com/,
  ],
  ['sip --sip sip:+1@192.0.2.7', /192.0.2.7 is not this machine/],
  ['web --self --metrics http://192.0.2.7/metrics', /192.0.2.7 is not this machine/],
]

test('what cannot be done is refused by the name of its option, and no other machine is loaded by mistake', (t) => {
  for (const [words, says] of wrong) {
    const [word = '', ...given] = words.split(' ')
    t.throws(() => readLoadOptions(word, given), says, words)
  }
  try {
    readLoadOptions('web', [])
  } catch (error) {
    t.ok(error instanceof WrongOptions)
  }
  const allowed = readLoadOptions(
    'web',
    '--url https://calls.example.com --key k --i-may-load calls.example.com'.split(' '),
  )
  t.equal(allowed.web?.url, 'https://calls.example.com')
  t.same(readLoadOptions('sip', ['--sip', 'sips:+1@127.0.0.1']).sip, {
    protocol: 'tls',
    host: '127.0.0.1',
    port: 5061,
    called: '+1',
  })
  t.end()
})

test('sound that a service sends elsewhere goes nowhere', async (t) => {
  const allowed = await allowedHostsOf(['192.0.2.7'])
  t.ok(allowed.allows('127.0.0.1') && allowed.allows('::1') && allowed.allows('192.0.2.7'))
  t.notOk(allowed.allows('192.0.2.8') || allowed.allows('10.0.0.1'))
  t.throws(() => allowed.check('198.51.100.1', 'the sound of the call'), /--i-may-load 198.51.100.1/)
})

test('an expectation holds, does not, or was not measured, which is not holding', (t) => {
  const figures = createLoadFigures()
  const tally = createLoadTally()
  for (let ms = 1; ms <= 100; ms++) tally.value('setUp', ms)
  tally.count('due', 100)
  tally.count('failed', 2)
  figures.add(tally.take())
  const met = (text: string): boolean => {
    const expectation = readExpectation(text)
    return typeof expectation !== 'string' && verdictOf(expectation, figures.read()).met
  }
  t.ok(met('setUp.p95<96.5') && met('setUp.p50>45') && met('errors<2.5'))
  t.notOk(met('setUp.p95<90') || met('errors<2') || met('mos.p50>1'))
  t.end()
})

test('the report is one page that asks nobody for anything, and shows errors as text', (t) => {
  const figures = createLoadFigures()
  const tally = createLoadTally()
  tally.value('setUp', 12)
  tally.error('<script>alert(1)</script>')
  figures.add(tally.take())
  figures.cost({ cpuSeconds: 1, rssBytes: 50e6 }, 0)
  figures.cost({ cpuSeconds: 1.5, rssBytes: 60e6 }, 1_000)
  figures.turn(1_000)
  const page = reportOf({
    result: figures.read(),
    verdicts: [],
    target: 'http://127.0.0.1:1',
    ms: 1_000,
    startedAt: '2026-01-01T00:00:00.000Z',
    wasStopped: false,
  })
  t.notMatch(page, /<script|src=|href=|url\(|@import/)
  t.match(page, /&lt;script&gt;alert/)
  t.match(page, /aria-label="Set-up \(ms\)"/)
  t.match(page, /aria-label="CPU of the service/)
  t.match(page, /light-dark\(/)
  t.equal(figures.read().windows[0]?.cpuPercent, 50)
  t.end()
})

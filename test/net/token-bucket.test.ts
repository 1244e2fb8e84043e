/** How often something may happen: by the second or the minute, alone or for each of many owners. */
import { test } from 'tap'
import {
  createRateLimit,
  createTokenBuckets,
  giveBack,
  msToMore,
  perMinute,
  perSecond,
  takeToken,
  tokensLeft,
} from '../../net/token-bucket.ts'
import { createRandom } from '../fake/random.ts'

test('a rate takes a second of packets at once and then no more than comes in', (t) => {
  const mayPass = createRateLimit(perSecond(250))
  const passed = (now: number, tries: number) =>
    Array.from({ length: tries }, () => mayPass(now)).filter(Boolean).length
  t.equal(passed(1000, 1000), 250)
  t.equal(passed(1100, 1000), 25)
  t.equal(passed(900, 1000), 0, 'a clock that is set back gives nothing')
  t.equal(passed(1900, 1000), 250, 'and takes nothing')
  t.end()
})

test('a burst may be larger or smaller than what a second brings', (t) => {
  const passed = (mayPass: (now: number) => boolean, now: number) =>
    Array.from({ length: 100 }, () => mayPass(now)).filter(Boolean).length
  const [patient, narrow] = [createRateLimit(perSecond(10, 50)), createRateLimit(perSecond(10, 2))]
  t.same([passed(patient, 1), passed(patient, 1001), passed(patient, 60_001)], [50, 10, 50])
  t.same([passed(narrow, 1), passed(narrow, 1001), passed(narrow, 1051), passed(narrow, 1101)], [2, 2, 0, 1])
  t.end()
})

test('a bucket says what is left, and when there is more', (t) => {
  const bucket = createTokenBuckets(perMinute(6), 10)('owner', 0)
  t.same([tokensLeft(bucket), msToMore(bucket)], [6, 0], 'it begins full')
  t.ok(takeToken(bucket, 0))
  t.same([tokensLeft(bucket), msToMore(bucket)], [5, 10_000])
  t.ok(takeToken(bucket, 4_000))
  t.same([tokensLeft(bucket), Math.round(msToMore(bucket))], [4, 6_000])
  giveBack(bucket)
  t.equal(tokensLeft(bucket), 5)
  giveBack(bucket)
  giveBack(bucket)
  t.same([tokensLeft(bucket), msToMore(bucket)], [6, 0], 'never more than it holds')
  t.end()
})

test('each owner has his own; who was heard of lately stays, and the others begin anew', (t) => {
  const bucketOf = createTokenBuckets(perMinute(1), 1_000)
  const passes = (owner: string): boolean => takeToken(bucketOf(owner, 0), 0)
  t.same(['used', 'unused', 'used', 'unused'].map(passes), [true, true, false, false])
  for (let count = 0; count < 2_000; count += 1) {
    passes(`flood ${count}`)
    if (count % 100 === 0) t.notOk(passes('used'), 'known all the time')
  }
  t.same(['used', 'unused', 'flood 1999'].map(passes), [false, true, false])
  t.end()
})

test('seeded: in no span of time more than it holds and what flowed in, and all of that', (t) => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const random = createRandom(seed)
    const rate = perSecond(0.1 + random.next() * 500, 1 + random.below(300))
    const mayPass = createRateLimit(rate)
    const times: number[] = []
    let now = 1_000
    for (let step = 0; step < 300; step += 1) {
      now += random.below(2) * random.next() * 1_000
      for (let tries = random.below(20); tries > 0; tries -= 1) if (mayPass(now)) times.push(now)
    }
    times.forEach((from, first) => {
      for (let last = first; last < times.length; last += 17) {
        const most = rate.capacity + ((times[last] ?? 0) - from) * rate.perMs
        if (last - first + 1 > most + 1e-6) t.fail(`seed ${seed}: ${last - first + 1}, at most ${most}`)
      }
    })
    now += rate.capacity / rate.perMs
    const all = Array.from({ length: rate.capacity + 1 }, () => mayPass(now)).filter(Boolean).length
    t.equal(all, rate.capacity, `seed ${seed}: a full one gives all of it`)
  }
  t.end()
})

/** When a node begins new calls: by readings that a test makes up, and by a simulated node that fills with calls. */
import { test } from 'tap'
import {
  busyMarks,
  busyWanted,
  commitMarks,
  createLoadPolicy,
  fewCalls,
  maxFresh,
  lateMarks,
  stuckLimit,
  type LoadPolicy,
  type LoadReading,
} from '../../actors/node/load-policy.ts'
import { createRandom, type Random } from '../fake/random.ts'

const every = 250
const many = 40
const healthy: LoadReading = { elapsedMs: every, late: [0], busy: 0.3, commitMs: 8, stuckMs: 0, calls: many, fresh: 0 }

const readFor = (policy: LoadPolicy, ms: number, reading: Partial<LoadReading>): void => {
  for (let at = 0; at < ms; at += every) policy.read({ ...healthy, ...reading })
}

/** So many begin at once until one is refused; 1,000 at most. */
function beginAll(policy: LoadPolicy, most = 1_000): number {
  let begun = 0
  while (begun < most && policy.refusal(false) === null) {
    policy.took('phone_call', 1)
    begun++
  }
  return begun
}

test('a node that has time takes calls', (t) => {
  const policy = createLoadPolicy()
  readFor(policy, 10_000, {})
  t.equal(policy.refusal(false), null)
  t.ok(policy.room('phone_call') > 1)
  t.end()
})

test('each measure beyond its mark refuses, with its own reason', (t) => {
  const cases: [Partial<LoadReading>, string][] = [
    [{ late: [lateMarks.high * 2] }, 'late'],
    [{ busy: 0.97 }, 'busy'],
    [{ commitMs: commitMarks.high * 2 }, 'commits'],
    [{ stuckMs: stuckLimit }, 'database'],
  ]
  for (const [reading, reason] of cases) {
    const policy = createLoadPolicy()
    readFor(policy, 10_000, reading)
    t.equal(policy.refusal(false), reason)
    t.equal(policy.refusal(true), reason, 'who has a promise is refused as well')
    t.equal(policy.room('phone_call'), 0)
  }
  t.end()
})

test('one stall is no overload, however long it was; stalls one after the other are', (t) => {
  const policy = createLoadPolicy()
  readFor(policy, 5_000, {})
  policy.read({ ...healthy, late: [1] })
  t.not(policy.refusal(true), 'late')
  readFor(policy, 5_000, {})
  readFor(policy, 2_000, { late: [1] })
  t.equal(policy.refusal(true), 'late')
  t.end()
})

test('many beats that are late now and then, each in its own moment, refuse nobody; one that is late all the time does', (t) => {
  const wrong: string[] = []
  for (let seed = 1; seed <= 20; seed++) {
    const random = createRandom(seed)
    const policy = createLoadPolicy()
    // 2 of 50 slots, at 0.6 % in all.
    const stalls = () => (random.next() < 0.15 ? 0.04 : 0)
    for (let reading = 0; reading < 400; reading++) {
      policy.read({ ...healthy, late: [stalls(), stalls(), stalls(), stalls(), stalls()] })
      if (policy.isClosed()) wrong.push(`closed in reading ${reading} of seed ${seed}`)
    }
    for (let reading = 0; reading < 20; reading++) policy.read({ ...healthy, late: [0, 0, 0, 0, 0.05] })
    if (policy.refusal(true) !== 'late') wrong.push(`open in seed ${seed}`)
  }
  t.same(wrong, [])
  t.end()
})

test('a node with hardly any call refuses only when nothing could be heard on it', (t) => {
  const calls = fewCalls - 1
  const slow = { calls, late: [0.4], busy: 0.85, commitMs: 800 }
  const laptop = createLoadPolicy()
  readFor(laptop, 30_000, slow)
  t.equal(laptop.refusal(false), null, 'a slow laptop that calls itself')
  const borne = createLoadPolicy()
  readFor(borne, 30_000, { ...slow, calls: many })
  t.not(borne.refusal(false), null, 'the same measures with many calls')
  const blocked = createLoadPolicy()
  readFor(blocked, 10_000, { calls, late: [0.95], busy: 0.99 })
  t.equal(blocked.refusal(false), 'late')
  const alone = createLoadPolicy()
  readFor(alone, 10_000, { calls: 0, late: [null], busy: 1 })
  t.equal(alone.refusal(false), null, 'nobody is hurt where nobody talks')
  const crowded = createLoadPolicy()
  readFor(crowded, 10_000, { calls: 0, fresh: 60, late: [0.9], busy: 1 })
  t.equal(crowded.refusal(false), null, 'nor by a crowd of calls that have just begun')
  t.end()
})

test('a database that is gone refuses on an empty node too, and a node takes calls again when it is back', (t) => {
  const policy = createLoadPolicy()
  policy.read({ ...healthy, calls: 0, stuckMs: stuckLimit })
  t.equal(policy.refusal(false), 'database')
  // What waited was written in the end, late.
  policy.read({ ...healthy, calls: 0, commitMs: 120_000 })
  readFor(policy, 20_000, { calls: 0, busy: 0.02 })
  t.equal(policy.refusal(false), null)
  t.end()
})

test('after an overload calls begin slowly, and faster with every second', (t) => {
  const policy = createLoadPolicy()
  readFor(policy, 5_000, { busy: 0.99 })
  t.equal(policy.refusal(false), 'busy')
  policy.read({ ...healthy, elapsedMs: 750, busy: 0.1 })
  t.equal(policy.refusal(false), 'busy', 'nothing begins for a second')
  const bySecond: number[] = []
  for (let second = 0; second < 12; second++) {
    let begun = 0
    for (let at = 0; at < 1_000; at += every) {
      policy.read({ ...healthy, busy: 0.1 })
      begun += beginAll(policy)
    }
    bySecond.push(begun)
  }
  const first = bySecond.findIndex((begun) => begun > 0)
  t.ok((bySecond[first] ?? 0) <= 4, `few in the first second: ${bySecond.join(' ')}`)
  t.ok((bySecond.at(-1) ?? 0) >= 20, `many in the end: ${bySecond.join(' ')}`)
  for (const [second, begun] of bySecond.entries())
    t.ok(begun <= 2 * (bySecond[second - 1] ?? 0) + 5, `no jump: ${bySecond.join(' ')}`)
  t.end()
})

test('the pace falls with every measure, and does not break off', (t) => {
  const begunAt = (reading: Partial<LoadReading>): number => {
    const policy = createLoadPolicy()
    readFor(policy, 10_000, reading)
    beginAll(policy)
    let begun = 0
    for (let at = 0; at < 1_000; at += every) {
      policy.read({ ...healthy, ...reading })
      begun += beginAll(policy)
    }
    return begun
  }
  const paces = [0.15, 0.4, 0.7, 0.85, 0.97].map((part) => begunAt({ busy: part * busyWanted }))
  t.same(
    paces,
    paces.toSorted((a, b) => b - a),
    paces.join(' '),
  )
  t.ok(new Set(paces).size >= 4, paces.join(' '))
  t.ok((paces.at(-1) ?? 0) > 0)
  const late = [0, 0.015, 0.025].map((share) => begunAt({ late: [share] }))
  t.ok(late[0]! > late[1]! && late[1]! > late[2]!, late.join(' '))
  const slow = [10, 500, 900].map((commitMs) => begunAt({ commitMs }))
  t.ok(slow[0]! > slow[1]! && slow[1]! > slow[2]!, slow.join(' '))
  t.end()
})

test('a burst after a rest is bounded by what runs: a node at rest takes as many as one moment bears, a full one a few', (t) => {
  const burstAt = (reading: Partial<LoadReading>): number => {
    const policy = createLoadPolicy()
    readFor(policy, 60_000, reading)
    return beginAll(policy, 500)
  }
  const atRest = burstAt({ calls: 0, busy: 0.01, late: [null], commitMs: null })
  t.equal(atRest, maxFresh)
  const half = burstAt({ busy: busyWanted / 2 })
  t.ok(half >= 3 && half <= 25, `${half}`)
  t.ok(burstAt({ busy: busyWanted - 0.02 }) <= 5)
  t.end()
})

test('what did not begin is given back', (t) => {
  const policy = createLoadPolicy()
  readFor(policy, 5_000, {})
  const room = policy.room('web_call')
  policy.took('web_call', room)
  t.equal(policy.refusal(false), 'pace')
  t.equal(policy.refusal(true), null, 'who has a promise begins all the same')
  policy.took('web_call', -room)
  t.equal(policy.room('web_call'), room)
  t.end()
})

test('whatever is read: verdicts are one of the known, and a node that is well for a minute takes calls', (t) => {
  const known = new Set(['late', 'busy', 'commits', 'database', 'pace', null])
  for (let seed = 1; seed <= 300; seed++) {
    const random = createRandom(seed)
    const policy = createLoadPolicy()
    for (let reading = 0; reading < 200; reading++) {
      policy.read(anyReading(random))
      if (random.below(3) === 0) policy.took(random.pick(['web_session', 'web_call', 'phone_call']), random.below(30))
      if (!known.has(policy.refusal(random.below(2) === 0))) return void (t.fail(`seed ${seed}`), t.end())
      if (policy.isClosed() && policy.room('phone_call') > 0) return void (t.fail(`room, seed ${seed}`), t.end())
    }
    readFor(policy, 60_000, { busy: 0.2 })
    if (policy.refusal(false) !== null) return void (t.fail(`not open again, seed ${seed}`), t.end())
  }
  t.pass('300 seeds')
  t.end()
})

function anyReading(random: Random): LoadReading {
  return {
    elapsedMs: random.pick([1, 100, 250, 3_000, 3_600_000]),
    late: Array.from({ length: random.below(4) }, () => random.pick([null, 0, random.next() * 0.05, 1])),
    busy: random.next(),
    commitMs: random.pick([null, random.next() * 50, 900, 60_000]),
    stuckMs: random.pick([0, 0, 0, random.below(5_000)]),
    calls: random.below(100),
    fresh: random.below(300),
  }
}

test('a node under three times what it can bear stays below the mark, goes on taking calls, and does not swing', (t) => {
  for (const wrongCosts of [0.5, 1, 2]) {
    for (let seed = 1; seed <= 5; seed++) {
      const told = simulate(createRandom(seed), { wrongCosts, times: 3 })
      const where = `costs × ${wrongCosts}, seed ${seed}: ${JSON.stringify(told)}`
      t.ok(told.late < 0.01, `hardly anything is late, ${where}`)
      t.ok(told.busy > busyWanted - 0.15 && told.busy < busyMarks.high, `the node is used, ${where}`)
      t.ok(told.longestPause <= 5, `no seconds without a new call, ${where}`)
      t.ok(told.closings <= 3, where)
    }
  }
  t.end()
})

test('short calls that come unevenly are taken while they fit, and of more than fit as many as do', (t) => {
  const talk = 0.13
  for (let seed = 1; seed <= 5; seed++) {
    // A second, ms each: 58 % of the thread, 69 %, and twice what there is.
    for (const { rate, setUp, least } of [
      { rate: 45, setUp: 10, least: 0.98 },
      { rate: 70, setUp: 8, least: 0.93 },
      { rate: 150, setUp: 12, least: (0.9 * (busyWanted - talk)) / (150 * 0.012) },
    ]) {
      const told = placeShortCalls(createRandom(seed), { talk, rate, setUp })
      const where = `${rate} of ${setUp} ms, seed ${seed}: ${JSON.stringify(told)}`
      t.ok(told.taken >= least, where)
      t.ok(told.busy < busyMarks.low, where)
    }
  }
  t.end()
})

type ShortCalls = { readonly talk: number; readonly rate: number; readonly setUp: number }

/** Beside calls that talk, which take their part of the thread; those that are placed end at once. */
function placeShortCalls(random: Random, { talk, rate, setUp }: ShortCalls) {
  const policy = createLoadPolicy()
  const [settled, until] = [5_000, 65_000]
  let [placed, taken, behind, busySum] = [0, 0, 0, 0]
  for (let now = 0; now < until; now += every) {
    let admitted = 0
    // Each comes in a ms of its own, or does not.
    for (let ms = 0; ms < every; ms++) {
      if (random.next() >= rate / 1_000) continue
      if (now >= settled) placed++
      if (policy.refusal(false) !== null) continue
      policy.took('phone_call', 1)
      if (now >= settled) taken++
      admitted++
    }
    const work = talk * every + admitted * setUp + behind
    behind = Math.max(0, work - every)
    const busy = Math.min(1, work / every)
    policy.read({ ...healthy, busy, late: [behind > 0 ? 0.02 : 0] })
    if (now >= settled) busySum += busy
  }
  return { taken: taken / placed, busy: busySum / ((until - settled) / every) }
}

/**
 * A thread on which each call takes 1 % and each set-up 10 ms (times `wrongCosts`, which the policy does not know); calls last 10 s. What
 * does not fit into a slice is done in the next ones, and is late.
 */
function simulate(random: Random, { wrongCosts, times }: { readonly wrongCosts: number; readonly times: number }) {
  const [perCall, perSetUp, lasts] = [0.01, 10 * wrongCosts, 10_000]
  const borne = (busyWanted * 1_000) / (perCall * 1_000 + perSetUp / (lasts / 1_000)) // calls at once
  const arrivals = (times * borne) / lasts // a ms
  const policy = createLoadPolicy()
  let ends: number[] = Array.from({ length: Math.round(borne * 0.6) }, () => random.next() * lasts)
  let behind = 0
  const told = { late: 0, busy: 0, longestPause: 0, closings: 0 }
  let pause = 0
  let wasClosed = false
  const [settled, until] = [20_000, 120_000]
  for (let now = 0; now < until; now += every) {
    ends = ends.filter((end) => end > now)
    let admitted = 0
    for (let arrival = arrivals * every * (0.5 + random.next()); arrival > 0; arrival--) {
      if (arrival < 1 && random.next() > arrival) break
      if (policy.refusal(false) !== null) continue
      policy.took('phone_call', 1)
      ends.push(now + lasts * (0.5 + random.next()))
      admitted++
    }
    const work = ends.length * perCall * every + admitted * perSetUp + behind
    behind = Math.max(0, work - every)
    const busy = Math.min(1, work / every)
    const late = Math.min(1, behind / every) + (busy > 0.96 ? 0.05 : 0)
    policy.read({ elapsedMs: every, late: [late], busy, commitMs: 10, stuckMs: 0, calls: ends.length, fresh: 0 })
    if (now < settled) continue
    pause = admitted > 0 ? 0 : pause + every / 1_000
    told.longestPause = Math.max(told.longestPause, pause)
    if (policy.isClosed() && !wasClosed) told.closings++
    wasClosed = policy.isClosed()
    told.late += late / ((until - settled) / every)
    told.busy += busy / ((until - settled) / every)
  }
  return told
}

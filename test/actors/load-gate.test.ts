/** The gate before the calls of a node: what it measures, what it tells, and where it stands before web calls, telephone calls and the queue. */
import { test } from 'tap'
import { createCommitWatch } from '../../actors/node/commit-watch.ts'
import { createLoadGate } from '../../actors/node/load-gate.ts'
import {
  countedDials,
  gatedPhoneCalls,
  gatedWebCalls,
  noRoomForOf,
  openUntil,
  overloadOf,
} from '../../app/gated-calls.ts'
import { loadRefusalOf, openGate, type LoadGate, type LoadReason } from '../../model/load-gate.ts'
import type { CallId } from '../../model/ids.ts'
import type { InboundRoute } from '../../model/telephony.ts'
import { Problem } from '../../model/problem.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRecordedTelemetry } from '../fake/recorded-telemetry.ts'

function openGateScene() {
  const clock = createHandClock(0)
  const log = createQuietLog()
  const telemetry = createRecordedTelemetry()
  const commits = createCommitWatch(clock.now)
  const load = { ticks: 0, late: 0, skipped: 0, calls: 40, busy: 0.2, reads: 0 }
  const gate = createLoadGate({
    now: clock.now,
    clock,
    media: { beats: () => [{ ...load }], calls: () => ({ calls: load.calls, fresh: 0 }) },
    busy() {
      load.reads++
      return load.busy
    },
    commits,
    log,
    telemetry,
  })
  /** Lets the ticker run for so long, with this part of its slots late. */
  const tick = (ms: number, lateShare = 0): void => {
    for (let at = 0; at < ms; at += 250) {
      load.ticks += 50
      load.late += Math.round(50 * lateShare)
      clock.advance(250)
    }
  }
  return { clock, log, telemetry, commits, load, gate, tick }
}

test('late slots of the ticker refuse calls, and slots that were left out are late ones', (t) => {
  const { gate, tick, load } = openGateScene()
  tick(10_000)
  t.equal(gate.admit('phone_call'), null)
  t.equal(gate.newCalls(), 'taken')
  tick(5_000, 0.2)
  t.match(gate.admit('phone_call'), { reason: 'late', retryAfterSeconds: 5 })
  t.equal(gate.newCalls(), 'refused')
  tick(20_000)
  t.equal(gate.admit('phone_call'), null)
  for (let reading = 0; reading < 20; reading++) {
    load.skipped += 40
    tick(250)
  }
  t.match(gate.admit('phone_call'), { reason: 'late' })
  t.end()
})

test('of several beats the worst counts, however many are in time', (t) => {
  const clock = createHandClock(0)
  const [idle, late] = [
    { ticks: 0, late: 0, skipped: 0 },
    { ticks: 0, late: 0, skipped: 0 },
  ]
  const gate = createLoadGate({
    now: clock.now,
    clock,
    media: { beats: () => [{ ...idle }, { ...idle }, { ...late }], calls: () => ({ calls: 40, fresh: 0 }) },
    busy: () => 0.2,
    commits: createCommitWatch(clock.now),
    log: createQuietLog(),
  })
  for (let at = 0; at < 5_000; at += 250) {
    idle.ticks += 1_000
    late.ticks += 50
    late.late += 10
    clock.advance(250)
  }
  t.match(gate.admit('phone_call'), { reason: 'late' })
  t.end()
})

test('a thread that was blocked is measured before it answers what waited meanwhile', (t) => {
  const { load } = openGateScene()
  let now = 0
  const gate = createLoadGate({
    now: () => now,
    clock: { after: () => () => undefined },
    media: { beats: () => [{ ...load }], calls: () => ({ calls: load.calls, fresh: 0 }) },
    busy: () => load.busy,
    commits: { read: () => ({ medianMs: null, stuckMs: 0 }) },
    log: createQuietLog(),
  })
  t.equal(gate.refusal('phone_call'), null)
  now += 3_000
  load.skipped += 600
  load.busy = 1
  t.match(gate.refusal('phone_call'), { reason: 'late' }, 'no timer has run')
  t.end()
})

test('commits that are slow refuse calls; a lease that cannot be renewed says that the database is gone, until it is', async (t) => {
  const { gate, tick, commits, clock } = openGateScene()
  tick(5_000)
  for (let second = 0; second < 20; second++) {
    const slow = commits.step(async () => clock.advance(1_500))
    await slow
    tick(250)
  }
  t.match(gate.refusal('phone_call'), { reason: 'commits' })
  for (let second = 0; second < 60; second++) {
    await commits.step(async () => undefined)
    tick(250)
  }
  t.equal(gate.refusal('phone_call'), null)

  await t.rejects(commits.lease(() => Promise.reject(new Error('no connection'))))
  tick(1_000)
  t.equal(gate.refusal('phone_call'), null, 'one that fails may be a restart')
  await t.rejects(commits.lease(() => Promise.reject(new Error('no connection'))))
  tick(1_500)
  t.match(gate.refusal('web_session'), { reason: 'database', retryAfterSeconds: 10 })
  t.equal(gate.refusal('phone_call'), null, 'a caller may be known from before')
  await commits.lease(async () => undefined)
  tick(5_000)
  t.equal(gate.refusal('phone_call'), null)

  const hanging = Promise.withResolvers<void>()
  const renewing = commits.lease(() => hanging.promise)
  tick(2_500)
  t.match(gate.refusal('web_session'), { reason: 'database' }, 'one that never answers is gone too')
  hanging.resolve()
  await renewing
  const step = commits.step(() => Promise.withResolvers<void>().promise)
  t.ok(step, 'a step that waits for the lock of its call')
  for (let second = 0; second < 60; second++) {
    await commits.step(async () => undefined)
    tick(250)
  }
  t.equal(gate.refusal('phone_call'), null)
})

test('refusals are counted by name, and told in two lines however many there are', (t) => {
  const { gate, tick, log, telemetry } = openGateScene()
  const lines = () => log.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)
  tick(5_000)
  tick(5_000, 0.5)
  for (let count = 0; count < 500; count++) gate.admit('phone_call')
  gate.refusal('web_session')
  t.equal(telemetry.total('load.refused', { beginning: 'phone_call', reason: 'late' }), 500)
  t.equal(telemetry.total('load.refused', { beginning: 'web_session', reason: 'late' }), 1)
  t.same(lines(), ['new calls are refused: this node has no room for them'])
  gate.room('phone_call')
  gate.newCalls()
  t.equal(telemetry.total('load.refused'), 501, 'who only looks is not refused')
  tick(20_000)
  t.same(lines().length, 2)
  t.match(log.lines.at(-1), { message: 'new calls are taken again', fields: { refused: 501 } })
  t.end()
})

test('a gate at rest reads once a second, and four times from the moment in which something begins until all is over', (t) => {
  const { gate, clock, load, tick } = openGateScene()
  const readsIn = (ms: number): number => {
    const before = load.reads
    clock.advance(ms)
    return load.reads - before
  }
  t.equal(readsIn(10_000), 40)
  load.calls = 0
  clock.advance(1_000)
  t.equal(readsIn(10_000), 10)
  t.equal(gate.room('phone_call') > 0 && gate.newCalls(), 'taken')
  t.equal(readsIn(10_000), 10, 'who only looks begins nothing')

  clock.advance(100)
  t.equal(gate.admit('phone_call'), null)
  load.calls = 40
  t.equal(readsIn(1_000), 4)
  tick(5_000, 0.5)
  t.match(gate.admit('phone_call'), { reason: 'late' })
  load.calls = 0
  t.equal(readsIn(1_000), 4, 'somebody has just been refused')
  tick(30_000)
  t.equal(readsIn(10_000), 10)
  gate.close()
  t.equal(clock.pending(), 0)
  t.end()
})

test('nothing is left of a gate that is closed', (t) => {
  const { gate, clock } = openGateScene()
  gate.close()
  gate.close()
  t.equal(clock.pending(), 0)
  t.end()
})

/** A gate that says what it is told to say, and notes what it is told. */
function createSetGate() {
  const noted: string[] = []
  const set = { refuses: null as LoadReason | null, refusesPromised: null as LoadReason | null }
  const verdict = (reason: LoadReason | null) => (reason === null ? null : loadRefusalOf(reason))
  const gate: LoadGate = {
    ...openGate,
    refusal: () => verdict(set.refuses),
    admit(beginning) {
      if (set.refuses === null) noted.push(`+${beginning}`)
      return verdict(set.refuses)
    },
    admitPromised(beginning) {
      if (set.refusesPromised === null) noted.push(`+${beginning}`)
      return verdict(set.refusesPromised)
    },
    writing: () => verdict(set.refuses === 'commits' || set.refuses === 'database' ? set.refuses : null),
    giveBack: (beginning) => void noted.push(`-${beginning}`),
    began: (beginning) => void noted.push(`+${beginning}`),
  }
  return { gate, set, noted }
}

function openWebCalls() {
  const { gate, set, noted } = createSetGate()
  const asked: string[] = []
  const callId = 'a call' as CallId
  let creating: Promise<void> = Promise.resolve()
  const { createWebCall, admission } = gatedWebCalls(gate, {
    async createWebCall() {
      asked.push('create')
      await creating
      return { callId, sessionId: 'session', token: `token ${asked.length}`, expiresAt: '' }
    },
    admission: {
      async admit(token) {
        asked.push(`admit ${token}`)
        return token === 'made up'
          ? new Problem('UNAUTHORIZED', 'unknown')
          : { callId, sessionId: 'session', resumeToken: 'again' }
      },
      async resume(token) {
        asked.push(`resume ${token}`)
        return { callId, sessionId: 'session', resumeToken: 'again' }
      },
      arrive: async () => null,
      isOurs: async () => true,
    },
  })
  const create = () => createWebCall('account' as never, { workerId: 'worker' })
  const fail = (error: Error) => (creating = Promise.reject(error))
  return { create, admission, set, noted, asked, fail }
}

const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  )
const overloaded = { type: 'WEB_CALL_CAPACITY_EXCEEDED', status: 503, retryAfterSeconds: 5 }

test('a session for a browser is refused before the database is asked, with 503 and Retry-After', async (t) => {
  const { create, set, asked, noted } = openWebCalls()
  set.refuses = 'busy'
  t.match(await thrownBy(create()), overloaded)
  set.refuses = 'database'
  t.match(await thrownBy(create()), { type: 'SERVICE_UNAVAILABLE', status: 503, retryAfterSeconds: 10 })
  t.same(asked, [])
  t.same(noted, [])
})

test('a session that could not be made takes no room', async (t) => {
  const { create, fail, noted } = openWebCalls()
  void fail(new Problem('WORKER_INACTIVE', 'off')).catch(() => undefined)
  t.match(await thrownBy(create()), { type: 'WORKER_INACTIVE' })
  t.same(noted, ['+web_session', '-web_session'])
})

test('who got a session joins although others are refused for their number, and not when nothing begins at all', async (t) => {
  const { create, admission, set, asked } = openWebCalls()
  const { token } = await create()
  set.refuses = 'pace'
  set.refusesPromised = 'late'
  t.match(await admission.admit(token, null), overloaded)
  t.notOk(asked.includes(`admit ${token}`), 'the token is not used up')
  set.refusesPromised = null
  t.match(await admission.admit(token, null), { sessionId: 'session' })
  t.match(await admission.admit('of another process', null), { ...overloaded, retryAfterSeconds: 2 })
})

test('a made-up token takes no room, and a client that comes back is never refused', async (t) => {
  const { admission, set, noted } = openWebCalls()
  t.match(await admission.admit('made up', null), { type: 'UNAUTHORIZED' })
  t.same(noted, [])
  t.match(await admission.admit('of another process', null), { sessionId: 'session' })
  t.same(noted, ['+web_call'])
  set.refuses = 'late'
  set.refusesPromised = 'late'
  t.match(await admission.resume('mine', null), { sessionId: 'session' })
})

test('a client that comes from another process is one more call, refused only while nothing begins or the process stops', async (t) => {
  const { admission, set, noted } = openWebCalls()
  set.refuses = 'pace'
  t.equal(await admission.arrive(), null)
  t.same(noted, ['+web_call'])
  set.refusesPromised = 'late'
  t.match(await admission.arrive(), overloaded)
  set.refusesPromised = null
  let ending = false
  const stopping = () => new Problem('SERVICE_UNAVAILABLE', 'stopping')
  const open = openUntil(() => ending, stopping, admission)
  t.equal(await open.arrive(), null)
  ending = true
  t.match(await open.arrive(), { type: 'SERVICE_UNAVAILABLE' })
  t.match(await open.admit('of another process', null), { type: 'SERVICE_UNAVAILABLE' })
  t.match(await open.resume('mine', null), { sessionId: 'session' }, 'who is here may come back')
})

test('a telephone call that is placed waits for its turn; only what cannot be written is refused', async (t) => {
  const { gate, set } = createSetGate()
  const place = gatedPhoneCalls(gate, async () => ({ id: 'placed' }) as never)
  const asked = () => place('account' as never, {} as never, null)
  for (const reason of ['late', 'busy', 'pace'] as const) {
    set.refuses = reason
    t.match(await asked(), { id: 'placed' }, reason)
  }
  for (const reason of ['commits', 'database'] as const) {
    set.refuses = reason
    t.match(await thrownBy(asked()), { type: 'SERVICE_UNAVAILABLE', status: 503 }, reason)
  }
})

test('a request that creates is refused before its key is looked up, and takes nothing', (t) => {
  const { gate, set, noted } = createSetGate()
  const noRoomFor = noRoomForOf(gate)
  t.same([noRoomFor('web_call'), noRoomFor('phone_call')], [null, null])
  set.refuses = 'late'
  t.match(noRoomFor('web_call'), overloaded)
  t.same([noRoomFor('phone_call'), noRoomFor(null)], [null, null])
  set.refuses = 'database'
  t.match(noRoomFor('phone_call'), { type: 'SERVICE_UNAVAILABLE', status: 503, retryAfterSeconds: 10 })
  t.equal(noRoomFor(null), null)
  t.same(noted, [])
  t.end()
})

test('an INVITE is 503 before anything is known of it, and takes room only once it has its route', (t) => {
  const { gate, set, noted } = createSetGate()
  const overload = overloadOf(gate)
  const route = { trunk: { accountId: 'account', id: 'trunk' } } as unknown as InboundRoute
  t.equal(overload(null), null)
  t.same(noted, [])
  t.equal(overload(route), null)
  t.same(noted, ['+phone_call'])
  set.refuses = 'pace'
  const refused = { reason: 'node_overloaded', sipStatus: 503, retryAfterSeconds: 2 }
  t.match(overload(null), { ...refused, accountId: null, trunkId: null })
  t.match(overload(route), { ...refused, accountId: 'account', trunkId: 'trunk' })
  t.end()
})

test('a call out of the queue counts where it is dialed', async (t) => {
  const { gate, noted } = createSetGate()
  await countedDials(gate, async () => undefined)({} as never)
  t.same(noted, ['+phone_call'])
})

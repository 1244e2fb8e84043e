/** How the service waits: for so long and no longer, and again for what failed. Time is in the test's hand. */
import { getEventListeners } from 'node:events'
import { test } from 'tap'
import { pause } from '../../model/clock.ts'
import { deadline, goOn, unlessAborted } from '../../model/deadline.ts'
import { jittered, retry, waitsOf } from '../../model/retry.ts'
import { createHandClock, type HandClock } from '../fake/hand-clock.ts'

const settled = () => new Promise(setImmediate)

test('a pause lasts as long as it was asked for', async (t) => {
  const clock = createHandClock()
  let over: boolean | null = null
  void pause(clock, 100).then((passed) => (over = passed))
  clock.advance(99)
  await settled()
  t.equal(over, null)
  clock.advance(1)
  await settled()
  t.equal(over, true)
})

test('a signal ends a pause, and leaves no timer behind', async (t) => {
  const clock = createHandClock()
  const leaving = new AbortController()
  const paused = pause(clock, 100, leaving.signal)
  leaving.abort()
  t.equal(await paused, false)
  t.equal(clock.pending(), 0)
  t.equal(await pause(clock, 100, leaving.signal), false, 'nor does one begin after it')
  t.equal(clock.pending(), 0)
})

test('work within its deadline gives its value or its error, and no timer is left', async (t) => {
  const clock = createHandClock()
  const late = () => t.fail('it is not late')
  t.equal(await deadline(clock, 100, Promise.resolve('done'), late), 'done')
  await t.rejects(deadline(clock, 100, Promise.reject(new Error('broken')), late), { message: 'broken' })
  t.equal(clock.pending(), 0)
})

test('of work past its deadline counts what is said in its place, and nothing that comes later', async (t) => {
  const clock = createHandClock()
  const work = Promise.withResolvers<string>()
  const given = deadline(clock, 100, work.promise, () => 'late')
  const thrown = deadline(clock, 100, work.promise, () => {
    throw new Error('not in time')
  })
  const waited = deadline(clock, 100, work.promise, goOn)
  clock.advance(100)
  t.equal(await given, 'late')
  await t.rejects(thrown, { message: 'not in time' })
  t.equal(await waited, undefined)
  work.reject(new Error('and nobody hears of it'))
  await settled()
})

test('work that its signal ends is waited for no longer, and no listener is left on the signal', async (t) => {
  const leaving = new AbortController()
  const work = Promise.withResolvers<string>()
  t.equal(await unlessAborted(Promise.resolve('done'), leaving.signal), 'done')
  t.equal(getEventListeners(leaving.signal, 'abort').length, 0)
  const ended = unlessAborted(work.promise, leaving.signal, () => new Error('nobody waits any more'))
  leaving.abort()
  await t.rejects(ended, { message: 'nobody waits any more' })
  await t.rejects(unlessAborted(work.promise, leaving.signal), { message: 'the request was ended' })
  t.equal(getEventListeners(leaving.signal, 'abort').length, 0)
})

/** The clock goes on until the work is done. */
async function whileTimePasses<Value>(clock: HandClock, work: Promise<Value>): Promise<Value> {
  let over = false
  void work.finally(() => (over = true)).catch(goOn)
  while (!over) {
    await settled()
    clock.advance(1)
  }
  return work
}

/** Fails so often; tells when it was tried. */
function createAttempts(clock: HandClock, failures: number) {
  const began = clock.now()
  const at: number[] = []
  const attempt = async (): Promise<string> => {
    at.push(clock.now() - began)
    if (at.length <= failures) throw new Error(`failure ${at.length}`)
    return 'done'
  }
  return { at, attempt }
}

test('what fails is tried after each delay, the last one too', async (t) => {
  const clock = createHandClock()
  const wait = waitsOf([10, 50, 200])
  const enough = createAttempts(clock, 3)
  t.equal(await whileTimePasses(clock, retry({ clock, wait }, enough.attempt)), 'done')
  t.same(enough.at, [0, 10, 60, 260])
  const tooMany = createAttempts(clock, 9)
  await t.rejects(whileTimePasses(clock, retry({ clock, wait }, tooMany.attempt)), { message: 'failure 4' })
  t.same(tooMany.at, [0, 10, 60, 260])
  t.equal(clock.pending(), 0, 'and nobody waits when nothing is tried any more')
})

test('what another attempt does not change is thrown at once', async (t) => {
  const clock = createHandClock()
  const wait = waitsOf([10, 50], (error) => error instanceof Error && error.message !== 'failure 2')
  const { at, attempt } = createAttempts(clock, 9)
  await t.rejects(whileTimePasses(clock, retry({ clock, wait }, attempt)), { message: 'failure 2' })
  t.same(at, [0, 10])
})

test('a signal ends the attempts with the error of the last one', async (t) => {
  const clock = createHandClock()
  const leaving = new AbortController()
  const { at, attempt } = createAttempts(clock, 9)
  const tried = retry({ clock, wait: () => 1_000, signal: leaving.signal }, attempt)
  await settled()
  leaving.abort()
  await t.rejects(tried, { message: 'failure 1' })
  t.same(at, [0])
  t.equal(clock.pending(), 0)
})

test('a jittered delay is a fifth shorter at least and a fifth longer at most', async (t) => {
  t.same(
    [0, 0.5, 1].map((random) => Math.round(jittered(1_000, random))),
    [800, 1_000, 1_200],
  )
})

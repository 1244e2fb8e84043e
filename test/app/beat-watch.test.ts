/** When a media thread is taken for one that stands still: looks count and not the time. */
import { test } from 'tap'
import { watchBeat } from '../../app/beat-watch.ts'
import { createHandClock } from '../fake/hand-clock.ts'

function openWatch() {
  const clock = createHandClock()
  let count = 0
  let given = 0
  let lives = true
  const watch = watchBeat(clock, { count: () => count, ask: () => void (lives && count++) }, () => void given++)
  return { clock, watch, live: (does: boolean) => void (lives = does), given: () => given, asked: () => count }
}

test('a thread that answers is left alone, and one that does not is given up once', async (t) => {
  const { clock, watch, live, given, asked } = openWatch()
  clock.advance(60_000)
  t.equal(given(), 0, 'nothing is asked of it before it begins')
  watch.begin()
  clock.advance(10_000)
  t.equal(asked(), 11, 'once a second, and no more')
  t.equal(watch.isSilent(), false)
  live(false)
  // What it had answered to the last look is still found.
  clock.advance(3_000)
  t.equal(watch.isSilent(), true, 'no new line is opened on it')
  t.equal(given(), 0)
  live(true)
  clock.advance(2_000)
  t.equal(watch.isSilent(), false, 'it was only slow')
  live(false)
  clock.advance(6_000)
  t.equal(given(), 1)
  clock.advance(60_000)
  t.equal(given(), 1)
})

test('a watch that was closed says nothing any more', async (t) => {
  const { clock, watch, live, given } = openWatch()
  watch.begin()
  live(false)
  clock.advance(4_000)
  watch.close()
  clock.advance(60_000)
  t.equal(given(), 0)
})

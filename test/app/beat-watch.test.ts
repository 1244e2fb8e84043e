/** When a media thread is taken for one that stands still: looks count and not the time. */
import { test } from 'tap'
import { watchBeat } from '../../app/beat-watch.ts'
import { createHandClock } from '../fake/hand-clock.ts'

function openWatch() {
  const clock = createHandClock()
  let count = 0
  let given = 0
  const watch = watchBeat(
    clock,
    () => count,
    () => void given++,
  )
  return { clock, watch, beat: () => void count++, given: () => given }
}

test('a thread that beats is left alone, and one that does not is given up once', async (t) => {
  const { clock, watch, beat, given } = openWatch()
  clock.advance(60_000)
  t.equal(given(), 0, 'nothing is asked of it before it begins')
  watch.begin()
  for (let second = 0; second < 10; second++) {
    beat()
    clock.advance(1_000)
  }
  t.equal(watch.isSilent(), false)
  clock.advance(2_000)
  t.equal(watch.isSilent(), true, 'no new line is opened on it')
  t.equal(given(), 0)
  beat()
  clock.advance(1_000)
  t.equal(watch.isSilent(), false, 'it was only slow')
  clock.advance(5_000)
  t.equal(given(), 1)
  clock.advance(60_000)
  t.equal(given(), 1)
})

test('a watch that was closed says nothing any more', async (t) => {
  const { clock, watch, given } = openWatch()
  watch.begin()
  clock.advance(4_000)
  watch.close()
  clock.advance(60_000)
  t.equal(given(), 0)
})

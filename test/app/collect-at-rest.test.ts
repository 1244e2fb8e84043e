/** When memory is given back: at rest, when it is worth it, and never beside a call. */
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { collectAtRest } from '../../app/collect-at-rest.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'

const mb = 1024 * 1024

function open() {
  const clock = createHandClock()
  const log = createQuietLog()
  const seen = { atRest: true, held: 200 * mb, left: 210 * mb, collections: 0 }
  const close = collectAtRest({
    clock,
    log,
    isAtRest: () => seen.atRest,
    held: () => seen.held,
    collect() {
      seen.collections++
      seen.held = seen.left
    },
  })
  return { clock, log, seen, close }
}

test('memory of a burst is given back once it has been quiet for a while, and once only', (t) => {
  const { clock, seen, close, log } = open()
  clock.advance(14_000)
  t.equal(seen.collections, 0)
  clock.advance(60_000)
  t.equal(seen.collections, 1, 'what the start left behind, once')
  seen.collections = 0
  log.lines.length = 0
  seen.atRest = false
  seen.held = 600 * mb
  clock.advance(600_000)
  t.equal(seen.collections, 0, 'never beside a call')
  seen.atRest = true
  clock.advance(9_000)
  t.equal(seen.collections, 0, 'the next call may come at once')
  clock.advance(10_000)
  t.equal(seen.collections, 1)
  t.match(log.lines, [{ message: 'memory was given back', fields: { before: 600 * mb, after: 210 * mb } }])
  clock.advance(3_600_000)
  t.equal(seen.collections, 1)
  seen.held = 240 * mb
  clock.advance(60_000)
  t.equal(seen.collections, 1, 'a little more is not worth the time')
  seen.held = 300 * mb
  clock.advance(60_000)
  t.equal(seen.collections, 2)
  close()
  t.equal(clock.pending(), 0)
  t.end()
})

test('what cannot be given back is not asked for again and again', (t) => {
  const { clock, seen, close } = open()
  seen.held = 600 * mb
  seen.left = 590 * mb
  clock.advance(3_600_000)
  t.equal(seen.collections, 1)
  close()
  t.end()
})

test('pages of a heap that is hardly used any more go back to the system', (t) => {
  const clock = createHandClock()
  const log = createQuietLog()
  const close = collectAtRest({ clock, log, isAtRest: () => true })
  let burst: unknown[] | null = Array.from({ length: 1_500_000 }, (_, at) => ({ at, more: [at] }))
  const before = process.memoryUsage().heapTotal
  t.ok(burst.length > 0)
  burst = null
  clock.advance(60_000)
  t.match(log.lines, [{ message: 'memory was given back' }])
  t.ok(process.memoryUsage().heapTotal < before / 2, `${before} → ${process.memoryUsage().heapTotal}`)
  close()
  t.end()
})

test('npm start bounds what no collection gives back: arenas of malloc, their ends and the new space', (t) => {
  const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as Scripts
  t.match(scripts.start, /\bMALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072 .*\bnode --max-semi-space-size=8\b/)
  t.end()
})

type Scripts = { readonly scripts: { readonly start: string } }

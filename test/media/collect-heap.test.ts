/** When a thread that rests collects its heap, and that it outlives it. */
import { once } from 'node:events'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { test } from 'tap'
import { collectWhenQuiet } from '../../media/collect-heap.ts'
import { createHandClock } from '../fake/hand-clock.ts'

const mb = 1024 * 1024

test('a thread collects once when it has been quiet for a while, and not between two pieces of work', (t) => {
  const clock = createHandClock()
  let collections = 0
  const worked = collectWhenQuiet(clock.after, () => collections++)
  t.equal(clock.pending(), 0, 'who never worked has nothing to collect')
  for (let piece = 0; piece < 5; piece++) {
    worked()
    clock.advance(9_000)
  }
  t.equal(collections, 0)
  t.equal(clock.pending(), 1, 'however much it worked')
  clock.advance(1_000)
  t.equal(collections, 1)
  clock.advance(3_600_000)
  t.equal(collections, 1)
  worked()
  clock.advance(10_000)
  t.equal(collections, 2)
  t.equal(clock.pending(), 0)
  t.end()
})

test('a thread with a bounded heap collects its garbage and goes on', async (t) => {
  // As voice threads are started: a collection of the last resort must not count as a heap that is full.
  const thread = new Worker(new URL('../fake/collecting-thread.ts', import.meta.url), {
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32 },
  })
  const ended = once(thread, 'exit')
  const [{ before, after }] = (await once(thread, 'message')) as [{ before: number; after: number }]
  t.ok(before >= 16 * mb, `${before}`)
  t.ok(after < before - 12 * mb, `${before} → ${after}`)
  t.same(await ended, [0])
})

test('threads that start after one collected its heap find the code that was compiled before', async (t) => {
  const folder = t.testdir({})
  const program = `
    import { Worker } from 'node:worker_threads'
    import { once } from 'node:events'
    import { collectorOfHeap } from '${new URL('../../media/collect-heap.ts', import.meta.url).href}'
    const told = "require('node:worker_threads').parentPort.postMessage(require('node:module').getCompileCacheDir())"
    const kept = async () => (await once(new Worker(told, { eval: true, execArgv: [] }), 'message'))[0]
    const before = await kept()
    collectorOfHeap()()
    console.log(JSON.stringify([before, await kept()]))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: folder },
  })
  const [before, after] = JSON.parse(stdout) as [string, string]
  t.ok(before.startsWith(folder), before)
  t.equal(after, before)
})

test('two threads that collect for the first time in the same moment both do', async (t) => {
  const threads = Array.from(
    { length: 4 },
    () => new Worker(new URL('../fake/collecting-thread.ts', import.meta.url), { execArgv: [] }),
  )
  const ended = threads.map((thread) => once(thread, 'exit'))
  t.same(await Promise.all(ended), [[0], [0], [0], [0]])
})

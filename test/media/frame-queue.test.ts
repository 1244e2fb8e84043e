/** The agent's frames that wait: their order, and that what was played is not kept. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { createFrameQueue } from '../../media/leg/frame-queue.ts'
import { until } from '../scenes/in-time.ts'

const frameOf = (seq: number) => ({ epoch: 1, seq, timestamp: seq * 20, payload: new Uint8Array(160) })

test('frames leave in their order, over the moves of the queue too', (t) => {
  const queue = createFrameQueue()
  queue.restart(160)
  let pushed = 0
  let shifted = 0
  for (let round = 0; round < 40; round++) {
    for (let more = 0; more < 25; more++) t.ok(queue.push(frameOf(pushed++)))
    for (let less = 0; less < 20; less++) t.equal(queue.shift()?.seq, shifted++)
    t.equal(queue.size(), pushed - shifted)
  }
  while (queue.size() > 0) t.equal(queue.shift()?.seq, shifted++)
  t.equal(queue.shift(), undefined)
  t.equal(shifted, pushed)
  t.end()
})

test('the sound of a frame that was played can be collected, though its place in the queue is not gone', async (t) => {
  const queue = createFrameQueue()
  queue.restart(160)
  // In a function of its own, which keeps nothing of it.
  const played = (): WeakRef<Uint8Array> => {
    queue.push(frameOf(0))
    queue.push(frameOf(1))
    return new WeakRef(queue.shift()!.payload)
  }
  const sound = played()
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as NodeJS.GCFunction
  await until(() => {
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    return sound.deref() === undefined
  })
  t.equal(queue.size(), 1)
})

test('behind a frame that is missing all can come again, as long as it was not played', (t) => {
  const queue = createFrameQueue()
  queue.restart(160)
  t.equal(queue.rewind(), -1)
  const push = (...seqs: number[]): boolean[] => seqs.map((seq) => queue.push(frameOf(seq)))
  push(0, 1, 2)
  t.equal(queue.rewind(), 2, 'nothing is missing')
  push(5, 6)
  t.equal(queue.size(), 5)
  t.equal(queue.shift()?.seq, 0)
  t.equal(queue.rewind(), 2)
  t.same(push(3, 4, 5, 6), [true, true, true, true])
  t.equal(queue.size(), 6)
  push(9, 10)
  while (queue.size() > 1) queue.shift()
  t.equal(queue.rewind(), 10, 'what was to come before 9 comes too late')
  t.same(push(7, 11), [false, true])
  t.end()
})

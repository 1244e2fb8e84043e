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

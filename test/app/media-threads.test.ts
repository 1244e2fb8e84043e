/** How media threads share ports, how many there are, and what is left of one that has ended. */
import { availableParallelism } from 'node:os'
import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Worker } from 'node:worker_threads'
import { test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { systemClock as clock } from '../../app/clock.ts'
import { readConfig } from '../../app/config.ts'
import { mediaSettingsOf } from '../../app/media-settings.ts'
import { openMediaThreads, restartWaitOf, shareOf } from '../../app/media-threads.ts'
import { noTelemetry } from '../../model/telemetry.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { freePorts } from '../peers/peer-program.ts'
import { createFolder } from '../scenes/folder.ts'
import { until } from '../scenes/in-time.ts'
import { newId } from '../scenes/tenant.ts'

test('each media thread has ports for telephones of its own, and together they have all pairs', async (t) => {
  for (const range of ['30000-39999', '30001-30008', '30000-30003', '30000-30064']) {
    const settings = mediaSettingsOf(readConfig({ SIP_MEDIA_PORTS: range }))
    const [first, last] = range.split('-').map(Number) as [number, number]
    for (const count of [1, 2, 3, 7]) {
      const shares = Array.from({ length: count }, (_, index) => shareOf(settings, index, count).phone!.mediaPorts)
      const pairs = shares.flatMap(([from, to]) =>
        Array.from({ length: Math.max(0, Math.floor((to + 1 - from) / 2)) }, (_, pair) => from + 2 * pair),
      )
      t.equal(new Set(pairs).size, pairs.length, `${range} for ${count}: no pair twice`)
      t.ok(pairs.every((port) => port % 2 === 0 && port >= first && port + 1 <= last))
      t.equal(pairs.length, Math.floor((last + 1 - (first + (first % 2))) / 2), 'none is left out')
    }
  }
})

test('MEDIA_THREADS is a number or auto: one for each core but one, and half of the ports for browsers are left to the next process', async (t) => {
  const others = Math.min(8, availableParallelism() - 1)
  t.equal(readConfig({}).mediaThreads, others)
  t.equal(readConfig({ MEDIA_THREADS: 'auto' }).mediaThreads, others)
  for (const [range, most] of [
    ['40000-40001', 1],
    ['40000-40003', 2],
    ['40000-40006', 3],
  ] as const)
    t.equal(readConfig({ MEDIA_PORTS: range }).mediaThreads, Math.min(most, others), range)
  t.equal(readConfig({ MEDIA_THREADS: '0' }).mediaThreads, 0)
  t.equal(readConfig({ MEDIA_THREADS: '3' }).mediaThreads, 3)
  for (const wrong of ['-1', '65', 'many', '1.5']) t.throws(() => readConfig({ MEDIA_THREADS: wrong }), /MEDIA_THREADS/)
})

test('a thread that ends again and again is started again later each time, and then left alone for ten minutes', (t) => {
  t.same([1, 2, 3, 4, 5, 6, 60].map(restartWaitOf), [1_000, 2_000, 4_000, 8_000, 16_000, 600_000, 600_000])
  t.end()
})

test('of a thread that ended nothing is kept, and its ports are those of the next', { timeout: 120_000 }, async (t) => {
  const threads: WeakRef<Worker>[] = []
  const noted = (worker: Worker): void => void threads.push(new WeakRef(worker))
  process.on('worker', noted)
  t.teardown(() => process.off('worker', noted))
  const closing = new AsyncDisposableStack()
  t.teardown(() => closing.disposeAsync())
  const ports = await freePorts(2)
  const config = readConfig({
    DATA_DIR: await createFolder(t),
    MEDIA_THREADS: '1',
    SIP_MEDIA_PORTS: `${ports}-${ports + 1}`,
  })
  const log = createQuietLog()
  const bus = createLocalBus({ log, clock })
  const recordings = { beginWriting: () => () => undefined }
  const core = { nodeId: newId<'node'>(), bus, clock, log, telemetry: noTelemetry, recordings }
  const media = await openMediaThreads({ core, config, legBegan: () => () => undefined }, closing)
  // In a function of its own, which keeps nothing of it.
  const losesThread = async (): Promise<void> => {
    const line = await media.openPhone()
    await threads[0]?.deref()?.terminate()
    await t.rejects(media.openPhone(), { name: 'NoPortsLeft' }, 'nothing carries sound for a second')
    await line.close()
  }
  await losesThread()
  await until(() => log.lines.some(({ message }) => message === 'a media thread was started again'))
  const next = await media.openPhone()
  t.equal(next.local.port, ports)
  await next.close()
  // The stack of an error keeps who was called.
  log.lines.length = 0
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as NodeJS.GCFunction
  await until(() => {
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    return threads[0]?.deref() === undefined
  })
  t.ok(threads[1]?.deref(), 'the other is in its place')
})

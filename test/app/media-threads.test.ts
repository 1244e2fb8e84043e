/** How media threads share ports, and how many there are. */
import { test } from 'tap'
import { readConfig } from '../../app/config.ts'
import { mediaSettingsOf } from '../../app/local-media.ts'
import { shareOf } from '../../app/media-threads.ts'

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

test('MEDIA_THREADS is a number or auto', async (t) => {
  t.equal(readConfig({}).mediaThreads, 0)
  t.equal(readConfig({ MEDIA_THREADS: '3' }).mediaThreads, 3)
  t.ok(Number.isInteger(readConfig({ MEDIA_THREADS: 'auto' }).mediaThreads))
  for (const wrong of ['-1', '65', 'many', '1.5']) t.throws(() => readConfig({ MEDIA_THREADS: wrong }), /MEDIA_THREADS/)
})

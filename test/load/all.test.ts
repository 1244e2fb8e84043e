/** What `npm run bench all` makes of the runs of its benches. */
import { test } from 'tap'
import { markdownOf, mediansOf, wishOf } from './all-bench.ts'

const figure = (row: string, value: number) => ({ row, column: 'CPU ms', value })

test('figures that every repeat has printed get their median and spread; a figure that one lacks is none', (t) => {
  const runs = [
    [figure('service', 3), figure('peer', 1)],
    [figure('service', 9), figure('peer', 2)],
    [figure('service', 4)],
  ]
  t.same(mediansOf(runs), [{ row: 'service', column: 'CPU ms', median: 4, least: 3, most: 9, runs: 3 }])
  t.same(mediansOf([]), [])
  t.end()
})

test('a name that is no bench, or repeats that are none, are refused in words', (t) => {
  t.match(wishOf(['fast']), /usage: npm run bench all .*; fast is none of them/)
  t.match(wishOf(['repeats=0']), /repeats= must be a whole number from 1 to 99/)
  const wish = wishOf(['tiny', 'repeats=2', 'web', 'echo'])
  t.match(wish, { repeats: 2, isTiny: true, chosen: [{ name: 'echo' }, { name: 'web' }] })
  t.end()
})

test('the table tells machine, commit, peers and failed runs, and says of tiny sizes that they mean nothing', (t) => {
  const facts = {
    at: '2026-01-02T03:04:05.000Z',
    commit: 'abc1234',
    isChanged: true,
    repeats: 3,
    isTiny: true,
    machine: { cpu: 'a processor', cores: 2, memoryMb: 4000, system: 'linux 6', node: 'v24', load: 0.5 },
  }
  const figures = [{ row: 'parley, node', column: 'requests/s', median: 1234.567, least: 1000, most: 2000, runs: 3 }]
  const table = markdownOf(facts, [{ name: 'api', beside: 'bare fastify', words: ['api', '1'], figures, failed: 1 }])
  t.match(table, /Commit abc1234 with changes; a processor, 2 cores/)
  t.match(table, /`npm run bench api 1`[^]*Beside it: bare fastify. 1 of 3 runs failed/)
  t.match(table, /\| parley, node \| requests\/s \| 1235 \| 1000 \| 2000 \|/)
  t.match(table, /no figure of them means anything/)
  t.end()
})

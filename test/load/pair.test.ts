/** What a comparison of two states rests on: figures are read back as they were printed, each against its own, and a profile charges who worked. */
import { test } from 'tap'
import { comparisonOf, wishOf } from './pair-bench.ts'
import { figuresOf } from './printed-figures.ts'
import { idle, timeByStage } from './read-profile.ts'

const printed = (cpu: string, lost: string): string =>
  `some words | and more
| calls | at the other end | CPU ms per call-second (range) | mark and back p50/p95 ms | lost % |
| ----: | ---------------- | ------------------------------ | ------------------------ | ------ |
|    60 | service          |                ${cpu} (2.1–9.9) |               41.5 / 60.0 |   ${lost} |
|    60 | bare echo        |                0.50 (0.40–0.60) |                 0.3 / 0.9 |      - |
after it`.replaceAll(':', '-')

test('figures are read back from a printed table by row and column', async (t) => {
  t.strictSame(figuresOf(printed('4.90', '0.10')), [
    { row: '60 service', column: 'CPU ms per call-second (range)', value: 4.9 },
    { row: '60 service', column: 'mark and back p50 ms', value: 41.5 },
    { row: '60 service', column: 'mark and back p95 ms', value: 60 },
    { row: '60 service', column: 'lost %', value: 0.1 },
    { row: '60 bare echo', column: 'CPU ms per call-second (range)', value: 0.5 },
    { row: '60 bare echo', column: 'mark and back p50 ms', value: 0.3 },
    { row: '60 bare echo', column: 'mark and back p95 ms', value: 0.9 },
  ])
})

test('a row that is printed twice is two rows', async (t) => {
  const rows = figuresOf(`${printed('4', '0')}\n\n${printed('5', '0')}`).filter(({ column }) => /CPU/.test(column))
  t.strictSame(
    rows.map(({ row, value }) => [row, value]),
    [
      ['60 service', 4],
      ['60 bare echo', 0.5],
      ['60 service #2', 5],
      ['60 bare echo #2', 0.5],
    ],
  )
})

test('tables that follow one another without a line between them are tables of their own', async (t) => {
  const other = '| way | requests/s |\n| --- | ---------- |\n| one |        120 |'
  t.strictSame(figuresOf(`${other}\n${other.replace('requests/s', 'sessions  ').replace('120', '  7')}`), [
    { row: 'one', column: 'requests/s', value: 120 },
    { row: 'one', column: 'sessions', value: 7 },
  ])
})

test('pairs are compared by the median of their own ratios and not by the ratio of medians', async (t) => {
  const pairs = [
    ['4', '2'],
    ['8', '2'],
    ['2', '1'],
  ].map(([before = '', after = '']) => ({
    before: figuresOf(printed(before, '0')),
    after: figuresOf(printed(after, '0')),
  }))
  const rows = comparisonOf(pairs)
  t.match(rows[0], {
    row: '60 service',
    before: '4',
    after: '2',
    'after / before (of each pair)': '0.500 (0.250–0.500)',
  })
  const lost = rows.find(({ figure }) => figure === 'lost %')
  t.match(lost, { before: '0', after: '0', 'after / before (of each pair)': '-' }, 'nothing is divided by zero')
})

test('a figure that one run did not print is not compared', async (t) => {
  const whole = figuresOf(printed('4', '0.1'))
  const lacking = figuresOf(printed('4', '-'))
  const figures = comparisonOf([{ before: whole, after: lacking }]).map(({ figure }) => figure)
  t.notOk(figures.includes('lost %'))
  t.ok(figures.includes('mark and back p95 ms'))
})

test('a pair is asked for by a state, options and the words of a bench', async (t) => {
  t.strictSame(wishOf(['main', 'rounds=5', 'sip', 'talk', '60']), {
    ref: 'main',
    rounds: 5,
    ownBench: false,
    words: ['sip', 'talk', '60'],
  })
  t.match(wishOf(['main', 'own-bench', 'web']), { rounds: 3, ownBench: true, words: ['web'] })
  t.equal(wishOf(['main']), null)
})

test('a profile charges a stage for its own time, and callers for what has no file', async (t) => {
  const node = (id: number, functionName: string, url: string, children: number[] = []) => ({
    id,
    callFrame: { functionName, url, lineNumber: 0 },
    children,
  })
  const nodes = [
    node(1, '(root)', '', [2, 4, 7, 8]),
    node(2, 'upsample', 'file:///here/media/pcm/resample.ts', [3]),
    node(3, 'set', ''),
    node(4, 'encode', 'file:///here/media/codecs/opus.ts', [5, 6, 9]),
    node(5, 'wasm-function[7]', 'wasm://wasm/0'),
    node(6, 'writeBuffer', 'file:///elsewhere/node_modules/postgres/src/connection.js'),
    node(7, '(garbage collector)', ''),
    node(8, '(idle)', ''),
    node(9, 'write', 'file:///here/test/load/sent-statements.ts', [10]),
    node(10, 'writeGeneric', 'node:internal/stream_base_commons', [11]),
    node(11, 'writeBuffer', ''),
  ]
  const profile = {
    nodes,
    samples: [2, 3, 5, 6, 7, 8, 4, 11],
    timeDeltas: [1_000, 500, 4_000, 250, 125, 9_000, 1_000, 750],
  }
  t.strictSame(
    timeByStage(profile, '/here').map(({ stage, ms }) => [stage, ms]),
    [
      [idle, 9],
      ['Opus', 5],
      ['resample', 1.5],
      ['sockets of Node', 0.75],
      ['SQL', 0.25],
      ['GC', 0.125],
    ],
  )
})

import { test } from 'tap'
import { judge } from './run-file.ts'
import { createTurns, longest, waits, type Turn } from './test-order.ts'
import { allTests } from './tiers.ts'

test('the long files that are named are there, and both kinds of file', (t) => {
  t.same(
    longest.filter((file) => !allTests().includes(file)),
    [],
  )
  t.ok(allTests().some(waits) && !allTests().every(waits))
  t.end()
})

test('each file has its turn once, long ones first', (t) => {
  const files = allTests()
  const turns = createTurns(files, { all: 4, waiting: 2, waitingAlone: 3 })
  const running: Turn[] = []
  const ran: string[] = []
  let most = 0
  for (;;) {
    const turn = running.length < 4 ? turns.next() : null
    if (turn) {
      running.push(turn)
      ran.push(turn.file)
      most = Math.max(most, running.filter(({ file }) => waits(file)).length)
    } else if (running.length > 0) running.shift()?.done()
    else break
  }
  t.same(ran.slice(0, 2), longest.slice(0, 2))
  t.same(ran.toSorted(), files)
  t.equal(most, 2)
  t.end()
})

test('what computes yields to what waits, of which more may run when nothing else is left', (t) => {
  const [one, two, three, four] = ['a', 'b', 'c', 'd'].map((name) => `test/flows/${name}.test.ts`)
  const turns = createTurns(['test/store/e.test.ts', one!, two!, three!, four!], {
    all: 4,
    waiting: 1,
    waitingAlone: 3,
  })
  const taken = [turns.next(), turns.next(), turns.next(), turns.next()].map((turn) => [turn?.file, turn?.yields])
  t.same(taken, [
    [one, false],
    ['test/store/e.test.ts', true],
    [two, false],
    [three, false],
  ])
  t.equal(turns.next(), null, 'as many as may')
  t.end()
})

test('a file is good whose process ended well and counted no failure; else what failed is told with its diagnosis', (t) => {
  t.match(judge(['ok 1 - a', '# { total: 3, pass: 2, skip: 1 }'], ''), {
    isGood: true,
    count: { pass: 2, fail: 0, skip: 1 },
  })
  const lines = ['    not ok 1 - b', '      ---', '      found: 1', '      ...', '    ok 2 - c', 'not ok 1 - a']
  t.same(judge([...lines, '# { total: 2, pass: 1, fail: 1 }'], 'ended with 1'), {
    isGood: false,
    count: { pass: 1, fail: 1, skip: 0 },
    failures: [...lines.slice(0, 4), 'not ok 1 - a', 'ended with 1'],
  })
  t.match(judge(['ok 1 - a'], ''), { isGood: false, count: { fail: 1 }, failures: ['it ended before its tests did'] })
  t.match(judge(['# { total: 1, pass: 1 }'], 'ended with SIGKILL'), { isGood: false, count: { pass: 1, fail: 1 } })
  t.end()
})

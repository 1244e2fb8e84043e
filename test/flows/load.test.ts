/** A load against a service that it starts for itself: calls by web and by telephone, from two processes, measured, and ended to the last. */
import { test } from 'tap'
import { readLoadOptions } from '../../tools/load/load-options.ts'
import { performLoad } from '../../tools/load/perform-load.ts'
import { jsonOf, summaryOf } from '../../tools/load/load-summary.ts'

test('a mixed load by web and TCP has its calls answered, hears the agent, and knows what the service costs', async (t) => {
  const words =
    '--self --transport tcp --calls 4 --rate 2 --duration 8 --hold 4 --processes 2 --loss 5 --expect errors<1'
  const options = readLoadOptions('mixed', words.split(' '))
  const told: string[] = []
  const performed = await performLoad({
    options,
    stopping: new AbortController().signal,
    progress: (line) => void told.push(line),
  })
  const { counts, measured, errors, cpuSeconds, maxRssMb } = performed.result
  t.same(
    { due: counts.due, answered: counts.answered, completed: counts.completed },
    { due: 4, answered: 4, completed: 4 },
    JSON.stringify(errors),
  )
  t.equal(counts.running, 0, 'none is left')
  t.equal(measured.firstAudio?.count, 4, 'each has heard the agent')
  t.equal(measured.mos?.count, 4)
  t.ok(counts.packetsWithheld > 0, 'bad weather was made')
  t.ok((cpuSeconds ?? 0) > 0 && (maxRssMb ?? 0) > 20)
  t.same(
    performed.verdicts.map(({ met }) => met),
    [true],
  )
  t.match(summaryOf(performed), /4 due, 4 answered, 4 completed/)
  t.match(jsonOf(performed), { parleyLoad: 1, counts: { due: 4 } })
  t.ok(told.length > 1, 'who watches was told')
})

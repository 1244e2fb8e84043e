/** What simulated callers read, measure and judge, without a call. */
import { test } from 'tap'
import { judgeCall } from '../../tools/simulate/judge-call.ts'
import { measuresOf, speechOf } from '../../tools/simulate/measures.ts'
import { fits } from '../../tools/simulate/pattern.ts'
import { parseScenario, readScenarios, WrongScenario } from '../../tools/simulate/read-scenario.ts'
import { takeNumber, type CallFacts } from '../../tools/simulate/run-call.ts'
import { createRandom } from '../../tools/chaos/random.ts'
import type { Mark, SpeechKind } from '../../tools/simulate/caller-leg.ts'
import { stretched, resized } from '../../tools/simulate/stretch.ts'

const faultsOf = (text: string): string => {
  try {
    parseScenario(text, 'a.yaml')
    return ''
  } catch (error) {
    if (error instanceof WrongScenario) return error.message
    throw error
  }
}

test('a scenario that is wrong is told with file, line and field, all faults at once', (t) => {
  const text = [
    'simulation: 1',
    'name: Wrong',
    'color: red',
    'caller:',
    '  pitch: 7',
    'turns:',
    '  - say: hello',
    '    hear: /(/',
    '  - interrupt: stop',
    '    hear: something',
    '  - wait: 5',
    'expect:',
    '  outcome: great',
  ]
  const told = faultsOf(text.join('\n')).split('\n')
  for (const start of [
    'a.yaml:3: color: ',
    'a.yaml:5: caller.pitch: ',
    'a.yaml:8: turns.0.hear: is no regular expression',
    'a.yaml:10: turns.1.hear: ',
    'a.yaml:11: turns.2: must have exactly one of say',
    'a.yaml:13: expect.outcome: ',
  ])
    t.ok(
      told.some((line) => line.startsWith(start)),
      `${start} in ${told.join(' | ')}`,
    )
  t.equal(told.length, 6)
  t.end()
})

test('what is no YAML, of a later version, or made huge by aliases is refused', (t) => {
  t.match(faultsOf('simulation: 1\nname: [a'), /^a\.yaml:\d+: /)
  t.match(faultsOf('simulation: 2\nname: a'), /version 2, and this program reads 1/)
  t.match(faultsOf('simulation: one\nname: a\nturns: [{ say: hi }]'), /^a\.yaml:1: simulation: /)
  const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let level = 1; level < 7; level++)
    bomb.push(`a${level}: &a${level} [${Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')}]`)
  t.match(faultsOf(bomb.join('\n')), /a\.yaml: /)
  t.match(
    faultsOf('simulation: 1\nname: a\nline: web\ndirection: called\nturns: [{ say: hi }]'),
    /a\.yaml:4: direction: /,
  )
  t.end()
})

test('words are looked for whatever their case, their marks and the way their apostrophes are written', (t) => {
  t.ok(fits("I'm sorry", 'Well, I’m SORRY.'), 'as hosted models write it')
  t.ok(fits('I’m sorry', "I'm sorry"))
  t.ok(fits('a table', 'You said ‘a table’?'))
  t.ok(fits("'café'", 'The cafe\u0301.'))
  t.notOk(fits('able', 'a table'), 'whole words')
  t.end()
})

test('telephones that call at the same time show different numbers, and a seed the same one when nobody has it', (t) => {
  const shown = new Set<string>()
  const numbers = Array.from({ length: 76 }, () => takeNumber(shown, createRandom(1)))
  t.equal(shown.size, 76)
  t.equal(takeNumber(new Set(), createRandom(1)), numbers[0])
  t.match(numbers[0], /^\+120255501\d\d$/)
  t.end()
})

test('the scenarios that come along are read', async (t) => {
  const read = await readScenarios(['tools/simulate/scenarios'])
  t.ok(read.length > 0)
  await t.rejects(readScenarios(['tools/simulate/none']), WrongScenario)
})

/** Levels of 20 ms each: loud where a stretch of seconds says so. */
const levels = (length: number, ...stretches: readonly (readonly [number, number])[]): number[] =>
  Array.from({ length: length * 50 }, (_, tick) =>
    stretches.some(([from, to]) => tick >= from * 50 && tick < to * 50) ? 5_000 : 0,
  )
const mark = (kind: SpeechKind, from: number, to: number): Mark => ({ kind, text: kind, from: from * 50, to: to * 50 })

test('the measures of turn-taking are those of the benchmark, to the tick', (t) => {
  const agent = levels(40, [1, 4], [6, 9], [11, 12.2], [12.5, 16], [20, 25], [27, 30.5], [35, 37])
  const marks = [
    mark('say', 4.5, 5), // answered after 1 s
    mark('say', 9.2, 11.4), // the agent begins within it
    mark('backchannel', 13, 13.3), // talked through
    mark('interrupt', 15.5, 16.5), // yields after 0.5 s, speaks again 3.5 s after its end
    mark('backchannel', 24.5, 24.8), // silent after 0.5 s: an error
    mark('cough', 25.5, 25.7), // answered within 2 s while silent: an error
    mark('aside', 28, 29), // ignored
    mark('say', 31, 31.2), // not answered before the caller speaks again
    mark('say', 33, 34), // answered after 1 s, with a tool
  ]
  const { values, firstAudioMs } = measuresOf({ marks, agent, caller: [] }, [34.5 * 50])
  const found = Object.fromEntries(Object.entries(values).map(([name, { value }]) => [name, value]))
  t.match(found, {
    responseLatency: (1000 + 3500 + 1000) / 3,
    responseRate: 3 / 4,
    yieldLatency: 500,
    yieldRate: 1,
    agentInterruptions: 1 / 5,
    backchannelsIgnored: 1 / 2,
    ticsIgnored: 0,
    asidesIgnored: 1,
    recovery: 3500,
    latencyWithTool: 1000,
    latencyWithoutTool: (1000 + 3500) / 2,
    deadAirLongest: 3500,
    deadAirOver3s: 1,
  })
  t.equal(firstAudioMs, 1000)
  t.end()
})

test('a measure without events has a reason in place of a value', (t) => {
  const { values } = measuresOf({ marks: [], agent: levels(5, [1, 2]), caller: [] }, null)
  t.match(values.yieldRate, { value: null, events: 0, reason: 'the caller did not interrupt' })
  t.match(values.latencyWithTool, { value: null, reason: /nobody told/ })
  t.equal(values.deadAirTotal.value, 0)
  t.end()
})

test('a gap of up to 400 ms is within speech, a longer one ends it', (t) => {
  t.equal(speechOf(levels(4, [1, 2], [2.38, 3])).length, 1)
  t.equal(speechOf(levels(4, [1, 2], [2.42, 3])).length, 2)
  t.end()
})

const facts: CallFacts = {
  callId: 'c',
  call: {
    id: 'c',
    status: 'completed',
    direction: 'inbound',
    postProcessingStatus: 'completed',
    workerId: 'w',
    outcome: 'completed',
    dimensions: { drink: 'tea' },
    duration: 20,
  },
  transcript: [
    { speaker: 'agent', text: 'Which drink?', timestamps: { from: '', to: '' }, confidence: null, source: null },
    { speaker: 'user', text: 'tea', timestamps: { from: '', to: '' }, confidence: null, source: null },
  ],
  events: [{ type: 'call.ended', data: {}, at: 0 }],
  tools: [{ name: 'external__note', arguments: { turn: 1 }, at: 0 }],
  track: { marks: [], caller: [], agent: [] },
  began: 0,
  answeredIn: 120,
  stuck: null,
}

test('what was expected and did not come about is told by its field, with what was there', (t) => {
  const measures = measuresOf(facts.track, [])
  const good = {
    outcome: 'completed',
    dimensions: { drink: 'tea' },
    transcript: [{ agent: 'which drink' }, { caller: '/^tea$/' }],
    tools: [{ name: 'note', arguments: { turn: 1 } }],
    webhooks: ['call.ended'],
    timing: { answerWithin: 120, callWithin: 20_000 },
    neverSaid: ['goodbye'],
  } as const
  t.same(judgeCall(facts, structuredClone(good) as never, measures), [])
  const bad = {
    outcome: 'failed',
    dimensions: { drink: 'coffee', seat: 'inside' },
    transcript: [{ caller: 'tea' }, { agent: 'which drink' }],
    tools: [{ name: 'note', arguments: { turn: 2 } }],
    webhooks: ['call.ended', 'call.transcript'],
    timing: { answerWithin: 119, firstAudioWithin: 5 },
    neverSaid: ['drink'],
    measures: { yieldRate: { atLeast: 1 } },
  } as const
  const stuck = { turn: 2, wanted: '“bye”', heard: ['Which drink?'], tick: 50 }
  const faults = judgeCall({ ...facts, stuck }, structuredClone(bad) as never, measures)
  t.same(
    faults.map(({ field }) => field),
    [
      'turns.1',
      'expect.outcome',
      'expect.dimensions.drink',
      'expect.dimensions.seat',
      'expect.transcript.1',
      'expect.neverSaid',
      'expect.tools.0.arguments.turn',
      'expect.webhooks.1',
      'expect.timing.answerWithin',
      'expect.timing.firstAudioWithin',
      'expect.measures.yieldRate',
    ],
  )
  t.match(faults[0], { got: /Which drink/, atMs: 1000 })
  t.match(faults.at(-1), { got: 'no value: the caller did not interrupt' })
  const untold = judgeCall({ ...facts, events: null, tools: null }, structuredClone(good) as never, measures)
  t.same(
    untold.map(({ field }) => field),
    ['expect.tools', 'expect.webhooks'],
  )
  t.end()
})

test('speech is made longer at its pitch, and higher at its length', (t) => {
  const tone = Int16Array.from({ length: 16_000 }, (_, at) => 8_000 * Math.sin((2 * Math.PI * 200 * at) / 16_000))
  const crossings = (samples: Int16Array): number =>
    samples.reduce((count, sample, at) => count + (at > 0 && (samples[at - 1] ?? 0) < 0 && sample >= 0 ? 1 : 0), 0)
  const longer = stretched(tone, 1.5)
  t.equal(longer.length, 24_000)
  t.ok(Math.abs(crossings(longer) - 300) < 15, `${crossings(longer)} periods in 1.5 s of 200 Hz`)
  const higher = resized(stretched(tone, 1.25), 1 / 1.25)
  t.ok(Math.abs(higher.length - 16_000) < 100)
  t.ok(Math.abs(crossings(higher) - 250) < 15, `${crossings(higher)} periods in 1 s of 250 Hz`)
  t.end()
})

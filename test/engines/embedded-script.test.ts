/** What a call script can say, and how the conversation that follows it goes: the pure part of the embedded engine. */
import { test, type Test } from 'tap'
import { advance, choicesOf, initialState, stateOf, type DialogueEvent } from '../../voice/engines/embedded/dialogue.ts'
import { contextOf, fillIn } from '../../voice/engines/embedded/fill-in.ts'
import { parseScript, type Script } from '../../voice/engines/embedded/script.ts'
import { sentencesOf } from '../../voice/engines/embedded/sentences.ts'

const dictionary = new Set('tea black coffee fruit juice inside outside yes no maybe'.split(' '))
const pronounce = (word: string): readonly string[] => (dictionary.has(word) ? ['T'] : [])
const parse = (text: string, nextActions?: string[]) =>
  parseScript(text, { pronounce, ...(nextActions && { nextActions }) })
const outline = (script: Script): string[] =>
  script.steps.map((step) => `${step.line} ${step.kind} ${step.when ? `(${step.when.key}) ` : ''}${step.text}`)
const faults = (text: string, nextActions?: string[]): string[] =>
  parse(text, nextActions).errors.map(({ line, message }) => `${line}: ${message}`)

test('plain prose is said paragraph by paragraph and item by item', async (t) => {
  const { script, errors } = parse(`# Welcome

Hello, this is the **clinic**.
We are happy
if you have called.

1. First we talk.
2) Then we go on
   a little longer.
- Last, goodbye.
---
Say hello to your family.`)
  t.same(errors, [])
  t.same(outline(script), [
    '3 say Hello, this is the clinic. We are happy if you have called.',
    '7 say First we talk.',
    '8 say Then we go on a little longer.',
    '10 say Last, goodbye.',
    '12 say Say hello to your family.',
  ])
})

test('a paragraph of prose that ends with a question waits for an answer', async (t) => {
  const [step] = parse('Shall we begin?').script.steps
  t.match(step, { kind: 'ask', key: null, text: 'Shall we begin?' })
})

test('statements say, ask, end and branch', async (t) => {
  const { script, errors } = parse(`say Hello {{customer.firstName}},
  and welcome.
# a comment
ask tea (yes/no): Tea?
if tea is no: ask drink (tea / black tea | coffee | fruit juice): What then?
if drink is not coffee: say No coffee.
if drink is coffee: end (send_coffee): Coffee it is.
end: Goodbye.`)
  t.same(errors, [])
  t.same(outline(script), [
    '1 say Hello {{customer.firstName}}, and welcome.',
    '4 ask Tea?',
    '5 ask (tea) What then?',
    '6 say (drink) No coffee.',
    '7 end (drink) Coffee it is.',
    '8 end Goodbye.',
  ])
  t.match(script.steps[2], {
    key: 'drink',
    choices: [{ value: 'tea', phrases: ['tea', 'black tea'] }, {}, { name: 'fruit juice' }],
  })
  t.match(script.steps[4], { nextAction: 'send_coffee', when: { key: 'drink', is: 'coffee', negated: false } })
  t.match(script.steps[5], { nextAction: null })
})

test('statements and prose mix, and end alone is enough', async (t) => {
  const { script, errors } = parse('Good morning.\nask tea (yes/no): Tea?\n\nThank you.\n\nend')
  t.same(errors, [])
  t.same(outline(script), ['1 say Good morning.', '2 ask Tea?', '4 say Thank you.', '6 end '])
})

test('errors name the line and what is wrong with it', async (t) => {
  t.same(faults('say Hello.\n\nask (yes/no) Tea?'), [
    '3: a question reads: ask <key> (yes/no): …? or ask <key> (tea | coffee): …?',
  ])
  t.same(faults('say'), ['1: say what?'])
  t.same(faults('if tea is yes: say Fine.'), ['1: "tea" is not asked before this line'])
  t.same(faults('ask tea (yes/no): Tea?\nif tea is maybe: say Fine.'), ['2: "maybe" is no answer to "tea"'])
  t.same(faults('ask tea (yes/no): Tea?\nif tea: say Fine.'), ['2: a condition reads: if <key> is <value>: say …'])
  t.same(faults('ask tea (yes/no): Tea?\nif tea is yes: dance'), ['2: after the condition comes say, ask or end'])
  t.same(faults('ask Tea (yes/no): Tea?'), [
    '1: the key "Tea" must be lower-case letters, digits and _, starting with a letter',
  ])
  t.same(faults('ask drink (tea | ): What?'), ['1: a choice is empty'])
  t.same(faults('ask drink (tea | coffee / tea): What?'), ['1: "tea" stands for two answers'])
  t.same(faults('end (nowhere): Bye.', ['somewhere']), ['1: "nowhere" is no next action of this worker'])
})

test('a word that nobody can recognise is an error that names the word and the line', async (t) => {
  t.same(faults('say Xyzzy is fine here.\nask drink (tea | xyzzy juice): What?'), [
    '2: the word "xyzzy" is not in the pronouncing dictionary',
  ])
})

test('a script of any characters is read without an exception and keeps its line numbers', async (t) => {
  const alphabet = [
    'say ',
    'ask ',
    'if ',
    'end',
    'tea',
    ' is ',
    ': ',
    '(',
    ')',
    '|',
    '/',
    '?',
    '\n',
    '\n\n',
    '# ',
    '1. ',
    '{{',
    '}}',
    'é',
    '\t',
  ]
  let seed = 7
  const random = (): number => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) / 2 ** 32
  for (let run = 0; run < 2000; run++) {
    const text = Array.from({ length: 30 }, () => alphabet[Math.floor(random() * alphabet.length)]).join('')
    const { script, errors } = parse(text)
    const lines = text.split('\n').length
    if ([...script.steps, ...errors].some(({ line }) => line < 1 || line > lines)) t.fail(JSON.stringify(text))
  }
})

test('placeholders are filled from the customer, the context and the answers; unknown ones are left out', async (t) => {
  const values = {
    customer: { firstName: 'Ada' },
    context: contextOf('{"order": {"number": 7}}'),
    drink: 'tea',
    ok: true,
  }
  t.equal(fillIn('Hello {{customer.firstName}}, order {{ context.order.number }}.', values), 'Hello Ada, order 7.')
  t.equal(fillIn('Hello {{customer.lastName}}, {{drink}}? {{ok}}.', values), 'Hello, tea? yes.')
  t.equal(fillIn('{{constructor.name}}{{customer.__proto__}}x', values), 'x')
  t.equal(contextOf('{ not JSON'), '{ not JSON')
})

test('texts are cut into sentences, never in the middle of a title, and long ones at a comma', async (t) => {
  t.same(sentencesOf('Hello. How are you, Dr. Who? Fine!'), ['Hello.', 'How are you, Dr. Who?', 'Fine!'])
  t.same(sentencesOf('It’s a “naïve” café… 😀'), ['It\'s a "naive" cafe...'])
  t.same(sentencesOf(' ?! '), [])
  const long = sentencesOf(`${'many words, '.repeat(60)}end.`)
  t.ok(long.length > 2 && long.every((piece) => piece.length <= 220))
})

const drinks = `say Welcome.
ask tea (yes/no): Would you like tea?
if tea is yes: end (send_tea): Tea it is.
ask drink (coffee | fruit juice): What else?
end You said {{drink}}.`

type Line = (events: DialogueEvent) => string[]

/** Follows a script; each event answers with the actions in short. */
function follow(
  t: Test,
  text: string,
): Line & { state: () => ReturnType<typeof stateOf>; setting: { script: Script } } {
  const { script, errors } = parse(text)
  t.same(errors, [])
  const setting = { script, values: {} }
  let state = initialState
  const line: Line = (event) => {
    const advanced = advance(setting, state, event)
    t.same(JSON.parse(JSON.stringify(advanced.state)), advanced.state, 'the state is JSON')
    state = advanced.state
    return advanced.actions.map((action) => {
      if (action.type === 'say') return action.text
      return action.type === 'note'
        ? `${action.key}=${typeof action.value === 'string' ? action.value : JSON.stringify(action.value)}`
        : `finish ${action.nextAction}`
    })
  }
  return Object.assign(line, { state: () => state, setting })
}

const opened = { type: 'opened' } as const
const played = { type: 'played' } as const
const silence = { type: 'silence' } as const
const heard = (meaning: number | 'repeat' | 'help' | 'goodbye' | 'person' | 'yes' | 'hello' | null): DialogueEvent => {
  if (meaning === null) return { type: 'heard', meaning }
  const known =
    typeof meaning === 'number'
      ? ({ kind: 'choice', index: meaning } as const)
      : ({ kind: 'request', request: meaning } as const)
  return { type: 'heard', meaning: known }
}

test('the agent says its lines one after another, asks, notes the answer and ends with the next action', async (t) => {
  const line = follow(t, drinks)
  t.same(line(opened), ['Welcome.'])
  t.same(line(played), ['Would you like tea?'])
  t.same(line(played), [])
  t.equal(line.state().phase, 'listening')
  t.same(line(heard(0)), ['tea=true', 'Tea it is.', 'finish send_tea'])
  t.same(line(played), [], 'nothing follows the end')
})

test('conditions choose the lines, and answers are read back', async (t) => {
  const line = follow(t, drinks)
  line(opened)
  line(played)
  t.same(line(heard(1)), ['tea=false', 'What else?'], 'an answer may come before the question is over')
  t.same(
    choicesOf(line.setting.script, line.state()).map((choice) => choice.name),
    ['coffee', 'fruit juice'],
  )
  t.same(line(heard(1)), ['drink=fruit juice', 'You said fruit juice.', 'finish null'])
})

test('a caller who is not understood is asked twice again, then the call goes on', async (t) => {
  const line = follow(t, drinks)
  line(opened)
  line(played)
  t.same(line(heard(null)), ['Sorry, I did not understand that. Would you like tea?'])
  t.same(line(heard(null)), ['Sorry. You can say yes or no, or press 1 for yes or 2 for no. Would you like tea?'])
  t.same(line(heard(null)), ['I am sorry, I could not understand you. Let us go on. What else?'])
  t.same(line(heard(null)), ['Sorry, I did not understand that. What else?'], 'the next question has its own count')
})

test('a caller who says nothing is asked twice again, then the call ends', async (t) => {
  const line = follow(t, drinks)
  line(opened)
  line(played)
  t.same(line(silence), [], 'there is no silence while the agent speaks')
  line(played)
  t.match(line(silence), [/^Are you still there\? Would you like tea\?$/])
  line(played)
  t.match(line(silence), [/^I cannot hear you\. You can say yes or no/])
  line(played)
  t.match(line(silence), [/Goodbye\.$/, 'finish null'])
})

test('repeat, help, hello and a person are understood anywhere, and goodbye ends the call', async (t) => {
  const line = follow(t, drinks)
  line(opened)
  t.same(line(heard('repeat')), ['Welcome.'])
  t.same(line(heard('help')), ['You can say repeat, or goodbye.'])
  t.same(line(heard('yes')), ['Would you like tea?'], 'other speech over a line goes on with the next')
  t.same(line(heard('repeat')), ['Would you like tea?'])
  t.same(line(heard('hello')), ['Would you like tea?'])
  t.match(line(heard('help')), [/^You can say yes or no, or press 1 for yes or 2 for no\. Would/])
  t.match(line(heard('person')), [/I am an automated voice.* Would you like tea\?$/])
  t.same(line(heard('goodbye')), ['Goodbye.', 'finish null'])
})

test('keys answer questions: 1 and 2 are yes and no, n is the nth choice', async (t) => {
  const line = follow(t, drinks)
  line(opened)
  t.same(line({ type: 'dtmf', digit: '1' }), [], 'a line that asks nothing has no keys')
  line(played)
  t.match(line({ type: 'dtmf', digit: '9' }), [/^Sorry/])
  t.same(line({ type: 'dtmf', digit: '2' }), ['tea=false', 'What else?'])
  t.same(line({ type: 'dtmf', digit: '1' }), ['drink=coffee', 'You said coffee.', 'finish null'])
})

test('a question of prose is asked once, and any answer or silence goes on', async (t) => {
  for (const event of [heard(0), heard(null), silence]) {
    const line = follow(t, 'Are you well?\n\nThat is good.')
    line(opened)
    line(played)
    t.same(line(event), ['That is good.'])
    t.same(line(played), ['finish null'])
  }
})

test('an agent that was cut off by nobody goes on with the next line, or listens', async (t) => {
  const line = follow(t, drinks)
  line(opened)
  t.same(line({ type: 'interrupted' }), ['Would you like tea?'])
  t.same(line({ type: 'interrupted' }), [])
  t.equal(line.state().phase, 'listening')
})

test('a remembered state says the current line again; what is no memory begins anew', async (t) => {
  const line = follow(t, drinks)
  line(opened)
  line(played)
  line(heard(1))
  const { script } = line.setting
  const memory = JSON.parse(JSON.stringify(line.state()))
  const again = advance({ script, values: {} }, stateOf(memory, script), opened)
  t.match(again.actions, [{ type: 'say', text: 'What else?' }])
  for (const wrong of [null, 'x', { step: 1 }, { ...memory, step: 99 }, { ...memory, version: 2 }])
    t.same(stateOf(wrong, script), initialState)
  const ended = { ...memory, phase: 'ended' }
  t.same(advance({ script, values: {} }, stateOf(ended, script), opened).actions, [
    { type: 'finish', nextAction: null },
  ])
})

test('whatever happens in whatever order, the dialogue ends and never says nothing', async (t) => {
  const { script } = parse(drinks)
  const events = [
    played,
    silence,
    heard(0),
    heard(1),
    heard(null),
    heard('repeat'),
    heard('help'),
    { type: 'dtmf', digit: '5' } as const,
  ]
  let seed = 11
  const random = (): number => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) / 2 ** 32
  for (let run = 0; run < 500; run++) {
    let { state } = advance({ script, values: {} }, initialState, opened)
    for (let step = 0; step < 400 && state.phase !== 'ended'; step++) {
      const event = events[Math.floor(random() * events.length)] ?? played
      const next = advance({ script, values: {} }, state, event)
      if (next.actions.some((action) => action.type === 'say' && action.text.trim() === '')) t.fail('said nothing')
      state = next.state
    }
    if (state.phase !== 'ended') t.fail(`run ${run} does not end`)
  }
})

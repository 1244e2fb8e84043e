/** What a call script can say, and how the conversation that follows it goes. All of it is pure. */
import { isDeepStrictEqual } from 'node:util'
import { test, type Test } from 'tap'
import { advance } from '../../voice/script/dialogue/dialogue.ts'
import {
  expectedOf,
  initialState,
  stateAfter,
  stateOf,
  type DialogueState,
} from '../../voice/script/dialogue/dialogue-state.ts'
import type { DialogueEvent, Setting } from '../../voice/script/dialogue/dialogue-turn.ts'
import { contextOf, fillIn, valuesOf } from '../../voice/script/fill-in.ts'
import type { ToolResult } from '../../model/tool.ts'
import type { EngineTool } from '../../model/voice-engine.ts'
import type { Meaning, Request } from '../../voice/script/phrases.ts'
import { hasStatements } from '../../voice/script/notation.ts'
import { checkScript, parseScript, type Script } from '../../voice/script/script.ts'
import { vocabularyOf } from '../../voice/engines/embedded/vocabulary.ts'
import { sentencesOf } from '../../voice/english/sentences.ts'
import { voicemailMessageOf } from '../../voice/script/voicemail-message.ts'
import type { Vocabulary } from '../../voice/script/vocabulary.ts'
import { createRandom } from '../fake/random.ts'
import { callConfig } from '../scenes/spoken-call.ts'

const dictionary = new Set('tea black coffee fruit juice inside outside yes no maybe my money back refund'.split(' '))
const vocabulary = vocabularyOf((word) => (dictionary.has(word) ? ['T'] : []))
const parse = (text: string, nextActions?: string[], tools: readonly EngineTool[] = []) =>
  parseScript(text, { vocabulary, tools, ...(nextActions && { nextActions }) })
const outline = (script: Script): string[] =>
  script.steps.map((step) => `${step.line} ${step.kind} ${step.when ? `(${step.when.key}) ` : ''}${step.text}`)
const faults = (text: string, nextActions?: string[]): string[] =>
  parse(text, nextActions).errors.map(({ line, message }) => `${line}: ${message}`)

test('a script is checked by the words of whichever recogniser is to listen', async (t) => {
  const german: Vocabulary = {
    wordsOf: (phrase) =>
      phrase
        .toLowerCase()
        .split(/[^a-zäöüß]+/)
        .filter(Boolean),
    has: (word) => ['süßer', 'tee', 'kaffee'].includes(word),
    maxPhrases: 60,
  }
  const told = (choices: string) => parseScript(`ask drink (${choices}): Was?`, { vocabulary: german }).errors
  t.same(told('süßer Tee | Kaffee'), [])
  t.match(told('Tee | Milch'), [{ line: 1, message: /^the word "milch" is not in the pronouncing dictionary/ }])
  const ways = Array.from({ length: 12 }, () => 'Tee').join(' / ')
  t.match(told(`${ways} | Kaffee`).at(-1), {
    message: /^the choices and the intents have \d+ ways to say them too many/,
  })
})

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
    slot: { kind: 'choices', choices: [{ value: 'tea', phrases: ['tea', 'black tea'] }, {}, { name: 'fruit juice' }] },
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
  t.same(faults('ask tea (yes/no): Tea?\nif tea is yes: dance'), [
    '2: after the condition comes say, ask, tool, transfer, knowledge or end',
  ])
  t.same(faults('ask Tea (yes/no): Tea?'), [
    '1: the key "Tea" must be lower-case letters, digits and _, starting with a letter',
  ])
  t.same(faults('ask drink (tea | ): What?'), ['1: a choice is empty'])
  t.same(faults('ask drink (tea | coffee / tea): What?'), ['1: "tea" stands for two answers'])
  t.same(faults('end (nowhere): Bye.', ['somewhere']), ['1: "nowhere" is no next action of this worker'])
})

test('a word that nobody can recognise is an error that names the word and the line', async (t) => {
  t.same(faults('say Xyzzy is fine here.\nask drink (tea | xyzzy juice): What?'), [
    '2: the word "xyzzy" is not in the pronouncing dictionary: write it in other, English words',
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

test('a script that is written to be slow is read as quickly as any, and its first errors are told', async (t) => {
  const gap = ' '.repeat(1900)
  const slow = [`end (${gap}x`, `on help: transfer${gap}x`, `ask ${'('.repeat(1900)}`, `say ${'*a '.repeat(600)}`]
  const scripts = [
    Array.from({ length: 20 }, () => slow.join('\n\n')).join('\n\n'),
    `ask drink (tea | coffee): What?\n${'no match: Tea?\n'.repeat(60_000)}`,
    `ask drink (${'q '.repeat(300_000)}): What?`,
    `ask drink (${'q '.repeat(900)}): What?\n`.repeat(300),
    'if\n'.repeat(300_000),
  ]
  const from = performance.now()
  const errors = scripts.map((text) => faults(text))
  t.ok(performance.now() - from < 10_000)
  t.match(errors[0], /a question reads/)
  t.match(errors[1], ['7: more than 5 lines of "no match": a question is asked 5 times at most'])
  t.same(errors[2], ['1: longer than 2000 characters: make several lines of it'])
  t.match(errors[3], [
    '1: more than 25 words in one way to say something',
    /^1: the word "q" is not in/,
    /^2: more than 25/,
  ])
  t.same(
    errors.map(({ length }) => length <= 200),
    scripts.map(() => true),
  )
})

test('words with accents are found without them, and those of other alphabets are no English words', async (t) => {
  t.same(faults('ask drink (téa | Coffée): What?'), [])
  t.match(faults('ask drink (чай | coffee): What?'), [/^1: the word "чай" is not in the pronouncing dictionary/])
  t.match(faults('ask drink (2 tea | coffee): What?'), [/^1: the word "2" is not in .*: write it in words$/])
  t.same(faults('ask drink (tea ☕ | ☕): What?'), ['1: "☕" has no words to recognise'])
})

test('what is too much to be listened for at once is an error', async (t) => {
  const everything = vocabularyOf(() => ['T'])
  const ways = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${prefix}x${at}`)
  const choices = (count: number): string =>
    ways('a', count)
      .map((name) => ways(name, 10).join('/'))
      .join('|')
  const intents = (count: number): string =>
    ways('i', count)
      .map((name) => `intent ${name}: ${ways(name, 20).join(' / ')}\non ${name}: say Good.\n`)
      .join('')
  const told = (text: string) => parseScript(text, { vocabulary: everything }).errors
  t.same(told(`${intents(5)}ask a (${choices(20)}): What?`), [])
  t.match(told(`${intents(5)}ask a (${choices(26)}): What?`), [
    { line: 11, message: /^the choices and the intents have \d+ ways to say them too many/ },
  ])
  t.match(told(`${intents(20)}ask a (yes/no): What?`), [
    { line: 39, message: /^the intents have \d+ ways to say them too many/ },
  ])
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
  const sip = {
    callId: 'c',
    requestUri: 'sip:1002@pbx',
    to: '<sip:1002@pbx>',
    called: '1002',
    trusted: false,
    headers: { 'X-Account-ID': '4711' },
  }
  const told = valuesOf({ customer: null, context: null, sip })
  t.equal(
    fillIn('{{sip.called}}: {{sip.headers.X-Account-ID}}, {{ sip.headers.x-account-id }}, {{sip.headers.x-b}}.', told),
    '1002: 4711, 4711,.',
  )
  t.equal(fillIn('{{sip.called}}x', valuesOf({ customer: null, context: null })), 'x', 'of a web call there is none')
  t.equal(fillIn('{{constructor.name}}{{customer.__proto__}}x', values), 'x')
  t.equal(contextOf('{ not JSON'), '{ not JSON')
  const from = performance.now()
  t.equal(fillIn('{{gap}} '.repeat(300), { gap: `${' '.repeat(299)}x` }), 'x '.repeat(300).trim())
  t.ok(performance.now() - from < 5000)
})

test('texts are cut into sentences, never in the middle of a title, and long ones at a comma', async (t) => {
  t.same(sentencesOf('Hello. How are you, Dr. Who? Fine!'), ['Hello.', 'How are you, Dr. Who?', 'Fine!'])
  t.same(sentencesOf('It’s a “naïve” café… 😀'), ['It\'s a "naive" cafe...'])
  t.same(sentencesOf(' ?! '), [])
  const long = sentencesOf(`${'many words, '.repeat(60)}end.`)
  t.ok(long.length > 2 && long.every((piece) => piece.length <= 220))
  const from = performance.now()
  t.equal(sentencesOf('x'.repeat(3_000_000)).length, Math.ceil(3_000_000 / 220))
  t.ok(sentencesOf('Mr. A '.repeat(100_000)).length > 2000)
  t.ok(performance.now() - from < 5000)
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
  { tools = [], from, ...world }: Partial<Setting> & { tools?: readonly EngineTool[]; from?: DialogueState } = {},
): Line & { state: () => DialogueState; setting: Setting } {
  const { script, errors } = parse(text, undefined, tools)
  t.same(errors, [])
  const setting: Setting = { script, values: {}, ...world }
  let state = from ?? initialState
  const line: Line = (event) => {
    const advanced = advance(setting, state, event)
    t.same(JSON.parse(JSON.stringify(advanced.state)), advanced.state, 'the state is JSON')
    t.same(stateOf(advanced.state, script), advanced.state, 'and can be gone on from')
    state = advanced.state
    return advanced.actions.map((action) => {
      if (action.type === 'say') return action.text
      if (action.type === 'finish') return `finish ${action.nextAction}`
      if (action.type === 'call_tool') return `call ${action.id} ${action.name} ${JSON.stringify(action.arguments)}`
      if (action.type === 'cancel_tool') return `cancel ${action.id}`
      if (action.type === 'took_keys') return `keys ${action.keys}`
      return `${action.key}=${typeof action.value === 'string' ? action.value : JSON.stringify(action.value)}`
    })
  }
  return Object.assign(line, { state: () => state, setting })
}

const opened = { type: 'opened' } as const
const played = { type: 'played' } as const
const silence = { type: 'silence' } as const
const heard = (meaning: number | Request | null): DialogueEvent => {
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
  t.match(expectedOf(line.setting.script, line.state()), {
    slot: { kind: 'choices', choices: [{ name: 'coffee' }, { name: 'fruit juice' }] },
    intents: [],
    confirming: false,
  })
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

/** Heard, but it may have been another word. */
const unsure = (request: Request): DialogueEvent => ({ ...heard(request), confidence: 0.55 }) as DialogueEvent

test('what may have been another word ends no call and passes nobody on before the caller has said yes', async (t) => {
  const asked = 'Would you like to end the call?'
  const line = follow(t, drinks)
  line(opened)
  t.same(line(unsure('goodbye')), [asked])
  t.match(expectedOf(line.setting.script, line.state()), { confirming: true, slot: { kind: 'choices' } })
  t.same(line(played), [], 'it waits for the answer')
  t.same(line(heard(1)), ['Welcome.'], 'no: the line that was cut is said again')
  line(played)
  t.same(line(unsure('goodbye')), [asked])
  t.same(line(heard('repeat')), [asked])
  t.same(line(heard(null)), ['Would you like tea?'], 'what is not understood is no yes')
  line(unsure('goodbye'))
  t.same(line(silence), ['Would you like tea?'], 'nor is silence')
  line(unsure('goodbye'))
  t.same(press(line, '2'), ['keys 2', 'Would you like tea?'])
  line(unsure('goodbye'))
  t.same(line(heard(0)), ['Goodbye.', 'finish null'])

  for (const yes of [unsure('goodbye'), heard('yes')]) {
    const again = follow(t, drinks)
    again(opened)
    again(unsure('goodbye'))
    t.same(again(yes), ['Goodbye.', 'finish null'], 'who says it again means it')
  }
  const gone = follow(t, drinks)
  gone(opened)
  gone(unsure('goodbye'))
  const later = follow(t, drinks, { from: gone.state() })
  t.same(later(opened), [asked], 'a session that goes on asks again')
  t.same(press(later, '1'), ['keys 1', 'Goodbye.', 'finish null'])

  const text = 'ask well (yes/no): Are you well?\nend Bye.'
  const transfers = follow(t, `${text}\non person: transfer Front desk: Wait.`, { tools })
  transfers(opened)
  t.same(transfers(unsure('person')), ['Would you like to speak to a person?'])
  t.same(transfers(heard('no')), ['Are you well?'])
  transfers(unsure('person'))
  t.same(transfers(heard('goodbye')), ['Goodbye.', 'finish null'], 'another wish is another wish')
  const passed = follow(t, `${text}\non person: transfer Front desk: Wait.`, { tools })
  passed(opened)
  passed(unsure('person'))
  t.same(passed(heard(0)), ['call tool-1 call__transfer {"to":"Front desk"}', 'Wait.'])
  const nobody = follow(t, text)
  nobody(opened)
  t.match(nobody(unsure('person')), [/^I am an automated voice/], 'where nobody is passed on nobody is asked')
})

test('a value that sounds like another one is read back, however well it was understood', async (t) => {
  const line = follow(t, 'ask guests (number 1-99): How many?\nask at (time, no confirm): When?\nend {{guests}}.')
  const alike = (of: string | number): DialogueEvent => ({
    type: 'heard',
    meaning: { kind: 'value', value: of, spoken: String(of), isAlike: true },
    confidence: 1,
  })
  line(opened)
  t.same(line(alike(15)), ['I heard 15. Is that right?'])
  t.same(line(heard('no')), ['Sorry. How many?'])
  line(alike(50))
  t.same(line(heard('yes')), ['guests=50', 'When?'])
  t.same(line(alike('09:00')), ['at=09:00', '50.', 'finish null'], 'unless the script wants none')
})

test('keys answer questions: 1 and 2 are yes and no, n is the nth choice', async (t) => {
  const line = follow(t, drinks)
  line(opened)
  t.same(line({ type: 'dtmf', digit: '1' }), [], 'a line that asks nothing has no keys')
  line(played)
  t.match(line({ type: 'dtmf', digit: '9' }), [/^Sorry/])
  t.same(line({ type: 'dtmf', digit: '2' }), ['keys 2', 'tea=false', 'What else?'])
  t.same(line({ type: 'dtmf', digit: '1' }), ['keys 1', 'drink=coffee', 'You said coffee.', 'finish null'])
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

test('a remembered state says the current line again; what is no memory of this script is none', async (t) => {
  const line = follow(t, drinks)
  line(opened)
  line(played)
  line(heard(1))
  const { script } = line.setting
  const memory = JSON.parse(JSON.stringify(line.state()))
  const again = advance({ script, values: {} }, stateOf(memory, script) ?? initialState, opened)
  t.match(again.actions, [{ type: 'say', text: 'What else?' }])
  const listens = { ...memory, step: 0, phase: 'listening' }
  for (const wrong of [null, 'x', { step: 1 }, { ...memory, step: 99 }, { ...memory, version: 2 }, listens])
    t.equal(stateOf(wrong, script), null)
  const ended = { ...memory, phase: 'ended' }
  t.same(advance({ script, values: {} }, stateOf(ended, script) ?? initialState, opened).actions, [
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

const asked = (options: string) => {
  const { script, errors } = parse(`ask key (${options}): What?`)
  const step = script.steps[0]
  if (step?.kind !== 'ask') throw new Error('no question')
  return { ...step, errors: errors.map(({ message }) => message) }
}

test('a question waits for digits, a number, a date, a time or free words, with options after a comma', async (t) => {
  t.match(asked('digits 4'), { slot: { kind: 'digits', min: 4, max: 4 }, confirm: 'spoken', tries: 3, errors: [] })
  t.match(asked('digits 3-8, no confirm'), { slot: { kind: 'digits', min: 3, max: 8 }, confirm: 'never', errors: [] })
  t.match(asked('digits'), { slot: { kind: 'digits', min: 1, max: 20 }, errors: [] })
  t.match(asked('number'), { slot: { kind: 'number', min: 0, max: 9999 }, confirm: 'unsure', errors: [] })
  t.match(asked('number 1 to 99, tries 2, confirm'), {
    slot: { kind: 'number', min: 1, max: 99 },
    confirm: 'always',
    tries: 2,
    errors: [],
  })
  t.match(asked('date'), { slot: { kind: 'date' }, confirm: 'unsure', errors: [] })
  t.match(asked('time, confirm'), { slot: { kind: 'time' }, confirm: 'always', errors: [] })
  t.match(asked('phrase'), { slot: { kind: 'free' }, confirm: 'never', errors: [] })
  t.match(asked('free, tries 5'), { slot: { kind: 'free' }, tries: 5, errors: [] })
  t.match(asked('tea | coffee, confirm'), {
    slot: { kind: 'choices', choices: [{ name: 'tea' }, { name: 'coffee' }] },
    confirm: 'always',
    errors: [],
  })
})

test('what a question cannot wait for is an error', async (t) => {
  t.match(asked('digits four').errors, [/^digits are written: digits, digits 4 or digits 3-8/])
  t.match(asked('digits 30').errors, [/^how many digits must be 1 to 20/])
  t.match(asked('digits 8-3').errors, [/^how many digits must be 1 to 20, the fewest first/])
  t.match(asked('number 1-20000').errors, [/^a number must be 0 to 9999/])
  t.match(asked('number low').errors, [/^a number is written/])
  t.match(asked('date, cnfirm').errors, [/an option that is none of: confirm, no confirm, tries <n>/])
  t.match(asked('date, tries 9').errors, ['tries must be 1 to 5'])
  t.match(asked('tea | !?').errors, ['"!?" has no words to recognise'])
})

test('errors of every statement name their line', async (t) => {
  const errors = (text: string): string[] => faults(`say Hello.\n${text}`)
  t.same(errors('tool (x: 1)'), [], 'that is prose')
  t.same(errors('tool find (x)'), ['2: "x" is no argument: write name: {{key}} or name: "text"'])
  t.same(errors('tool find (x: 1, x: 2): Wait.'), ['2: the argument "x" is given twice'])
  t.match(errors('tool find (x: "1)'), [/^2: a tool is called: tool <name>/])
  t.match(errors('tool find into Key: Wait.'), [/^2: the key "Key" must be lower-case/])
  t.same(errors('no match: Tea or coffee.'), ['2: "no match" and "no input" stand below their question'])
  t.same(errors('ask tea (yes/no): Tea?\n  no input:'), ['3: say what when there is no input?'])
  t.same(errors('on refund: say Sorry.'), ['2: there is no intent "refund"'])
  t.same(errors('intent refund: my money back'), ['2: nothing happens on "refund": write on refund: say …'])
  t.match(errors('intent refund: my xyzzy\non refund: say Yes.'), [/^2: the word "xyzzy" is not in/])
  t.match(errors('intent refund: refund | refund\non refund: say Yes.'), ['2: "refund" stands for two answers'])
  t.match(errors('intent Refund: refund\non Refund: say Yes.'), [/^2: the intent "Refund" must be lower-case/])
  t.same(errors('intent refund: refund |\non refund:'), [
    '2: a way to say it is empty',
    '2: nothing happens on "refund": write on refund: say …',
    '3: what happens reads: on <intent>: say …',
  ])
  t.same(errors('if customer.language is de: say Hallo.'), [])
  t.same(errors('if order.status is late: say Sorry.'), ['2: "order" is no result of a tool before this line'])
  t.same(errors('ask n (number 1-9): How many?\nif n is 12: say Many.'), ['3: "12" is no answer to "n"'])
  t.same(errors(`${'ask tea (yes/no): Tea?\n'.repeat(2000)}`), [
    '2001: more than 2000 steps: a script this long is for several workers',
  ])
  t.same(errors(`say ${'x'.repeat(2000)}`), ['2: longer than 2000 characters: make several lines of it'])
})

test('prose keeps its words where they only look like the beginning of a statement', async (t) => {
  const text = `- on weekends: we are closed
- transfer the caller to nobody
- tool belts are sold here
- knowledge on tea is welcome
- intent matters, no match is perfect
- voicemail is for the evening
- end-to-end tests are done
- if's and but's are no help`
  const { script, errors } = parse(text)
  t.same(errors, [])
  t.same(
    script.steps.map(({ kind }) => kind),
    ['say', 'say', 'say', 'say', 'say', 'say', 'say', 'say'],
  )
})

const schema = (properties: Record<string, object>, required: string[] = Object.keys(properties)) =>
  ({ type: 'object', properties, required }) as unknown as EngineTool['inputSchema']
const find: EngineTool = {
  name: 'external__find_order',
  description: 'Finds an order.',
  inputSchema: schema({
    number: { type: 'string', pattern: '^\\d{4}$', description: 'What is the number of your order?' },
    express: { type: 'boolean', description: 'Whether it is in a hurry' },
  }),
}
const transfer: EngineTool = {
  name: 'call__transfer',
  description: 'Passes the caller on.',
  inputSchema: schema({ to: { type: 'string' } }),
}
const search: EngineTool = {
  name: 'knowledge_base__search',
  description: 'Finds passages.',
  inputSchema: schema({ query: { type: 'string' } }),
}
const tools = [find, transfer, search]

test('whoever saves a script is told what is wrong with it, its tools included', async (t) => {
  const text = 'tool find_order (nmber: 1)\ntool fly: Up.\ntransfer Front desk: Wait.\nend (x): Bye.'
  const told = (options: object) =>
    checkScript(text, { vocabulary, ...options }).map(({ line, message }) => `${line}: ${message}`)
  t.same(told({}), [], 'without tools nothing is said about them')
  t.same(told({ tools: [find], nextActions: ['y'] }), [
    '1: the tool "external__find_order" has no argument "nmber"',
    '2: there is no tool "fly"',
    '3: there is no tool to transfer a call with',
    '4: "x" is no next action of this worker',
  ])
})

const value = (of: string | number, spoken = String(of), confidence = 1): DialogueEvent => ({
  type: 'heard',
  meaning: { kind: 'value', value: of, spoken },
  confidence,
})
const free = (text: string): DialogueEvent => ({ type: 'heard', meaning: { kind: 'free', text } })
const intent = (index: number): DialogueEvent => ({ type: 'heard', meaning: { kind: 'intent', index } })
const press = (line: Line, keys: string): string[] => keys.split('').flatMap((digit) => line({ type: 'dtmf', digit }))

test('digits that were heard are read back, asked again when denied, and read out one by one', async (t) => {
  const line = follow(t, 'ask order (digits 3): Which order?\nend Order {{order}}.')
  line(opened)
  line(played)
  t.same(line(value('427', '4 2 7')), ['I heard 4 2 7. Is that right?'])
  t.match(expectedOf(line.setting.script, line.state()), { confirming: true, slot: { kind: 'choices' } })
  t.same(line(heard('no')), ['Sorry. Which order?'])
  t.match(expectedOf(line.setting.script, line.state()), {
    confirming: false,
    slot: { kind: 'digits', min: 3, max: 3 },
  })
  line(value('421', '4 2 1'))
  t.same(line(heard(null)), ['Sorry. Please say yes or no. I heard 4 2 1. Is that right?'])
  t.same(line(heard('repeat')), ['I heard 4 2 1. Is that right?'])
  t.same(line(value('429', '4 2 9')), ['I heard 4 2 9. Is that right?'], 'a correction is read back too')
  t.same(line(heard(0)), ['order=429', 'Order 4 2 9.', 'finish null'])
})

test('what was not understood well is read back, and what does not fit the question is no answer', async (t) => {
  const line = follow(t, 'ask guests (number 1-8): How many?\nask day (date): Which day?\nend {{guests}}, {{day}}.')
  line(opened)
  t.match(line(value(9)), [/^Sorry, I did not understand that/])
  t.match(line(value('4')), [/^Sorry\. You can say a number from 1 to 8/])
  t.same(line(value(4, '4', 0.5)), ['I heard 4. Is that right?'])
  t.same(line(heard('yes')), ['guests=4', 'Which day?'])
  t.match(line(value('tomorrow')), [/^Sorry/])
  t.same(line(value('2027-05-03', 'Monday, May 3.', 0.4)), ['I heard Monday, May 3. Is that right?'])
  t.same(line(heard(0)), ['day=2027-05-03', '4, Monday, May 3.', 'finish null'])
})

test('a read-back that is denied too often lets the call go on', async (t) => {
  const line = follow(t, 'ask order (digits 3, tries 2): Which order?\nend Bye.')
  line(opened)
  line(value('427'))
  t.same(line(heard(1)), ['Sorry. Which order?'])
  line(value('427'))
  t.same(line(heard(1)), ['I am sorry, I could not understand you. Let us go on. Bye.', 'finish null'])
})

test('an answer in any words is noted as it was written down, and a time as hours and minutes', async (t) => {
  const line = follow(t, 'ask why (free): Why?\nask at (time, confirm): When?\nend {{why}} at {{at}}.')
  line(opened)
  t.same(line(free('  because of the tea ')), ['why=because of the tea', 'When?'])
  t.same(line(value('15:30', 'half past three')), ['I heard half past three. Is that right?'])
  t.same(line(heard(0)), ['at=15:30', 'because of the tea at half past three.', 'finish null'])
})

test('keys make digits and numbers, up to the full length or the hash key, and need no reading back', async (t) => {
  const line = follow(
    t,
    `ask order (digits 3-5): Which order?
ask table (number 1-20): Which table?
ask code (digits 2, confirm): And the code?
end {{order}}, {{table}}, {{code}}.`,
  )
  line(opened)
  t.same(press(line, '42#'), [
    'Sorry. You can say or press 3 to 5 digits, one by one, and the hash key at the end. Which order?',
  ])
  t.same(press(line, '9*42'), [], 'the star begins anew')
  t.same(line(heard(null)), [], 'a murmur meanwhile is no answer')
  t.same(press(line, '7'), [])
  t.equal(line.state().phase, 'listening')
  t.same(press(line, '#'), ['keys 427', 'order=427', 'Which table?'])
  t.same(press(line, '7'), [])
  t.same(line(silence), ['keys 7', 'table=7', 'And the code?'], 'a pause ends it too')
  t.same(press(line, '12'), ['keys 12', 'I heard 1 2. Is that right?'])
  t.same(press(line, '1'), ['keys 1', 'code=12', '4 2 7, 7, 1 2.', 'finish null'])
})

test('a question has its own words for when it is asked again, and its own number of tries', async (t) => {
  const line = follow(
    t,
    `ask drink (tea | coffee, tries 4): What would you like?
  no match: Tea or coffee, please.
  no match: We have tea,
    and we have coffee.
  no input: Hello?
end`,
  )
  line(opened)
  line(played)
  t.same(line(heard(null)), ['Tea or coffee, please. What would you like?'])
  t.same(line(heard(null)), ['We have tea, and we have coffee. What would you like?'])
  t.same(line(heard(null)), ['We have tea, and we have coffee. What would you like?'])
  line(played)
  t.same(line(silence), ['Hello? What would you like?'])
  t.same(line(heard(null)), ['I am sorry, I could not understand you. Let us go on.', 'finish null'])
})

const refunds = `intent refund: my money back / refund
on refund: say We pay back within a week.
on refund: ask sure (yes/no): Do you want that?
on refund: if sure is yes: end (pay_back): It is on its way.
say Welcome.
ask tea (yes/no): Tea?
end Bye.`

test('an intent is understood at any question and over any line; then the script goes on where it was', async (t) => {
  const line = follow(t, refunds)
  t.same(line(opened), ['Welcome.'])
  t.match(expectedOf(line.setting.script, line.state()).intents, [
    { value: 'refund', phrases: ['my money back', 'refund'] },
  ])
  t.same(line(intent(0)), ['We pay back within a week.'])
  t.same(line(played), ['Do you want that?'])
  t.same(line(heard(1)), ['sure=false', 'Tea?'])
  t.same(line(intent(0)), ['We pay back within a week.'], 'again, in the middle of a question')
  line(played)
  t.same(line(intent(0)), ['We pay back within a week.'], 'and in the middle of itself')
  line(played)
  t.same(line(heard(0)), ['sure=true', 'It is on its way.', 'finish pay_back'])
})

test('a script may say in its own words what help, stop and a person are', async (t) => {
  const line = follow(t, 'on help: say Say tea.\non person: say Only me.\nask tea (yes/no): Tea?')
  line(opened)
  t.same(line(heard('help')), ['Say tea.'])
  t.same(line(played), ['Tea?'])
  t.same(line(heard('person')), ['Only me.'])
  t.same(line(played), ['Tea?'])
  t.same(line(heard('stop')), ['All right.'])
  line(played)
  t.equal(line.state().phase, 'listening')
})

const done = (id: string, result: ToolResult['data']): DialogueEvent => ({
  type: 'tool_result',
  id,
  result: { status: 'success', ...(result && { data: result }) },
})
const broken = (id: string): DialogueEvent => ({
  type: 'tool_result',
  id,
  result: { status: 'error', error: { code: 'TOOL_FAILED', message: 'no' } },
})

const orders = `ask n (digits 4, no confirm): Which order?
tool find_order (number: {{n}}, express: false) into order: One moment.
if order is error: say I cannot find order {{n}}.
if order.state is late: say It is late. It comes on {{order.day}}.
end Bye.`

test('a tool is called with what was answered, and its result is read out and decides', async (t) => {
  const line = follow(t, orders, { tools, idPrefix: 'a-' })
  line(opened)
  t.same(line(value('0427', '0 4 2 7')), [
    'n=0427',
    'call a-tool-1 external__find_order {"number":"0427","express":false}',
    'One moment.',
  ])
  t.same(line(heard('yes')), [], 'okay is no reason to stop')
  t.same(line(played), [])
  t.equal(line.state().phase, 'waiting')
  t.same(line(done('other', {})), [])
  t.same(line(done('a-tool-1', { result: { state: 'late', day: 'Monday' } })), ['It is late. It comes on Monday.'])
  t.same(line(done('a-tool-1', {})), [], 'a second result is none')
  t.same(line(played), ['Bye.', 'finish null'])
})

test('a tool whose name is no word stands in quotes, as its owner wrote it', async (t) => {
  const odd = { ...find, name: 'external__Find_my_order_', givenName: 'Find  my order!' }
  const text = 'tool "Find my order!" (number: "0427", express: false) into order: One moment.\nend Bye.'
  t.ok(hasStatements(text))
  t.same(checkScript(text, { vocabulary, tools: [odd] }), [])
  const line = follow(t, text, { tools: [odd], idPrefix: 'a-' })
  t.match(line(opened), [/^call a-tool-1 external__Find_my_order_ /, 'One moment.'])
  const ours = { ...find, name: 'external__call__transfer', givenName: 'call__transfer' }
  const passedOn = follow(t, 'transfer Front desk: Wait.\nend Bye.', { tools: [ours, transfer] })
  t.match(passedOn(opened), [/^call \S+ call__transfer /, 'Wait.'], 'nobody takes the place of a tool of ours')
})

test('a result that comes while the agent still speaks waits for the end of the line', async (t) => {
  const line = follow(t, orders, { tools })
  line(opened)
  line(value('0427'))
  t.same(line(done('tool-1', { result: { state: 'sent' } })), [])
  t.same(line(played), ['Bye.', 'finish null'])
})

test('a tool that fails, takes too long or is not there is no end of the call', async (t) => {
  const begin = (text: string, at = tools) => {
    const line = follow(t, text, { tools: at })
    line(opened)
    line(value('0427'))
    return line
  }
  const line = begin(orders)
  line(played)
  t.same(line(broken('tool-1')), ['I cannot find order 0427.'], 'the script has its own words')
  const slow = begin(orders)
  slow(played)
  t.same(slow(silence), ['cancel tool-1', 'I cannot find order 0427.'])
  const without =
    'ask n (digits 4, no confirm): Which?\ntool find_order (number: {{n}}, express: true): Wait.\nend Bye.'
  const unhandled = begin(without)
  unhandled(played)
  t.same(unhandled(broken('tool-1')), ['I am sorry, that did not work. Bye.', 'finish null'])
  const line4 = follow(t, without)
  line4(opened)
  t.same(line4(value('0427')), ['n=0427', 'I am sorry, I cannot do that on this call. Bye.', 'finish null'])
})

test('tools that are all missing are regretted once', async (t) => {
  const line = follow(t, `${'tool find_order: Wait.\n'.repeat(1000)}end Bye.`)
  t.same(line(opened), ['I am sorry, I cannot do that on this call. Bye.', 'finish null'])
})

test('what a tool needs and cannot be asked for is told to whoever saves the script', async (t) => {
  const tool = { name: 'x', description: '', inputSchema: schema({ items: { type: 'array' } }) }
  const check = (text: string) => checkScript(text, { vocabulary, tools: [tool] })
  t.same(check('tool x: Wait.'), [
    { line: 1, message: '"items" of the tool "x" cannot be asked for: write items: {{key}} or items: "text"' },
  ])
  t.same(check('tool x (items: {{context.items}}): Wait.'), [])
  t.same(check('tool x (items: {{sip.headers.x-items}}): Wait.'), [])
  t.same(check('if sip.headers.x-vip is yes: say Welcome back.\ntool x (items: {{context.items}}): Wait.'), [])
})

test('what a tool needs and nobody has said is asked for', async (t) => {
  const line = follow(t, 'tool find_order into order: Wait.\nend {{order}}.', { tools })
  t.same(line(opened), ['What is the number of your order?'])
  t.match(expectedOf(line.setting.script, line.state()).slot, { kind: 'digits', min: 4, max: 4 })
  t.match(line(heard(null)), [/^Sorry, I did not understand that\. What is the number/])
  t.same(line(value('0427', '0 4 2 7')), ['I heard 0 4 2 7. Is that right?'])
  t.same(line(heard('yes')), ['number=0427', 'What is the express? Whether it is in a hurry.'])
  t.same(line(heard(1)), [
    'express=false',
    'call tool-1 external__find_order {"number":"0427","express":false}',
    'Wait.',
  ])
  line(done('tool-1', { result: 'on its way' }))
  t.same(line(played), ['on its way.', 'finish null'])
})

test('the schema of a tool tells what is asked: choices, numbers, days, times, or any words', async (t) => {
  const slotFor = (property: object): string => {
    const tool = { name: 'x', description: '', inputSchema: schema({ a: property }) }
    const line = follow(t, 'tool x: Wait.\nend Bye.', { tools: [tool] })
    const [said] = line(opened)
    const { slot } = expectedOf(line.setting.script, line.state())
    return slot.kind === 'none' ? (said ?? '') : JSON.stringify(slot)
  }
  t.match(slotFor({ type: 'string', enum: ['tea', 'fruit_juice'] }), '"name":"fruit juice"')
  t.equal(slotFor({ type: 'string', enum: ['xyzzy'] }), '{"kind":"free"}')
  t.equal(slotFor({ type: 'integer', minimum: 1, maximum: 8 }), '{"kind":"number","min":1,"max":8}')
  t.equal(slotFor({ type: 'string', format: 'date' }), '{"kind":"date"}')
  t.equal(slotFor({ type: 'string', format: 'time' }), '{"kind":"time"}')
  t.equal(slotFor({ type: 'string' }), '{"kind":"free"}')
  t.equal(slotFor({ type: ['null', 'integer'], minimum: 1.5, maximum: 7.5 }), '{"kind":"number","min":2,"max":7}')
  t.equal(slotFor({ type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 5 }), '{"kind":"number","min":1,"max":4}')
  for (const nobody of [{ minimum: 20_000 }, { maximum: -1 }, { minimum: 5, maximum: 4 }])
    t.match(slotFor({ type: 'integer', ...nobody }), /^I am sorry, I cannot do that/, 'no number that can be said')
  for (const odd of [{}, { type: 7 }, { type: [] }, { type: ['string', 'object'] }, { anyOf: [] }, { enum: [1] }])
    t.match(slotFor(odd), /^I am sorry, I cannot do that/)
  t.match(slotFor({ type: 'array' }), /^I am sorry, I cannot do that on this call/, 'a list cannot be asked')
})

test('a caller who speaks while a tool runs has it canceled, and the script goes on as after an error', async (t) => {
  const begin = () => {
    const line = follow(t, orders, { tools })
    line(opened)
    line(value('0427'))
    line(played)
    return line
  }
  t.same(begin()(heard(null)), ['cancel tool-1', 'I cannot find order 0427.'])
  t.same(begin()(heard('stop')), ['cancel tool-1', 'All right, I have left that. I cannot find order 0427.'])
  t.same(begin()(heard('hello')), ['One moment, please.'])
  t.same(begin()(heard('goodbye')), ['cancel tool-1', 'Goodbye.', 'finish null'])
  const line = begin()
  line(heard(null))
  t.same(line(done('tool-1', {})), [], 'nobody waits for the result any more')
})

test('a transfer says its words and passes the caller on; whoever wants a person is passed on to the same', async (t) => {
  const text = 'ask well (yes/no): Are you well?\nif well is no: transfer Front desk: I put you through.\nend Bye.'
  const line = follow(t, text, { tools })
  line(opened)
  t.same(line(heard(1)), ['well=false', 'call tool-1 call__transfer {"to":"Front desk"}', 'I put you through.'])
  t.same(line(done('tool-1', {})), [])
  t.same(line(played), [])
  t.same(line(heard(null)), [], 'who is being passed on is not answered')
  t.same(line(silence), ['I am sorry, nobody has taken the call. Bye.', 'finish null'])

  const person = follow(t, text, { tools })
  person(opened)
  t.same(person(heard('person')), [
    'call tool-1 call__transfer {"to":"Front desk"}',
    'One moment, I will put you through.',
  ])
  person(played)
  t.same(person(broken('tool-1')), ['I am sorry, I cannot put you through now. Are you well?'])
  const nobody = follow(t, text)
  nobody(opened)
  t.match(nobody(heard('person')), [/^I am an automated voice, and I cannot put you through/])
})

const passages = {
  passages: [
    {
      text: 'The restaurant opens at five. Dogs are welcome outside. We have twelve tables.',
      title: 'House',
      score: 1,
    },
  ],
}

test('with knowledge on, a question of the caller is looked up and the best sentence is said', async (t) => {
  const text = 'knowledge on\nask table (yes/no): Would you like a table?\nend Bye.'
  const line = follow(t, text, { tools })
  line(opened)
  t.match(expectedOf(line.setting.script, line.state()), { dictate: true })
  t.same(line(free('are dogs welcome')), [
    'call tool-1 knowledge_base__search {"query":"are dogs welcome"}',
    'Let me look that up.',
  ])
  line(played)
  t.same(line(done('tool-1', passages)), ['Dogs are welcome outside. Would you like a table?'])
  line(free('do you sell bicycles'))
  line(played)
  t.same(line(done('tool-2', passages)), ['I am sorry, I do not know that. Would you like a table?'])
  line(free('when do you open'))
  line(played)
  t.same(line(broken('tool-3')), ['I am sorry, I do not know that. Would you like a table?'])
  const off = follow(t, text.replace('on', 'off'), { tools })
  off(opened)
  t.match(off(free('are dogs welcome')), [/^Sorry, I did not understand that/])
})

test('over a line too a question is looked up, and the next line follows', async (t) => {
  const line = follow(t, 'knowledge on\nsay Welcome.\nsay We are open.', { tools })
  line(opened)
  line(free('are dogs welcome'))
  line(played)
  t.same(line(done('tool-1', passages)), ['Dogs are welcome outside. We are open.'])
})

test('words for an answering machine are kept apart from the talk', async (t) => {
  const line = follow(t, 'say Hello.\nvoicemail: This is **the clinic**,\n  please call us back.\nend Bye.')
  t.same(line(opened), ['Hello.'])
  t.same(line(played), ['Bye.', 'finish null'])
  const leaves = (script: string | null, context: string | null = null) =>
    voicemailMessageOf({ ...callConfig(), script, context, customer: { firstName: 'Ada' } as never })
  const message = 'voicemail: This is **the clinic**,\n  please call back {{customer.firstName}} by {{context.day}}.'
  t.equal(
    leaves(`say Hello.\n${message}\nend Bye.`, '{"day":"Monday"}'),
    'This is the clinic, please call back Ada by Monday.',
  )
  for (const none of [null, 'say Hello.', 'Leave a voicemail: no.']) t.equal(leaves(none), null)
})

test('no id of a tool comes twice, however often the call is gone on with', async (t) => {
  const text = 'tool find_order (number: "1234", express: true) into a: Wait.\n'.repeat(3)
  const first = follow(t, text, { tools, idPrefix: 'a-' })
  first(opened)
  first(played)
  const reopened = follow(t, text, { tools, idPrefix: 'b-', from: first.state() })
  t.same(reopened(opened), ['One moment, please.'], 'the tool is not called again')
  reopened(played)
  t.match(reopened(done('a-tool-1', { result: 1 })), [/^call b-tool-2 /, 'Wait.'], 'the old result is news')
  const again = follow(t, text, { tools, idPrefix: 'c-', from: reopened.state() })
  again(opened)
  again(played)
  t.match(again(silence), ['cancel b-tool-2', /^call c-tool-3 /, 'I am sorry, that did not work. Wait.'])
})

test('a session that goes on after a line that was heard says nothing twice', async (t) => {
  const quiet = { type: 'opened', isOwed: false } as const
  const at = (events: DialogueEvent[]) => {
    const line = follow(t, drinks)
    events.forEach(line)
    return follow(t, drinks, { from: line.state() })
  }
  t.same(at([opened])(quiet), ['Would you like tea?'], 'the line was heard, the next one follows')
  const listening = at([opened, played])
  t.same(listening(quiet), [])
  t.equal(listening.state().phase, 'listening')
  t.same(at([opened, played, played])(quiet), [])
  t.same(at([])(quiet), ['Welcome.'], 'what was never begun begins')
  t.same(at([opened, played, heard(0)])(opened), ['finish send_tea'])
})

test('a call that another engine began goes on with the first question', async (t) => {
  const { script } = parse(drinks)
  const began = stateAfter({ script, values: {} }, [{ role: 'agent', text: 'Hi there.' }])
  t.match(advance({ script, values: {} }, began, opened).actions, [{ type: 'say', text: 'Would you like tea?' }])
  const told = parse('say One.\nsay Two.').script
  const rest = stateAfter({ script: told, values: {} }, [{ role: 'agent', text: 'One.' }])
  t.match(advance({ script: told, values: {} }, rest, opened).actions, [{ type: 'say', text: 'Two.' }])
})

test('keys of a script that are names of JavaScript are keys like others', async (t) => {
  const line = follow(t, 'ask constructor (yes/no): Well?\nif constructor is yes: say Good.\nend {{constructor}}.')
  line(opened)
  t.same(line(heard(0)), ['constructor=true', 'Good.'])
  t.same(line(played), ['yes.', 'finish null'])
})

test('no text takes long to be looked at, whatever stands in it', (t) => {
  const long = (part: string) => part.repeat(400_000 / part.length)
  const texts = [
    `if ${long('is-')}`,
    `if ${long('a is ')}`,
    `ask ${long('x(')}`,
    `tool ${long('a.')}`,
    `transfer ${long('to ')}`,
    `on ${long('is')}`,
    `say ${long('*a ')}`,
    long('{{ '),
    long('end\n'),
    long('if a:\n'),
  ]
  for (const text of texts) {
    const began = performance.now()
    if (hasStatements(text)) checkScript(text, { vocabulary })
    t.ok(performance.now() - began < 10_000, `${text.slice(0, 20)}… took ${performance.now() - began} ms`)
  }
  t.end()
})

test('a huge result of a tool is remembered in part', async (t) => {
  const line = follow(t, orders, { tools })
  line(opened)
  line(value('0427'))
  line(done('tool-1', { result: { state: 'late', rows: Array.from({ length: 5000 }, () => 'x'.repeat(5000)) } }))
  t.ok(JSON.stringify(line.state()).length < 400_000)
  t.same(line(played), ['It is late. It comes on.'])
})

const everything = `knowledge on
intent refund: my money back / refund
on refund: say We pay back.
on refund: tool find_order into paid: Looking.
on refund: ask sure (yes/no): Sure?
say Welcome.
ask order (digits 3-5): Which order?
  no match: Three to five digits.
tool find_order (number: {{order}}) into found: One moment.
if found is error: say It is lost.
if found.state is late: transfer Front desk: I put you through.
ask day (date, confirm): Which day?
ask at (time): When?
ask n (number 1-8, tries 2): How many?
ask why (free): Why?
Are you well?
end (done): Bye {{why}}.`

test('whatever happens in whatever order: no exception, no silence, a state to go on from, and one id per tool call', async (t) => {
  const { script, errors } = parse(everything, undefined, tools)
  t.same(errors, [])
  const values: Meaning[] = [
    { kind: 'value', value: '0427', spoken: '0 4 2 7' },
    { kind: 'value', value: 3, spoken: 'three' },
    { kind: 'value', value: '2027-05-03', spoken: 'May 3' },
    { kind: 'value', value: '15:30', spoken: 'half past three' },
    { kind: 'free', text: 'are dogs welcome' },
    { kind: 'intent', index: 0 },
    { kind: 'intent', index: 7 },
  ]
  const random = createRandom(5)
  const results = [{}, passages, { result: { state: 'late' } }, { result: 'x' }]
  const eventOf = (ids: readonly string[]): DialogueEvent => {
    const id = random.next() < 0.8 ? (ids.at(-1) ?? '') : random.pick(['', ...ids])
    const wild: DialogueEvent[] = [
      played,
      played,
      silence,
      { type: 'interrupted' },
      heard(random.below(4)),
      heard(null),
      heard(random.pick<Request>(['repeat', 'help', 'stop', 'person', 'yes', 'no', 'hello'])),
      { type: 'heard', meaning: random.pick(values), confidence: random.next() },
      { type: 'dtmf', digit: random.pick('0123456789*#A'.split('')) },
      random.next() < 0.7 ? done(id, random.pick(results)) : broken(id),
      ...(random.next() < 0.05 ? [heard('goodbye')] : []),
    ]
    return random.pick(wild)
  }
  let ended = 0
  for (let run = 0; run < 600; run++) {
    let session = 0
    let state = advance({ script, values: {}, idPrefix: '0-' }, initialState, opened).state
    const ids: string[] = []
    const open = new Set<string>()
    for (let step = 0; step < 300 && state.phase !== 'ended'; step++) {
      const isReopened = random.next() < 0.03
      const event: DialogueEvent = isReopened ? { type: 'opened', isOwed: random.next() < 0.5 } : eventOf(ids)
      if (isReopened) session++
      const { actions, state: next } = advance({ script, values: {}, idPrefix: `${session}-` }, state, event)
      for (const action of actions) {
        if (action.type === 'say' && action.text.trim() === '') t.fail('said nothing')
        if (action.type === 'cancel_tool' && !open.delete(action.id)) t.fail('canceled what does not run')
        if (action.type !== 'call_tool') continue
        if (ids.includes(action.id)) t.fail(`${action.id} twice`)
        ids.push(action.id)
        open.add(action.id)
      }
      if (event.type === 'tool_result') open.delete(event.id)
      if (next.call?.outcome !== 'pending' && open.size > 0) t.fail('a tool runs that nobody waits for')
      const saysNothing = !actions.some((action) => action.type === 'say' || action.type === 'finish')
      if (saysNothing && next.phase === 'speaking' && state.phase !== 'speaking') t.fail('speaks without words')
      const again = stateOf(JSON.parse(JSON.stringify(next)), script)
      if (!isDeepStrictEqual(again, next)) t.fail(`not to go on from: ${JSON.stringify(next)}`)
      state = next
    }
    if (state.phase === 'ended') ended++
  }
  t.ok(ended > 500, `${ended} of 600 ended`)
})

/** The pure parts of the cascade: server-sent events, chunks of a chat, sentences, what was heard, and what the model is told. */
import { test } from 'tap'
import { isBackchannel, looksUnfinished } from '../../voice/engines/cascade/caller-words.ts'
import { createChatReply } from '../../voice/engines/cascade/chat-reply.ts'
import { createEventStream } from '../../voice/engines/cascade/event-stream.ts'
import { createHistory } from '../../voice/engines/cascade/history.ts'
import { createWordFilter } from '../../voice/engines/cascade/reasoning.ts'
import { createSentenceCutter, piecesOf } from '../../voice/engines/cascade/sentence-cutter.ts'
import { createSoundReader } from '../../voice/engines/cascade/sound-format.ts'
import { speakable } from '../../voice/engines/cascade/speakable.ts'
import { createSpoken, heardPart } from '../../voice/engines/cascade/spoken.ts'
import { bytesOf } from '../../model/frame.ts'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { createRandom, type Random } from '../fake/random.ts'

function* cutAnywhere(bytes: Uint8Array, random: Random, longest: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length;) {
    const size = random.below(longest + 1)
    yield bytes.subarray(at, at + size)
    at += size
  }
}

const eventsOf = (pieces: Iterable<Uint8Array>): string[] => {
  const stream = createEventStream()
  return [...pieces].flatMap((piece) => stream.push(piece))
}

test('server-sent events are read as the standard has them', (t) => {
  const read = (text: string) => eventsOf([Buffer.from(text)])
  t.same(read('data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n'), ['a', 'b', 'c', 'd'], 'any end of a line')
  t.same(read('data:a\n\ndata:  b\n\ndata\n\n'), ['a', ' b', ''], 'one space is not part of it')
  t.same(read('data: a\ndata: b\n\n'), ['a\nb'], 'several lines are one event')
  t.same(read(': a comment\nevent: x\nid: 7\nretry: 9\nfoo: bar\ndata: a\n\n'), ['a'], 'other fields do not count')
  t.same(read('\uFEFFdata: a\n\n'), ['a'], 'a byte order mark is left out')
  t.same(read('data: a\n\ndata: not complete\n'), ['a'], 'an event without its empty line is none')
  t.same(read('\n\n\nevent: x\n\n'), [], 'an event without data is none')
  t.end()
})

test('however the bytes are cut, the events are the same', (t) => {
  const ends = ['\n', '\r\n', '\r']
  let events = 0
  for (let seed = 0; seed < 300; seed++) {
    const random = createRandom(seed)
    const text = Array.from({ length: 1 + random.below(8) }, () => {
      const line = random.pick(['data: Grüße, 世界 😀', 'data:x', ': ping', 'data: [DONE]', 'event: y', ''])
      const end = random.pick(ends)
      // A lone CR before a LF would be one end of a line and not two.
      return line + end + (random.below(2) === 0 ? `data: z${end}${end}` : end)
    }).join('data: é\n\n')
    const bytes = Buffer.from(text)
    const whole = eventsOf([bytes])
    events += whole.length
    for (const longest of [1, 3, 50])
      t.same(eventsOf(cutAnywhere(bytes, random, longest)), whole, `seed ${seed}, pieces of ${longest}`)
  }
  t.ok(events > 1000)
  t.end()
})

test('garbage gives no error, and no more memory than an event may have', (t) => {
  for (let seed = 0; seed < 200; seed++) {
    const random = createRandom(seed)
    const bytes = Uint8Array.from({ length: 500 }, () =>
      random.below(3) === 0 ? random.pick([10, 13, 58, 100, 32]) : random.below(256),
    )
    const stream = createEventStream()
    const reply = createChatReply()
    for (const piece of cutAnywhere(bytes, random, 40)) for (const event of stream.push(piece)) reply.take(event)
    reply.take(
      `{"choices":[{"delta":${random.pick(['7', '"x"', '[1]', '{"content":7,"tool_calls":[null,7,{"index":"x"}]}'])}}]}`,
    )
    t.notOk(reply.isComplete())
    t.same(reply.calls(), [])
  }
  const endless = createEventStream(1000)
  for (let count = 0; count < 100; count++) t.same(endless.push(Buffer.from('data: '.padEnd(100, 'x'))), [])
  t.ok(endless.tooLong(), 'a line that does not end')
  const manyLines = createEventStream(1000)
  for (let count = 0; count < 100; count++) manyLines.push(Buffer.from('data: xxxxxxxxxxxxxxxxxxxxxxxxxxx\n'))
  t.ok(manyLines.tooLong(), 'an event that does not end')
  t.same(manyLines.push(Buffer.from('\n\ndata: a\n\n')), [])
  t.end()
})

const chunk = (delta: object, finish: string | null = null) =>
  JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })

test('chunks become text and calls of tools, whose arguments come in pieces and in any order', (t) => {
  const reply = createChatReply()
  const call = (index: number, id?: string, name?: string, written?: string) =>
    reply.take(
      chunk({ tool_calls: [{ index, ...(id && { id }), function: { ...(name && { name }), arguments: written } }] }),
    )
  t.equal(reply.take(chunk({ role: 'assistant', content: '' })), '')
  t.equal(reply.take(chunk({ content: 'Hel' })), 'Hel')
  t.equal(reply.take(chunk({ content: null })), '')
  call(0, 'a', 'lookup', '')
  call(1, 'b', 'note_value', '{"key"')
  call(0, undefined, undefined, '{"key":')
  call(1, undefined, undefined, ':"x","value":[1,2]}')
  call(0, undefined, undefined, '"blue"}')
  t.notOk(reply.isComplete())
  t.equal(reply.take(chunk({}, 'tool_calls')), '')
  t.ok(reply.isComplete())
  t.equal(reply.take('{"choices":[],"usage":{"total_tokens":9}}'), '')
  t.same(reply.calls(), [
    { id: 'a', name: 'lookup', arguments: { key: 'blue' } },
    { id: 'b', name: 'note_value', arguments: { key: 'x', value: [1, 2] } },
  ])
  t.end()
})

test('calls that share an index, have none, no id, or arguments that are no object are told apart', (t) => {
  const reply = createChatReply()
  const whole = (id: string | undefined, name: string, written: string) => ({
    index: 0,
    id,
    function: { name, arguments: written },
  })
  reply.take(chunk({ tool_calls: [whole('a', 'x', '{}'), whole('b', 'y', '[1]')] }))
  reply.take(chunk({ tool_calls: [{ function: { name: 'z', arguments: '' } }] }))
  reply.take(
    chunk({ tool_calls: [{ index: 5, id: 'd', function: { name: 'w', arguments: `{"a":"${'x'.repeat(70_000)}"}` } }] }),
  )
  reply.take('[DONE]')
  t.ok(reply.isComplete())
  t.same(reply.calls(), [
    { id: 'a', name: 'x', arguments: {} },
    { id: 'b', name: 'y', arguments: null },
    { id: null, name: 'z', arguments: {} },
    { id: 'd', name: 'w', arguments: null },
  ])
  t.end()
})

test('what is no chunk loses the reply, and an error of the endpoint is told by its code', (t) => {
  t.equal(createChatReply().take('{"choices":['), null)
  t.equal(createChatReply().take('7'), null)
  const failing = createChatReply()
  t.equal(failing.take('{"error":{"message":"You said: my secret","code":"server_error"}}'), null)
  t.equal(failing.error()?.code, 'server_error')
  const talkative = createChatReply()
  talkative.take('{"error":{"code":"what you said was: hello"}}')
  t.equal(talkative.error()?.code, 'error', 'no words of it')
  t.end()
})

test('calls without an index or an id are told apart, and an object is as good as its text', (t) => {
  const read = (...calls: readonly object[]) => {
    const reply = createChatReply()
    for (const call of calls) reply.take(chunk({ tool_calls: [call] }))
    return reply.calls().map(({ name, arguments: given }) => [name, given])
  }
  const call = (name: string, written: unknown) => ({ function: { name, arguments: written } })
  t.same(read(call('x', '{"a":1}'), call('x', '{"a":2}')), [
    ['x', { a: 1 }],
    ['x', { a: 2 }],
  ])
  t.same(read({ index: 0, ...call('x', '{"a":1}') }, { index: 0, ...call('y', '{"a":2}') }), [
    ['x', { a: 1 }],
    ['y', { a: 2 }],
  ])
  const piece = { function: { arguments: '"a":1}' } }
  t.same(read({ index: 0, id: 'a', ...call('x', '{') }, piece), [['x', { a: 1 }]], 'a piece without an index')
  t.same(read(call('x', '{'), call('x', '"a":1}')), [['x', { a: 1 }]], 'a name that is said again')
  t.same(read({ index: 0, id: 'a', ...call('x', { a: 1 }) }), [['x', { a: 1 }]])
  t.same(read({ index: 0, id: 'a', ...call('x', `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`) }), [['x', null]])
  t.same(read({ index: 0, id: 'a', ...call('x', '{"a":"\\u0000"}') }), [['x', null]], 'what nobody can store')
  t.end()
})

test('a reply in one piece is one too, and of a content in parts only the text counts', (t) => {
  const reply = createChatReply()
  const message = {
    content: [{ type: 'thinking', thinking: [] }, { type: 'text', text: 'Nine.' }, 7],
    reasoning_content: 'They ask for the hours.',
    tool_calls: [{ id: 'a', function: { name: 'x', arguments: '{}' } }],
  }
  t.equal(reply.take(JSON.stringify({ choices: [{ message, finish_reason: 'length' }] })), 'Nine.')
  t.ok(reply.isComplete())
  t.ok(reply.isCut())
  t.same(reply.calls(), [{ id: 'a', name: 'x', arguments: {} }])
  t.end()
})

test('errors of any endpoint are understood, and no word of them is repeated', (t) => {
  const read = (error: object) => {
    const reply = createChatReply()
    t.equal(reply.take(JSON.stringify(error)), null)
    return reply.error()
  }
  const vllm = {
    object: 'error',
    message: 'The maximum context length is 8192 tokens',
    type: 'BadRequestError',
    code: 400,
  }
  t.match(read(vllm), { code: 'BadRequestError', status: 400, isTooLong: true })
  t.match(read({ error: vllm }), { code: 'BadRequestError', status: 400, isTooLong: true })
  t.match(read({ error: { code: 500, message: 'rpc error', type: '' } }), { code: '500', status: 500 })
  t.match(read({ error: 'model is loading' }), { code: 'error', status: null, isTooLong: false })
  t.match(read({ error: { code: 'sk-1234567890abc', type: 'x y' } }), { code: 'error' })
  // As FastAPI tells them.
  t.match(read({ detail: 'Model `a` not found' }), { code: 'error', lacksModel: true })
  const invalid = { type: 'missing', loc: ['body', 'messages', 0, 'content'], msg: 'Field required' }
  t.match(read({ detail: [invalid] }), { code: 'missing', param: 'content' })
  t.match(read({ detail: { error: { code: 'context_length_exceeded' } } }), { code: 'context_length_exceeded' })
  t.match(read({ detail: [] }), { code: 'error', param: null })
  const thinking = "Function tools with reasoning_effort are not supported: set reasoning_effort to 'none'."
  t.match(read({ detail: thinking }), { param: 'reasoning_effort' })
  const answer = createChatReply()
  t.equal(answer.take('{"choices":[],"detail":"of an answer"}'), '')
  t.equal(answer.error(), null)
  t.end()
})

test('thoughts and written-out calls are no words, however the tags were cut', (t) => {
  const whole =
    '<think>\nThey ask < 3 things.</thinking> Hm.</think>\n\nNine <b>to</b> five. a < b<tool_call>{"name":"x"}</tool_call> Bye <'
  for (const longest of [1, 3, 200]) {
    const filter = createWordFilter(false)
    const random = createRandom(longest)
    let words = ''
    for (let at = 0; at < whole.length;) {
      const size = 1 + random.below(longest)
      words += filter.push(whole.slice(at, at + size))
      at += size
    }
    t.equal(words + filter.end(), '\n\nNine <b>to</b> five. a < b Bye <')
    t.notOk(filter.beganInside())
  }
  const endless = createWordFilter(false)
  t.equal(endless.push('Well. <think>and so on') + endless.end(), 'Well. ', 'thoughts that do not end')
  t.end()
})

test('thoughts whose beginning is not told are known by their end, and from then on', (t) => {
  const first = createWordFilter(false)
  t.equal(first.push('They ask.</think>Nine.'), 'They ask.Nine.')
  t.ok(first.beganInside())
  const next = createWordFilter(true)
  t.equal(next.push('They ask.'), '')
  t.equal(next.push('</thi'), '')
  t.equal(next.push('nk>Nine.') + next.end(), 'Nine.')
  const thoughtless = createWordFilter(true)
  t.equal(thoughtless.push('Nine to five.') + thoughtless.end(), 'Nine to five.', 'it was words after all')
  const tagged = createWordFilter(true)
  t.equal(tagged.push('<think>They ask.</think>Nine.') + tagged.end(), 'Nine.')
  t.end()
})

test('what is said has no marks of Markdown, no tags and no pictures in it', (t) => {
  const said: readonly (readonly [string, string | null])[] = [
    ['**Nine** to *five*, _always_. ', 'Nine to five, always. '],
    ['## Opening hours\n', 'Opening hours '],
    ['\n- Monday: `9–17`\n', 'Monday: 9–17 '],
    ['> * quoted', 'quoted'],
    ['See [our page](https://example.org/a?b=c_d) or ![a map](x.png).', 'See our page or a map.'],
    ['See [our page](https://exam', 'See our page'],
    ['Great 😀👍🏽! 🇩🇪 Yes ❤️ 👨‍👩‍👧.', 'Great! Yes.'],
    ['1️⃣ First.', '1 First.'],
    ['Hello<br/>you, <strong>dear</strong>.', 'Hello you, dear .'],
    ['3 * 4 is 12, -5 is cold, a_b is a name, ¿qué?', '3 * 4 is 12, -5 is cold, a_b is a name, ¿qué?'],
    ['a\0b\ud83d c', 'a b\ufffd c'],
    ['Ça va ? 少々お待ちください。', 'Ça va ? 少々お待ちください。'],
    ['🎉🎉', null],
    ['---\n', null],
  ]
  for (const [written, spoken] of said) t.equal(speakable(written), spoken, written)
  t.same(piecesOf('Look [here](https://a.org/b?c=d). Bye.', 'en'), ['Look [here](https://a.org/b?c=d). ', 'Bye.'])
  t.end()
})

const texts: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'en',
    'Sure! Dr. Smith is in. It costs 3.50 dollars. Wait... what? "Yes." OK.',
    ['Sure!', 'Dr. Smith is in.', 'It costs 3.50 dollars.', 'Wait... what?', '"Yes."', 'OK.'],
  ],
  [
    'de',
    'Am 3. Mai, z. B. Montag um 10 Uhr, hat Dr. Müller Zeit. Passt das? Ja.',
    ['Am 3. Mai, z. B. Montag um 10 Uhr, hat Dr. Müller Zeit.', 'Passt das?', 'Ja.'],
  ],
  [
    'fr',
    'Bonjour ! Comment allez-vous ? M. Dupont arrive. À bientôt.',
    ['Bonjour !', 'Comment allez-vous ?', 'M. Dupont arrive.', 'À bientôt.'],
  ],
  [
    'ja',
    'はい、わかりました。少々お待ちください。よろしいですか？',
    ['はい、わかりました。', '少々お待ちください。', 'よろしいですか？'],
  ],
  ['hi', 'नमस्ते। आप कैसे हैं?', ['नमस्ते।', 'आप कैसे हैं?']],
  ['ar', 'مرحبا. كيف حالك؟ شكرا.', ['مرحبا.', 'كيف حالك؟', 'شكرا.']],
  ['not a language!', 'One. Two.', ['One.', 'Two.']],
]

test('sentences of any language are cut where they end, and not at a title, an ordinal or an abbreviation', (t) => {
  for (const [language, text, sentences] of texts) {
    t.same(
      piecesOf(text, language).map((piece) => piece.trim()),
      sentences,
      language,
    )
    const cutter = createSentenceCutter(language)
    const streamed = [...(text.match(/./gsu) ?? []).flatMap((letter) => cutter.push(letter)), ...cutter.end()]
    t.equal(streamed.join(''), text, 'the pieces are the text')
  }
  t.end()
})

test('a sentence is there as soon as the next one begins', (t) => {
  const cutter = createSentenceCutter('en')
  t.same(cutter.push('Good morning'), [])
  t.same(cutter.push('.'), [], 'it may be the point of a number')
  t.same(cutter.push(' H'), ['Good morning. '])
  t.same(cutter.push('ow are you?'), [])
  t.same(cutter.end(), ['How are you?'])
  t.same(cutter.end(), [])
  t.same(piecesOf(' … \n — ', 'en'), [], 'nothing that could be said')
  t.end()
})

test('overlong sentences are cut at a comma, a space or anywhere, never within a character', (t) => {
  for (const text of ['あ'.repeat(700), '😀a'.repeat(400), `${'word '.repeat(30)}, `.repeat(5), 'x'.repeat(1000)]) {
    const cutter = createSentenceCutter('ja')
    const streamed = [...cutter.push(text.slice(0, 333)), ...cutter.push(text.slice(333)), ...cutter.end()]
    for (const pieces of [piecesOf(text, 'ja'), streamed]) {
      t.equal(pieces.join(''), text)
      t.ok(pieces.every((piece) => piece.length <= 300 && piece.isWellFormed()))
    }
  }
  t.end()
})

test('noises of listening are told from words, and an assent to a question is an answer', (t) => {
  for (const text of ['Mhm.', 'Uh-huh', 'mm-hmm', 'Hm, hm.', 'うん']) t.ok(isBackchannel(text, 'Shall we?'), text)
  for (const text of ['Okay.', 'Yes, yes.', 'Ja, genau', 'はい']) {
    t.ok(isBackchannel(text, 'We are open until six.'), text)
    t.notOk(isBackchannel(text, 'Shall we? '), `${text} to a question`)
  }
  for (const text of ['Stop.', 'No.', 'Yes, but not today.', 'Nein', '[unclear]', '', '違います'])
    t.notOk(isBackchannel(text, 'We are open until six.'), text)
  t.end()
})

test('who stops behind a comma or an "and" has more to say', (t) => {
  for (const text of [
    'I would like,',
    'A tea and',
    'Ich möchte einen Tee und',
    'My name is',
    'Um',
    'Well …',
    'Je voudrais euh',
  ])
    t.ok(looksUnfinished(text), text)
  for (const text of ['A tea.', 'Tea', 'Is it?', 'お茶をください。', 'Four five six', ''])
    t.notOk(looksUnfinished(text), text)
  t.end()
})

test('what the caller heard is told by the sentence, and within one by its share of the sound', (t) => {
  const spoken = createSpoken()
  const texts = ['', '']
  const hears = (index: number) => (heard: string) => void (texts[index] = heard)
  const item = spoken.item('a', hears(0))
  for (const sentence of ['One two. ', 'Three four five six. ']) {
    item.sentence(sentence)
    item.sound(1000, 0)
    item.complete()
  }
  spoken.item('b', hears(1)).sentence('Seven.')
  t.ok(spoken.isPlaying(1999))
  t.notOk(spoken.isPlaying(2000))
  t.equal(spoken.lastSentence(), 'Seven.')
  t.equal(spoken.cut({ itemId: 'c', playedMs: 5 }, 1500), null)
  t.same(spoken.cut({ itemId: 'a', playedMs: 1500 }, 1500), ['Three four five six. '])
  t.same(texts, ['One two. Three four', ''])
  t.notOk(spoken.isPlaying(1500))
  spoken.settle(true)
  t.equal(texts[0], 'One two.', 'the cut sentence will be said again')
  spoken.settle(true)
  t.equal(texts[0], 'One two.')
  t.end()
})

test('when nothing was heard, what was waiting is taken back and what had been played is not', (t) => {
  const spoken = createSpoken()
  const texts = ['', '']
  for (const index of texts.keys()) {
    const item = spoken.item(`item ${index}`, (heard) => void (texts[index] = heard))
    item.sentence('A sentence.')
    item.sound(500, index * 1000)
    item.complete()
  }
  t.same(spoken.cut(null, 1100), ['A sentence.'])
  spoken.settle(false)
  t.same(texts, ['A sentence.', ''])
  t.same(spoken.cut(null, 1200), [])
  t.equal(heardPart('日本語です', 0.5), '日本', 'letters where words are not parted')
  t.equal(heardPart('😀😀😀', 0.5), '😀')
  t.equal(heardPart('one two three', 0.6), 'one two')
  t.equal(heardPart('one two', 0), '')
  t.end()
})

test('the model is told a talk that any model takes: the user first, nobody twice, answers right behind calls', (t) => {
  const history = createHistory([{ role: 'agent', text: 'Hello.' }])
  t.same(history.messages('Be kind.', 'Ask something.'), [
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: '[The call is connected.]' },
    { role: 'assistant', content: 'Hello.' },
    { role: 'user', content: '[Instruction, not said by the caller: Ask something.]' },
  ])
  history.caller('What about')
  history.caller('blue?')
  history.agent()('Let me see.')
  history.calls([
    { id: 'ours-1', wireId: 'w1', name: 'lookup', arguments: { key: 'blue' } },
    { id: 'ours-2', wireId: 'w2', name: 'lookup', arguments: null },
  ])
  t.equal(history.answer('ours-1', { result: 7 }, true), 'waiting')
  t.equal(history.answer('ours-1', { result: 8 }, true), 'waiting', 'a second answer does not count')
  t.equal(history.answer('ours-9', {}, true), 'unknown')
  t.same(history.pending(), ['ours-2'])
  history.agent()('One moment.')
  t.same(history.messages('x', null).slice(3), [
    { role: 'user', content: 'What about\nblue?' },
    {
      role: 'assistant',
      content: 'Let me see.',
      tool_calls: [
        { id: 'w1', type: 'function', function: { name: 'lookup', arguments: '{"key":"blue"}' } },
        { id: 'w2', type: 'function', function: { name: 'lookup', arguments: '{}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'w1', content: '{"result":7}' },
    { role: 'tool', tool_call_id: 'w2', content: '{"status":"running"}' },
    { role: 'assistant', content: 'One moment.' },
    { role: 'user', content: '[Instruction, not said by the caller: Go on.]' },
  ])
  t.equal(history.answer('ours-2', { result: 9 }, false), 'due', 'one of them is to be spoken about')
  t.same(
    history.messages('x', null).map(({ role }) => role),
    ['system', 'user', 'assistant', 'user', 'assistant', 'tool', 'tool'],
    'results come after what was said without them',
  )
  t.end()
})

test('what was said before and is found late stands behind what was known of that, and in front of what was said since', (t) => {
  const history = createHistory([{ role: 'user', text: 'one' }])
  history.caller('four')
  history.recall({ role: 'agent', text: 'two' })
  history.agent()('five')
  history.recall({ role: 'user', text: 'three' })
  t.same(
    history
      .messages('x', null)
      .slice(1, -1)
      .map(({ content }) => content),
    ['one', 'two', 'three\nfour', 'five'],
  )
  const fresh = createHistory([])
  fresh.caller('six')
  fresh.recall({ role: 'user', text: 'five' })
  t.match(fresh.messages('x', null).at(-1), { content: 'five\nsix' })
  t.notOk(fresh.isDue())
  t.end()
})

test('a long talk is forgotten from its beginning, and calls with their answers', (t) => {
  const history = createHistory([])
  for (let turn = 0; turn < 400; turn++) {
    history.caller(`Question ${turn}: ${'x'.repeat(200)}`)
    history.agent()('An answer.')
    history.calls([{ id: `id ${turn}`, wireId: `id ${turn}`, name: 'lookup', arguments: {} }])
    history.answer(`id ${turn}`, { result: turn }, true)
  }
  const messages = history.messages('Be kind.', null)
  t.ok(JSON.stringify(messages).length < 120_000)
  t.same(messages[0], { role: 'system', content: 'Be kind.' })
  t.equal(messages[1]?.role, 'user')
  t.match(JSON.stringify(messages), 'Question 399')
  t.notMatch(JSON.stringify(messages), 'Question 10:')
  const answered = messages.filter(({ role }) => role === 'tool').length
  t.equal(answered, messages.filter((message) => 'tool_calls' in message).length)
  t.end()
})

const samples = (count: number) =>
  Int16Array.from({ length: count }, (_, index) => Math.round(8000 * Math.sin(index / 9)))

test('sound is whole samples of the line, whatever is around it and however it was cut', (t) => {
  const sound = bytesOf(samples(2400))
  const wav = (rateHz: number, channels: 1 | 2, ...more: Uint8Array[]) =>
    Buffer.concat([wavHeaderOf({ rateHz, channels }, sound.length), sound, ...more])
  const read = (bytes: Uint8Array, contentType: string, longest: number) => {
    const reader = createSoundReader(contentType, 24_000)
    const pieces = [...cutAnywhere(bytes, createRandom(longest), longest)].map((piece) => reader.push(piece))
    t.ok(pieces.every((piece) => piece.length % 2 === 0))
    return Buffer.concat(pieces)
  }
  for (const longest of [1, 7, 10_000]) {
    t.same(read(sound, 'audio/pcm', longest), Buffer.from(sound))
    t.same(read(wav(24_000, 1), 'audio/wav', longest), Buffer.from(sound), 'a WAV file')
    t.same(
      read(wav(24_000, 1, Buffer.from('LIST....')), '', longest),
      Buffer.from(sound),
      'what comes behind is no sound',
    )
    t.equal(read(wav(48_000, 1), 'audio/x-wav', longest).length, sound.length / 2, 'another rate')
    t.equal(read(wav(24_000, 2), 'audio/wav', longest).length, sound.length / 2, 'two channels')
    t.equal(read(sound, 'audio/pcm;rate=12000', longest).length, sound.length * 2)
    const streamed = wav(24_000, 1)
    streamed.writeUInt32LE(0xffff_ffff, 40)
    t.same(read(streamed, 'audio/wav', longest), Buffer.from(sound), 'a size that nobody knew')
  }
  t.end()
})

test('what would be heard as noise is refused', (t) => {
  const refused = (bytes: Uint8Array, contentType: string, message: RegExp) =>
    t.throws(() => createSoundReader(contentType, 24_000).push(bytes), { message, isPassing: false })
  const header = Buffer.from(wavHeaderOf({ rateHz: 24_000, channels: 1 }, 0))
  const bits = Buffer.from(header)
  bits.writeUInt16LE(24, 34)
  refused(bits, 'audio/wav', /not 16-bit PCM/)
  refused(Buffer.concat([header.subarray(0, 12), header.subarray(36)]), 'audio/wav', /not 16-bit PCM/)
  refused(Buffer.concat([header.subarray(0, 36), Buffer.alloc(20_000)]), 'audio/wav', /without sound/)
  refused(Buffer.from(wavHeaderOf({ rateHz: 3, channels: 1 }, 0)), 'audio/wav', /at 3 Hz/)
  refused(Buffer.alloc(20), 'audio/wav', /that is none/)
  refused(Buffer.from('ID3'.padEnd(20)), 'application/octet-stream', /compressed/)
  refused(Buffer.alloc(20), 'audio/mpeg', /audio\/mpeg, not pcm/)
  t.end()
})

const told = (history: ReturnType<typeof createHistory>) =>
  history
    .messages('x', null)
    .slice(1)
    .map(({ role, content }) => [role, content])

test('a session that goes on knows the tools of the one before, each in its place', (t) => {
  const first = createHistory([])
  first.caller('Yes.')
  first.calls([{ id: 'a', wireId: 'w', name: 'lookup', arguments: { key: 'blue' } }])
  first.answer('a', { result: 7 }, true)
  first.agent()('It is seven. Shall I book it?')
  first.caller('Yes.')
  first.agent()('One moment.')
  first.calls([{ id: 'b', wireId: 'w', name: 'book', arguments: {} }])
  t.notOk(first.isDue(), 'there is no result yet')
  first.news('[News.]')
  t.ok(first.isDue())
  const memory: unknown = JSON.parse(JSON.stringify(first.memory()))
  const said = [
    { role: 'user', text: 'Yes.' },
    { role: 'agent', text: 'It is seven. Shall' },
    { role: 'user', text: 'Yes.' },
    { role: 'agent', text: 'One moment.' },
  ] as const
  const next = createHistory(said, memory as never)
  t.same(told(next), [
    ['user', 'Yes.'],
    ['assistant', null],
    ['tool', '{"result":7}'],
    ['assistant', 'It is seven. Shall'],
    ['user', 'Yes.'],
    ['assistant', 'One moment.'],
    ['tool', '{"status":"running"}'],
    ['user', '[News.]'],
  ])
  t.same(next.pending(), [], 'whoever called it waits for it')
  t.equal(next.answer('a', { result: 8 }, true), 'waiting', 'it has a result')
  t.equal(next.answer('b', { ok: true }, true), 'due')
  t.ok(next.isDue())
  t.ok(createHistory(said, next.memory()).isDue(), 'still, when that session dies too')
  t.notOk(createHistory([...said, { role: 'agent', text: 'It is booked.' }], next.memory()).isDue())
  t.end()
})

test('memory is bounded, and what is none is forgotten', (t) => {
  const history = createHistory([])
  t.equal(history.memory(), null)
  for (let turn = 0; turn < 100; turn++) {
    history.caller(`Question ${turn}`)
    history.calls([{ id: `id ${turn}`, wireId: 'w', name: 'lookup', arguments: { key: '😀'.repeat(3_000) } }])
    history.answer(`id ${turn}`, { result: '😀'.repeat(20_000) }, true)
  }
  const memory = history.memory()
  const text = JSON.stringify(memory)
  t.ok(text.length < 20_000)
  t.match(text, 'id 99')
  t.notMatch(text, '\\ud', 'nobody could store half a character')
  t.ok(JSON.stringify(history.messages('x', null)).length < 120_000)
  for (const other of [7, 'x', [], {}, { besides: 7 }, { besides: [{ calls: [] }] }, { besides: [null] }])
    t.same(told(createHistory([{ role: 'user', text: 'Hi.' }], other)), [['user', 'Hi.']])
  t.end()
})

test('names of calls that an endpoint gives twice are told apart', (t) => {
  const history = createHistory([])
  for (const id of ['a', 'b']) {
    history.calls([{ id, wireId: 'call_0', name: 'lookup', arguments: {} }])
    history.answer(id, {}, true)
  }
  const ids = history.messages('x', null).flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : []))
  t.same(ids, ['call_0', 'b'])
  t.end()
})

test('a talk that is too much for the model is halved until nothing is left', (t) => {
  const history = createHistory([])
  for (let turn = 0; turn < 8; turn++) history.caller(`Question ${turn}`)
  t.ok(history.halve())
  t.notMatch(JSON.stringify(history.messages('x', null)), 'Question 3')
  t.match(JSON.stringify(history.messages('x', null)), 'Question 5')
  for (let count = 0; count < 10 && history.halve(); count++);
  t.notOk(history.halve())
  t.same(told(history), [['user', 'Question 7']])
  t.end()
})

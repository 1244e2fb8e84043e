/** Digits that nobody is to read: docs/contract/rest.md "Pausing a recording". */
import { test } from 'tap'
import { createKeyMask } from '../../actors/conversation/key-mask.ts'

const whole = { isPaused: false, isWhole: true }

function maskOf(...keys: string[]) {
  const mask = createKeyMask()
  for (const run of keys) {
    for (const key of run) mask.key(key)
    mask.end()
  }
  return { ...mask, of: (text: string) => mask.text(text, whole) }
}

test('digits in their order are masked however they are written', (t) => {
  const { of } = maskOf('4711', '90')
  t.equal(of('The code is 4711.'), 'The code is ••••.')
  t.equal(of('4 7 1 1'), '• • • •')
  t.equal(of('4-7.1 1'), '•-•.• •')
  t.equal(of('Four seven one one, right?'), '• • • •, right?')
  t.equal(of('It ends in 711.'), 'It ends in •••.')
  t.equal(of('0047119'), '00••••9', 'within a longer number')
  t.equal(of('90 days'), '•• days', 'all of a short run')
  t.end()
})

test('other digits stay', (t) => {
  const { of, json } = maskOf('4711', '90', '7')
  for (const text of ['At 9 on the 14th of 2026.', '1174', 'Room 190', '47', 'someone', '7 days'])
    t.equal(of(text), text)
  t.same(json({ year: 2026, list: [47, null, true, 'x'] }, 'value'), { year: 2026, list: [47, null, true, 'x'] })
  t.end()
})

test('values are masked at any depth, numbers too, and what a memory counts by stays', (t) => {
  const { json } = maskOf('4711', '3')
  t.same(json({ pin: '4711', list: [{ n: 4711 }], one: '3', three: 3 }, 'value'), {
    pin: '••••',
    list: [{ n: '••••' }],
    one: '•',
    three: '•',
  })
  t.same(json({ step: 3, keys: '3' }, 'memory'), { step: 3, keys: '•' })
  t.end()
})

test('a text that is not whole does not show the beginning of them, and a key that stands alone is masked while it is paused', (t) => {
  const { text } = maskOf('4711', '8')
  t.equal(text('It is 47', { isPaused: false, isWhole: false }), 'It is ••')
  t.equal(text('It is 47', whole), 'It is 47')
  t.equal(text('You chose 8.', { isPaused: true, isWhole: true }), 'You chose •.')
  t.end()
})

test('there is nothing to mask before a key was pressed', (t) => {
  const mask = createKeyMask()
  t.ok(mask.isEmpty())
  mask.key('#')
  t.ok(mask.isEmpty())
  mask.key('1')
  t.notOk(mask.isEmpty())
  t.end()
})

/** The difference of two JSON values: exact for whatever an engine remembers, small where little changed, and harmless where it does not fit. */
import { test } from 'tap'
import type { Json, JsonObject } from '../../model/json.ts'
import { patched, patchOf } from '../../model/json-patch.ts'
import { createRandom, type Random } from '../fake/random.ts'

const leaves: readonly Json[] = [null, true, false, 0, 1, -2.5, 1e21, '', 'a', 'ü\u2028', {}, []]
const names = ['a', 'b', '', '0', '1', 'a/b', '~', '~1', '__proto__', 'constructor', 'ü']

function anyJson(random: Random, depth: number): Json {
  if (depth === 0 || random.next() < 0.3) return random.pick(leaves)
  const many = Array.from({ length: random.below(5) }, () => anyJson(random, depth - 1))
  return random.next() < 0.5 ? many : Object.fromEntries(many.map((value) => [random.pick(names), value]))
}
/** Some of it is otherwise, as from one turn to the next. */
function otherwise(random: Random, json: Json): Json {
  if (random.next() < 0.1) return anyJson(random, 2)
  if (Array.isArray(json)) {
    const items = json.filter(() => random.next() > 0.2).map((item: Json) => otherwise(random, item))
    return random.next() < 0.3 ? [...items, anyJson(random, 2)] : items
  }
  if (json === null || typeof json !== 'object') return json
  const entries = Object.entries(json).map(([name, value]): [string, Json] => [name, otherwise(random, value)])
  return Object.fromEntries(entries.filter(() => random.next() > 0.1).toReversed())
}
/** Without the order of keys, which jsonb does not keep either. */
const sorted = (json: Json): string =>
  JSON.stringify(json, (_, value: Json) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
const parsed = (text: string): Json => JSON.parse(text) as Json

test('the difference of any two values, stored as JSON, makes the one into the other, and changes neither', (t) => {
  const random = createRandom(20261123)
  const wrong: string[] = []
  for (let round = 0; round < 3_000; round++) {
    const before = anyJson(random, 4)
    const after = random.next() < 0.7 ? otherwise(random, before) : anyJson(random, 4)
    const [was, becomes] = [JSON.stringify(before), JSON.stringify(after)]
    const patch = parsed(JSON.stringify(patchOf(before, after))) as ReturnType<typeof patchOf>
    if (sorted(patched(before, patch)) !== sorted(after)) wrong.push(`${was} → ${becomes}: ${JSON.stringify(patch)}`)
    if (JSON.stringify(before) !== was || JSON.stringify(after) !== becomes) wrong.push(`${was} was changed`)
  }
  t.same(wrong, [])
  t.end()
})

test('null is told from absent, a key may be anything, and equal values have no difference', (t) => {
  t.same(patchOf({ a: null, b: 1 }, { b: 1 }), [{ op: 'remove', path: '/a' }])
  t.same(patchOf({ b: 1 }, { b: null }), [{ op: 'replace', path: '/b', value: null }])
  t.same(patchOf({}, { 'a/~': null }), [{ op: 'add', path: '/a~1~0', value: null }])
  t.same(patchOf({ a: 1, b: [{ c: 1, d: 2 }] }, { b: [{ d: 2, c: 1 }], a: 1 }), [])
  const proto = parsed('{"__proto__":{"x":1}}')
  t.equal(JSON.stringify(patched({}, patchOf({}, proto))), '{"__proto__":{"x":1}}')
  t.equal(({} as JsonObject)['x'], undefined)
  t.same(patchOf(null, { a: 1 }), [{ op: 'replace', path: '', value: { a: 1 } }])
  t.end()
})

test('of a list from which the oldest goes only what goes and what comes is told, and of an entry only its change', (t) => {
  const entry = (number: number) => ({ id: `call-${number}`, arguments: { number }, output: `result ${number}` })
  const list = Array.from({ length: 200 }, (_, number) => entry(number))
  t.same(patchOf({ list }, { list: [...list.slice(2), entry(200)] }), [
    { op: 'remove', path: '/list/0' },
    { op: 'remove', path: '/list/0' },
    { op: 'add', path: '/list/198', value: entry(200) },
  ])
  t.same(patchOf(list, list.with(50, { ...entry(50), output: 'another' })), [
    { op: 'replace', path: '/50/output', value: 'another' },
  ])
  const moved = [...list.slice(0, 9), ...list.slice(10), list[9]!]
  t.same(patchOf(list, moved), [
    { op: 'remove', path: '/9' },
    { op: 'add', path: '/199', value: entry(9) },
  ])
  const long = Array.from({ length: 2_000 }, (_, number) => number)
  const backwards = long.toReversed()
  t.same(
    patched(long, patchOf(long, backwards)),
    backwards,
    'lists of which nothing stays in its order are exact all the same',
  )
  t.end()
})

test('a step that does not fit is left out', (t) => {
  const json = { a: [1], b: { c: 1 } }
  const misfits = [
    { op: 'remove', path: '/x' },
    { op: 'remove', path: '/a/1' },
    { op: 'remove', path: '/a/-1' },
    { op: 'remove', path: '/a/01' },
    { op: 'remove', path: '' },
    { op: 'replace', path: '/x', value: 1 },
    { op: 'replace', path: '/a/7', value: 1 },
    { op: 'add', path: '/a/2', value: 1 },
    { op: 'add', path: '/a/length', value: 1 },
    { op: 'add', path: '/x/y', value: 1 },
    { op: 'add', path: '/b/c/d', value: 1 },
    { op: 'add', path: '/b/constructor/prototype', value: 1 },
  ] as const
  for (const step of misfits) t.same(patched(json, [step]), json, JSON.stringify(step))
  t.same(patched({ a: 1 }, []), { a: 1 })
  t.end()
})

/** What is wrong with a value is told in one voice, and null reads as absent where that is what it says. */
import { test } from 'tap'
import { z } from 'zod'
import { issuesOf } from '../../model/issues.ts'
import { nullAsAbsent } from '../../model/null-as-absent.ts'

const Order = z.strictObject({
  id: z.uuid(),
  count: z.number().int().min(1).max(9),
  kind: z.enum(['tea', 'coffee']),
  note: z.string().min(2).max(5).optional(),
  mail: z.email().optional(),
  isGift: z.boolean().optional(),
  tags: z.array(z.string()).min(1).max(2).optional(),
  headers: z.record(z.string().regex(/^X-/, 'must begin with X-'), z.string()).optional(),
  inner: z.strictObject({ at: z.iso.datetime(), colour: z.string().nullable().optional() }).optional(),
  code: z.string().regex(/^\d+$/).optional(),
  either: z.union([z.literal(''), z.string().regex(/^a/, 'must begin with a')]).optional(),
  data: z.record(z.string(), z.unknown()).optional(),
})
const good = { id: '01980a5e-9b02-7c3f-8a21-3c4d5e6f7081', count: 1, kind: 'tea' }
const told = (change: object) => {
  const given = { ...good, ...change }
  const parsed = Order.safeParse(given)
  return parsed.success ? [] : issuesOf(parsed.error, given).map(({ path, message }) => `${path} ${message}`)
}

test('what is wrong is said of the field, in words of ours', (t) => {
  const cases: [object, string][] = [
    [{ id: undefined }, 'id is missing'],
    [{ id: null }, 'id is missing'],
    [{ kind: undefined }, 'kind is missing'],
    [{ id: 7 }, 'id must be a string'],
    [{ id: 'x' }, 'id must be a UUID'],
    [{ count: '1' }, 'count must be a number'],
    [{ count: 1.5 }, 'count must be a whole number'],
    [{ count: 0 }, 'count must be 1 or more'],
    [{ count: 10 }, 'count must be 9 or less'],
    [{ kind: 'milk' }, 'kind must be one of tea, coffee'],
    [{ note: 'x' }, 'note must have 2 characters or more'],
    [{ note: 'xxxxxx' }, 'note must have 5 characters at most'],
    [{ mail: 'x' }, 'mail must be an e-mail address'],
    [{ isGift: 'yes' }, 'isGift must be a boolean'],
    [{ tags: 'x' }, 'tags must be an array'],
    [{ tags: [] }, 'tags must not be empty'],
    [{ tags: ['a', 'b', 'c'] }, 'tags must have 2 items at most'],
    [{ tags: [null] }, 'tags.0 must be a string'],
    [{ headers: [] }, 'headers must be an object'],
    [{ headers: { 'Y-a': 'x' } }, 'headers.Y-a must begin with X-'],
    [{ inner: 'x' }, 'inner must be an object'],
    [{ inner: {} }, 'inner.at is missing'],
    [{ inner: { at: 'x' } }, 'inner.at must be a time in ISO 8601'],
    [{ code: 'x' }, 'code is not of the form it must have'],
    [{ either: 'x' }, 'either must begin with a'],
    [{ either: 7 }, 'either must be a string'],
    [{ nonsense: 1 }, 'nonsense is not a known field'],
  ]
  for (const [change, words] of cases) t.same(told(change), [words])
  const whole = Order.safeParse([])
  t.same(whole.success ? [] : issuesOf(whole.error, []), [{ path: '', message: 'must be an object' }])
  t.end()
})

test('of several forms that one field tells apart, what is known is named', (t) => {
  const Message = z.discriminatedUnion('type', [
    z.object({ type: z.literal('ping') }),
    z.object({ type: z.literal('bye') }),
  ])
  for (const given of [{ type: 'pong' }, {}]) {
    const parsed = Message.safeParse(given)
    const message = 'type' in given ? 'must be one of ping, bye' : 'is missing'
    t.same(parsed.success ? [] : issuesOf(parsed.error, given), [{ path: 'type', message }])
  }
  t.end()
})

test('null reads as absent where a field may be absent and null means nothing; elsewhere it stays', (t) => {
  const blank = { note: null, mail: null, tags: null, headers: null, inner: null, isGift: null, either: null }
  t.same(nullAsAbsent(Order, { ...good, ...blank }), good)
  const inside = { ...good, inner: { at: null, colour: null }, headers: { 'X-A': null, 'X-B': 'x' }, tags: [null] }
  t.same(nullAsAbsent(Order, inside), {
    ...good,
    inner: { at: null, colour: null },
    headers: { 'X-B': 'x' },
    tags: [null],
  })
  const data = { ...good, data: { a: null, b: [null] } }
  t.equal(nullAsAbsent(Order, data), data, 'any JSON is left as it is')
  t.same(nullAsAbsent(Order, { nonsense: null, id: null }), { nonsense: null, id: null }, 'and what is not known')
  const List = z.object({ orders: z.array(Order.partial()).default([]) })
  t.same(nullAsAbsent(List, { orders: [{ id: null, note: 'x' }] }), { orders: [{ note: 'x' }] })
  const Looked = z.preprocess((value) => value, Order)
  t.same(nullAsAbsent(Looked.optional(), { ...good, note: null }), good)
  for (const value of [null, 'text', 7, [null], undefined]) t.equal(nullAsAbsent(Order, value), value)
  const hostile = JSON.parse('{"__proto__": null, "note": null}') as object
  t.same(Object.keys(nullAsAbsent(Order, hostile) as object), ['__proto__'])
  t.end()
})

/** What is refused of the schemas that integrators configure, with its path. Pure. */
import { test } from 'tap'
import type { JsonObject } from '../../model/json.ts'
import { patternFlaw } from '../../model/pattern-flaw.ts'
import { schemaFlaws } from '../../model/schema-flaws.ts'
import { WorkerConfig } from '../../model/worker.ts'

const flawOf = (pattern: string): string | null => patternFlaw(pattern, { steps: 300_000 })
const pathsOf = (schema: JsonObject): string[] =>
  schemaFlaws(schema, { steps: 300_000 }).map(({ path }) => path.join('.'))

test('a pattern that takes exponential time over some text is refused', (t) => {
  const dangerous = [
    '(a+)+$',
    '^(a*)*$',
    '(a|a)*b',
    '(a|aa)+$',
    '(.*)*x',
    '^(\\w+\\s?)*$',
    '(x+x+)+y',
    '([a-z]|\\w)+!',
    '^(\\d{1,3})*$',
    '(?:a{5,9})+b',
    '(?<word>\\w+)+;',
    '((a?)+)+c',
    '^(?=(a+)+$)a',
    '^([a-zA-Z0-9])(([-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$',
  ]
  for (const pattern of dangerous) t.match(flawOf(pattern), /exponential/, pattern)
  t.end()
})

test('a pattern that takes no exponential time is accepted', (t) => {
  const harmless = [
    '',
    '^[A-Z]{2}\\d{6}$',
    '^\\+?[\\d ()-]{6,20}$',
    '^(\\d{1,3}\\.){3}\\d{1,3}$',
    '^[\\w.+-]+@([\\w-]+\\.)+[a-z]{2,}$',
    '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2})?)?$',
    '(mon|tues|wednes|thurs|fri|satur|sun)day(, (mon|tues|wednes|thurs|fri|satur|sun)day)*',
    '^(a|b|[cd])*$',
    '^(?:\\d{10})+$',
    "^\\p{Lu}[\\p{L}\\p{M}' -]*$",
    '^(["\']).*\\1$',
    '^\\w+\\s+\\w+$',
    '^[^\\]]*\\]$',
    'x'.repeat(900),
    '^\\_\\-$',
  ]
  for (const pattern of harmless) t.equal(flawOf(pattern), null, pattern)
  t.end()
})

test('a pattern that cannot be compiled, or is too large to be judged, is refused, and soon', (t) => {
  for (const pattern of ['(', '[', 'a**', '(?<n>a)(?<n>b)', '\\p{Nope}('])
    t.match(flawOf(pattern), /regular expression/, pattern)
  t.match(flawOf('x'.repeat(1_001)), /1000 characters/)
  const hostile = [
    `${'(?:'.repeat(150)}${'){4}'.repeat(150)}`,
    `(${Array.from({ length: 240 }, (_, at) => at.toString(36)).join('|')})*`,
    `(?:${'[a-y][b-z]?'.repeat(80)})*`,
    '(((a{4}){4}){4}){4}*'.replace('*', ''),
  ]
  for (const pattern of hostile) {
    const began = performance.now()
    flawOf(pattern)
    t.ok(performance.now() - began < 10_000, `${pattern.slice(0, 20)}… took ${performance.now() - began} ms`)
  }
  t.end()
})

test('as many patterns as a worker can have are judged, or refused, soon', (t) => {
  const letter = (at: number) => String.fromCodePoint(0x4e00 + 5 * at)
  const branches = Array.from({ length: 140 }, (_, at) => `(?:${letter(2 * at)}|${letter(2 * at + 1)})`)
  for (const pattern of [`${'('.repeat(110)}${'a?'.repeat(333)}${')*'.repeat(110)}`, `(?:${branches.join('')})+`]) {
    const properties = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`p${at}`, { pattern }]))
    const began = performance.now()
    const flaws = schemaFlaws({ properties }, { steps: 300_000 })
    t.ok(performance.now() - began < 10_000, `${pattern.slice(0, 20)}… took ${performance.now() - began} ms`)
    t.match(flaws[0]?.message, /must (?:be simpler|not repeat)/)
  }
  t.end()
})

test('keywords that no validator understands are named by their paths', (t) => {
  t.same(pathsOf({ type: 'object', properties: { a: { type: 'strnig' } } }), ['properties.a.type'])
  t.same(pathsOf({ properties: [] }), ['properties'])
  t.same(pathsOf({ properties: { a: 7 } }), ['properties.a'])
  t.same(pathsOf({ required: 'a', minimum: '3', minLength: -1, enum: {} }), [
    'required',
    'minimum',
    'minLength',
    'enum',
  ])
  t.same(pathsOf({ anyOf: {}, allOf: [{ type: 'x' }] }), ['anyOf', 'allOf.0.type'])
  t.same(pathsOf({ $ref: 'https://example.com/schema' }), ['$ref'])
  t.same(pathsOf({ $ref: '#/$defs/none', $defs: { some: {} } }), ['$ref'])
  t.same(pathsOf({ patternProperties: { '(a+)+$': {}, '^x-': { pattern: '[' } } }), [
    'patternProperties.(a+)+$',
    'patternProperties.^x-.pattern',
  ])
  t.same(pathsOf({ properties: { a: { not: { items: { pattern: 7 } } } } }), ['properties.a.not.items.pattern'])
  const fine = {
    $defs: { day: { type: 'string', format: 'date' } },
    type: ['object', 'null'],
    properties: { pattern: { $ref: '#/$defs/day' }, required: { enum: [1], default: '(' }, any: true },
    required: ['pattern'],
    additionalProperties: false,
    'x-own': { pattern: '(' },
  }
  t.same(pathsOf(fine), [], 'names of properties and keywords of others are no keywords')
  t.end()
})

test('a schema that cannot be used is refused when a worker is configured, with its path', (t) => {
  const issuesOf = (dataSchema: object) =>
    WorkerConfig.safeParse({
      nextActions: [
        { key: 'a', name: 'A' },
        { key: 'b', name: 'B', dataSchema },
      ],
    }).error?.issues ?? []
  t.match(issuesOf({ properties: { code: { type: 'string', pattern: '(a+)+$' } } }), [
    { path: ['nextActions', 1, 'dataSchema', 'properties', 'code', 'pattern'], message: /exponential/ },
  ])
  t.match(issuesOf({ properties: { code: { pattern: '(' } } }), [{ message: /regular expression/ }])
  t.same(issuesOf({ type: 'object', properties: { code: { type: 'string', pattern: '^[A-Z]{2}$' } } }), [])
  t.end()
})

/**
 * Whatever is sent, nothing breaks: ten thousand requests made from the OpenAPI document and a fixed seed, most of them a little wrong and
 * some of them very. No answer is a 5xx, every error has the shape of docs/contract/rest.md "Errors", and nothing is logged as a bug.
 */
import { test } from 'tap'
import { createRandom, type Random } from '../fake/random.ts'
import { sampleOf, type Operation } from '../scenes/api-operations.ts'
import { unlistedError } from '../scenes/listed-errors.ts'
import { newId } from '../scenes/seeded-api.ts'
import { openWholeApi, pathOf, type SeededAccount } from '../scenes/whole-api.ts'
import { withValue, wrongBodiesOf } from './wrong-bodies.ts'

const seed = 20_261_121
const requests = 10_000
const atOnce = 8

type Sent = {
  readonly operation: Operation
  readonly method: string
  readonly target: string
  readonly key: string | null
  readonly body: string | Uint8Array<ArrayBuffer> | null
  readonly headers: Record<string, string>
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']
const garbageSegments = [
  'no-id',
  '',
  '.',
  '%2e%2e',
  '%00',
  '%',
  '%zz',
  '%ff%fe',
  '%ED%A0%80',
  'a%2Fb',
  '%F0%9F%98%80',
  "1'%20or%201=1--",
  '{accountId}',
  'undefined',
  '00000000-0000-0000-0000-000000000000',
  'x'.repeat(3_000),
]
const garbageTexts = [
  '',
  ' ',
  '\0',
  '%',
  '%zz',
  '\ud83d',
  '😀'.repeat(40),
  '-1',
  '1e400',
  'NaN',
  '0x10',
  '9'.repeat(40),
  'null',
  'true',
  "' or 1=1--",
  '+4930123456',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59-23:59',
  '2026-02-30T00:00:00Z',
  'x'.repeat(5_000),
]
const garbageValues: readonly unknown[] = [
  ...garbageTexts,
  null,
  true,
  -1,
  1.5,
  1e300,
  [],
  {},
  [[]],
  { a: { b: [null] } },
]
const types = [
  'application/json',
  'text/plain',
  'application/json; charset=utf-16',
  'multipart/form-data',
  'application/x-www-form-urlencoded',
  ';',
  '',
]
const brokenBodies = [
  '',
  '{',
  'null',
  '[]',
  '"text"',
  '7',
  '{"a":1,}',
  '{"a":1e400}',
  '{"__proto__":{"polluted":true},"constructor":{"prototype":{}}}',
  '{"a":"\\u0000"}',
  '{"a":"\\ud83d"}',
  '{"a":1,"a":2}',
  '\ufeff{}',
  'x'.repeat(300_000),
  `{"text":"${'x'.repeat(300_000)}"}`,
  `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
  `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
]

test('ten thousand requests', async (t) => {
  const whole = await openWholeApi(t)
  const { ask, document, operations, own, other, lines } = whole
  const random = createRandom(seed)
  const chance = (share: number): boolean => random.next() < share
  /** Follows what is created and deleted, so that there is always something to find. */
  const ids: Record<string, string> = { ...own.ids }
  const wrongBodies = new Map(operations.map((operation) => [operation.id, wrongOf(operation)]))

  function wrongOf({ body }: Operation): unknown[] {
    return body ? wrongBodiesOf(document, body, own.ids).map((wrong) => wrong.body) : []
  }

  function targetOf(operation: Operation): string {
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      if (chance(name === 'accountId' ? 0.95 : 0.85)) return ids[name] ?? newId()
      return random.pick([other.ids[name] ?? '', newId(), (ids[name] ?? '').toUpperCase(), ...garbageSegments])
    })
    const suffix = chance(0.04) ? random.pick(['/', '//', '/..', '.json', '%20', '#', ';a=b']) : ''
    return `${path}${suffix}${queryOf(operation)}`
  }

  function queryOf({ parameters }: Operation): string {
    if (!chance(0.4)) return ''
    const names = parameters.filter((given) => given.in === 'query')
    const parts = names.filter(() => chance(0.5)).map(({ name, schema }) => `${name}=${textFor(name, schema.enum)}`)
    const odd = chance(0.2)
      ? [random.pick(['%', '=', '&&', '?', 'limit', 'limit=1&limit=2', 'a[b]=c', '%00=%00', '__proto__=1'])]
      : []
    return `?${[...parts, ...odd].join('&')}`
  }

  function textFor(name: string, values: readonly unknown[] | undefined): string {
    if (values && chance(0.6)) return String(random.pick(values))
    const good = [ids[name] ?? '5', '2026-01-01T12:00:00Z', '10']
    return chance(0.5) ? random.pick(good) : encoded(random.pick(garbageTexts))
  }

  function bodyOf(operation: Operation): string | Uint8Array<ArrayBuffer> {
    const { body } = operation
    if (body === null) return random.pick(brokenBodies)
    const good = () => sampleOf(document, body, ids)
    if (chance(0.4)) return JSON.stringify(good())
    if (chance(0.5)) return JSON.stringify(random.pick(wrongBodies.get(operation.id) ?? []))
    if (chance(0.6)) return JSON.stringify(mutated(good(), random))
    if (chance(0.2)) return Uint8Array.from({ length: random.below(300) }, () => random.below(256))
    return random.pick(brokenBodies)
  }

  function headersOf(): Record<string, string> {
    const headers: Record<string, string> = { 'content-type': chance(0.93) ? 'application/json' : random.pick(types) }
    const odd = random.pick(['two words', '\u00ff', '"', '[]', 'a'.repeat(300), ''])
    if (chance(0.1)) headers['x-request-id'] = random.pick(['trace-1', odd])
    if (chance(0.1)) headers['idempotency-key'] = random.pick(['key-1', 'key-2', newId(), odd])
    if (chance(0.05)) headers[random.pick(['range', 'accept', 'if-none-match', 'cookie', 'expect', 'origin'])] = odd
    return headers
  }

  function keyOf(operation: Operation): string | null {
    if (chance(0.93)) return operation.open ? null : own.key
    return random.pick([null, other.key, `${own.key}0`, '\u00ff', 'x'.repeat(8_000), ''])
  }

  function make(): Sent {
    const operation = random.pick(operations)
    const method = chance(0.93) ? operation.method.toUpperCase() : random.pick(methods)
    const body = ['GET', 'HEAD'].includes(method) ? null : bodyOf(operation)
    return { operation, method, target: targetOf(operation), key: keyOf(operation), body, headers: headersOf() }
  }

  /** What another request made is there to be found by the next. */
  function remember({ operation, method }: Sent, status: number, json: { id?: string } | null): void {
    if (method !== 'POST' || status !== 200 || typeof json?.id !== 'string') return
    const made = operations.find(({ path }) => path.startsWith(`${operation.path}/{`))
    const name = /\{(\w+)\}$/.exec(made?.path ?? '')?.[1]
    if (name !== undefined && name !== 'workerId') ids[name] = json.id
  }

  const counts = new Map<number, number>()
  const complaints: string[] = []
  async function send(sent: Sent): Promise<void> {
    const { operation, method, target, key, body, headers } = sent
    const answer = await ask(target, { method, key, headers, ...(body !== null && { body }) })
    counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1)
    const isItsOwn = method.toLowerCase() === operation.method && answer.status !== 404
    const flaw = flawOf(answer, method) ?? (isItsOwn ? unlistedError(operation, answer) : null)
    if (flaw)
      complaints.push(`${flaw}: ${method} ${target} ${shown(body)} → ${answer.status} ${answer.text.slice(0, 200)}`)
    remember(sent, answer.status, answer.json)
  }

  for (let done = 0; done < requests; done += atOnce)
    await Promise.all(Array.from({ length: atOnce }, () => send(make())))

  t.same(complaints.slice(0, 10), [], `${complaints.length} complaints`)
  t.same(
    lines.filter(({ level }) => level === 'error').map(({ message, fields }) => [message, String(fields['error'])]),
    [],
    'nothing is a bug',
  )
  t.equal(([] as unknown as { polluted?: boolean }).polluted, undefined)
  const least = { 200: 1_500, 204: 50, 400: 1_000, 401: 100, 404: 500, 405: 100, 409: 20, 415: 50 }
  for (const [status, count] of Object.entries(least))
    t.ok((counts.get(Number(status)) ?? 0) >= count, `${counts.get(Number(status))} answers were ${status}`)
  t.comment(JSON.stringify(Object.fromEntries(counts)))
  await stillWorks(own)

  async function stillWorks({ key }: SeededAccount): Promise<void> {
    for (const operation of operations.filter(({ id }) => ['listWorkers', 'listPhoneCalls', 'getHealth'].includes(id)))
      t.equal((await ask(pathOf(operation, own.ids), { key })).status, 200, `${operation.id} still answers`)
  }
})

type Answered = { status: number; text: string; headers: Headers; json: Record<string, unknown> | null }

/** What is wrong with an answer, if anything. */
function flawOf({ status, text, headers, json }: Answered, method: string): string | null {
  if (status >= 500) return 'the service broke'
  if (!headers.get('x-request-id')) return 'no request id'
  if (headers.get('x-content-type-options') !== 'nosniff') return 'no security headers'
  if (status < 400 || method === 'HEAD') return null
  if (headers.get('content-type') !== 'application/json') return 'an error that is not JSON'
  if (json?.['statusCode'] !== status || json['requestId'] !== headers.get('x-request-id'))
    return 'an error of another shape'
  if (!/^[A-Z_]+$/.test(String(json['type'])) || !/^errors\.[A-Za-z]+$/.test(String(json['localizedKey'])))
    return 'an error without a code'
  if (typeof json['details'] !== 'string' || json['details'] === '') return 'an error without a sentence'
  return /\b(select|insert into|stack|node_modules|postgres)\b/i.test(text) ? 'an error that tells of the inside' : null
}

/** One value somewhere inside is another one. */
function mutated(good: unknown, random: Random): unknown {
  const path: (string | number)[] = []
  let at = good
  while (
    typeof at === 'object' &&
    at !== null &&
    Object.keys(at).length > 0 &&
    (path.length === 0 || random.next() < 0.6)
  ) {
    const step = random.pick(Object.keys(at))
    path.push(Array.isArray(at) ? Number(step) : step)
    at = (at as Record<string, unknown>)[step]
  }
  return withValue(good, path, random.pick(garbageValues))
}

/** Half a surrogate pair has no encoding. */
const encoded = (text: string): string => (text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%BD')

const shown = (body: Sent['body']): string =>
  typeof body === 'string' ? body.slice(0, 400) : `${body?.length ?? 'no'} bytes`

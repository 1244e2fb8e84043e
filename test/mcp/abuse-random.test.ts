/**
 * docs/contract/mcp.md "Failures": whatever arguments a tool is sent, its answer is a result. Ten thousand sets of arguments made from the listed schemas
 * and a fixed seed, most of them a little wrong and some of them very, in both eras: no 500, nothing logged as a bug, nothing of another
 * account, and no error of the protocol but for what is no call.
 */
import { test } from 'tap'
import { withValue } from '../api/wrong-bodies.ts'
import { createRandom, type Random } from '../fake/random.ts'
import { openMcpTenants, type Called, type ListedTool } from '../scenes/mcp-tenants.ts'
import { newId } from '../scenes/seeded-api.ts'
import { argumentsOf, placesOf, type Step } from '../scenes/tool-arguments.ts'

const seed = 20_261_123
const sets = 10_000
const atOnce = 8

const garbageTexts = [
  '',
  ' ',
  '\0',
  '\ud83d',
  '😀'.repeat(40),
  '-1',
  '1e400',
  'null',
  "' or 1=1--",
  '../../etc/passwd',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '+4930123456',
  'no-id',
  '00000000-0000-0000-0000-000000000000',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59-23:59',
  '2026-02-30T00:00:00Z',
  'x'.repeat(5_000),
  'x'.repeat(20_000),
]
const garbageValues: readonly unknown[] = [
  ...garbageTexts,
  null,
  true,
  -1,
  0,
  1.5,
  1e300,
  2 ** 53,
  [],
  {},
  [[]],
  { a: { b: [null] } },
  Array.from({ length: 101 }, () => ({})),
  { toString: 'x', constructor: null },
]
/** What is no object of arguments: then the call is malformed. */
const noArguments: readonly unknown[] = [null, 7, 'text', true, [], [{}]]

test('ten thousand sets of arguments', { timeout: 280_000 }, async (t) => {
  const { tools, own, other, callAs, lines, sql } = await openMcpTenants(t)
  const random = createRandom(seed)
  const chance = (share: number): boolean => random.next() < share
  const before = await foreignRows()

  function foreignRows() {
    return Promise.all(
      ['persons', 'documents', 'workers', 'calls'].map(
        (table) => sql`
          select md5(string_agg(t::text, '|' order by t::text)) from ${sql(table)} t where account_id = ${other.accountId}`,
      ),
    )
  }

  /** Ids of this account, of the other one, and of nobody. */
  function idFor(name: string): unknown {
    if (chance(0.7)) return own.ids[name]
    return chance(0.6) ? other.ids[name] : newId()
  }

  function make({ inputSchema }: ListedTool): unknown {
    if (chance(0.02)) return random.pick(noArguments)
    const ids = Object.fromEntries(Object.keys(own.ids).map((name) => [name, idFor(name)]))
    const optional = Object.keys(inputSchema.properties ?? {}).filter((name) => !inputSchema.required?.includes(name))
    let given: unknown = argumentsOf(
      inputSchema,
      ids,
      optional.filter(() => chance(0.5)),
    )
    while (chance(0.6)) given = mutated(given, random)
    if (chance(0.05)) given = { ...(given as object), [random.pick(['no_such', '__proto__', '', 'workerId'])]: 1 }
    return given
  }

  const counts = { done: 0, refused: 0, malformed: 0 }
  const complaints: string[] = []
  async function send(): Promise<void> {
    const tool = random.pick(tools)
    const given = make(tool)
    const called = await callAs(own, tool.name, given, chance(0.2) ? 'legacy' : 'modern')
    const flaw = flawOf(called, given)
    const told = other.secrets.find((secret) => called.text.includes(secret) && !JSON.stringify(given).includes(secret))
    if (flaw ?? told)
      complaints.push(
        `${flaw ?? `it tells ${told}`}: ${tool.name} ${JSON.stringify(given)?.slice(0, 300)} → ${called.status} ${called.text.slice(0, 300)}`,
      )
    counts[kindOf(called)] += 1
  }

  for (let done = 0; done < sets; done += atOnce) await Promise.all(Array.from({ length: atOnce }, send))

  t.same(complaints.slice(0, 10), [], `${complaints.length} complaints`)
  t.same(
    lines.filter(({ level }) => level === 'error').map(({ message, fields }) => [message, String(fields['error'])]),
    [],
    'nothing is a bug',
  )
  t.same(await foreignRows(), before, 'nothing of the other account was changed')
  t.ok(counts.done >= 500, `${counts.done} were done`)
  t.ok(counts.refused >= 2_000, `${counts.refused} were refused`)
  t.ok(counts.malformed >= 50, `${counts.malformed} were no calls`)
  t.equal(([] as unknown as { no_such?: number }).no_such, undefined)
})

const kindOf = ({ error, isError }: Called) => {
  if (error) return 'malformed'
  return isError ? 'refused' : 'done'
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

/** What is wrong with an answer, if anything. */
function flawOf({ status, error, isError, structuredContent, text }: Called, given: unknown): string | null {
  if (status >= 500) return 'the service broke'
  if (/\b(insert into|select \*|node_modules|postgres|\.ts:\d+)\b/i.test(text)) return 'it tells of the inside'
  if (error) return isObject(given) ? `an error of the protocol (${error.code})` : null
  // Null reads as absent.
  if (!isObject(given) && given !== undefined && given !== null) return 'no arguments were taken for some'
  if (structuredContent === undefined) return 'no structured content'
  if (!isError) return null
  if (structuredContent.code === 'INTERNAL') return 'it failed'
  return /^[A-Z_]+$/.test(structuredContent.code ?? '') && structuredContent.message ? null : 'a failure without a code'
}

/** One value somewhere inside is another one. */
function mutated(good: unknown, random: Random): unknown {
  const places = placesOf(good).filter(({ length }) => length > 0)
  const place = places.length === 0 ? ['no_such_argument'] : (random.pick(places) as readonly Step[])
  return withValue(good, place, random.pick(garbageValues))
}

/** What the service keeps of an engine's memory: all of it within the bound, what the engine makes of it beyond, and never a failed call. */
import { test } from 'tap'
import { createMemoryBound } from '../../actors/conversation/memory-bound.ts'
import type { Json } from '../../model/json.ts'
import { maxMemoryBytes, type EngineEvent, type VoiceEngine } from '../../model/voice-engine.ts'
import { shortenedMemory as shortenedCascade } from '../../voice/engines/cascade/memory.ts'
import { shortenedMemory as shortenedGemini } from '../../voice/engines/gemini-live/setup.ts'
import { shortenedState } from '../../voice/script/dialogue/shortened-state.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { callConfig } from '../scenes/spoken-call.ts'

const bytesOf = (json: unknown): number => Buffer.byteLength(JSON.stringify(json))
/** JSON of so many bytes. */
const ofBytes = (bytes: number): Json => ({ x: 'y'.repeat(bytes - '{"x":""}'.length) })

function boundOf(shorten?: VoiceEngine['shorten']) {
  const log = createQuietLog()
  const engine = createScriptedEngine()
  const bound = createMemoryBound({ ...engine, ...(shorten && { shorten }) }, log)
  return { ...bound, engine, told: () => log.lines.filter(({ level }) => level === 'warn') }
}

test('32 KiB of JSON are kept as they are, in bytes and not in letters; one more is not', (t) => {
  const { kept, told } = boundOf()
  t.equal(maxMemoryBytes, 32 * 1024)
  t.same(kept(ofBytes(maxMemoryBytes)), ofBytes(maxMemoryBytes))
  t.equal(told().length, 0)
  t.equal(kept(ofBytes(maxMemoryBytes + 1)), undefined)
  t.equal(kept({ x: 'ü'.repeat(20_000) }), undefined)
  t.equal(kept({ x: '\n'.repeat(20_000) }), undefined, 'as it is written')
  t.match(told(), [{ message: /cannot be kept/, fields: { engine: 'scripted', maxMemoryBytes } }], 'told once')
  t.end()
})

test('what an engine shortens is kept; what it does not make short enough, or fails over, is not', (t) => {
  const large = ofBytes(50_000)
  const shortening = boundOf((_, maxBytes) => ofBytes(maxBytes))
  t.same(shortening.kept(large), ofBytes(maxMemoryBytes))
  t.same(shortening.kept(large), ofBytes(maxMemoryBytes))
  t.match(shortening.told(), [{ message: /shortened/ }], 'told once')
  t.equal(boundOf((_, maxBytes) => ofBytes(maxBytes + 1)).kept(large), undefined)
  t.equal(boundOf(() => ({ x: '\0' })).kept(large), undefined)
  const failing = boundOf(() => {
    throw new Error('not mine')
  })
  t.equal(failing.kept(large), undefined)
  t.match(failing.told(), [{ fields: { error: { message: 'not mine' } } }])
  t.end()
})

test('what is no JSON that can be stored is not kept, be it without an end, endlessly deep, or a hundred times too much', (t) => {
  const { kept } = boundOf()
  const circle: { self: unknown[] } = { self: [] }
  circle.self.push(circle, circle)
  t.equal(kept(circle as unknown as Json), undefined)
  t.equal(kept({ x: '\0' }), undefined)
  t.equal(kept(Array.from({ length: 2_000_000 }, () => 1)), undefined)
  let deep: Json = 1
  for (let depth = 0; depth < 20_000; depth++) deep = [deep]
  t.equal(kept(deep), undefined)
  t.same(kept({ a: undefined, b: [null] } as unknown as Json), { b: [null] })
  t.end()
})

test('what an engine tells too much of is not told on, and what it told before counts', async (t) => {
  const { boundedIn, engine } = boundOf()
  const events: EngineEvent[] = []
  await boundedIn(engine).open(callConfig(), (event) => events.push(event))
  const mutable = { step: 1 }
  engine.emit({ type: 'memory', memory: mutable })
  mutable.step = 2
  engine.emit({ type: 'memory', memory: ofBytes(50_000) })
  engine.emit({ type: 'finished', nextAction: null })
  t.same(events, [
    { type: 'memory', memory: { step: 1 } },
    { type: 'finished', nextAction: null },
  ])
})

test('of calls and news the cascade forgets the oldest, Gemini Live the oldest news and never its handle', (t) => {
  const besides = Array.from({ length: 40 }, (_, at) => ({ before: [], news: `${at} ${'検'.repeat(500)}` }))
  const cascade = shortenedCascade({ besides }, 10_000) as { besides: typeof besides }
  t.same(cascade.besides, besides.slice(-cascade.besides.length))
  t.ok(cascade.besides.length > 4 && bytesOf(cascade) <= 10_000)
  t.equal(shortenedCascade({ besides: [{ before: [], news: 'x'.repeat(200) }] }, 100), null)
  const news = Array.from({ length: 32 }, (_, at) => ({ text: `${at} ${'検'.repeat(500)}`, wantsAnswer: at > 30 }))
  const gemini = shortenedGemini({ version: 1, handle: 'h', news }, 10_000) as { handle: string; news: typeof news }
  t.equal(gemini.handle, 'h')
  t.same(gemini.news, news.slice(-gemini.news.length))
  t.ok(gemini.news.length > 4 && bytesOf(gemini) <= 10_000)
  t.end()
})

test('a script forgets the largest results of its tools, and stays where it is', (t) => {
  const place = { version: 1, step: 3, phase: 'listening', answers: { tea: true }, misunderstood: 0, unanswered: 1 }
  const results = { large: 'x'.repeat(9_000), small: 'seven', larger: 'x'.repeat(20_000) }
  t.match(shortenedState({ ...place, results }, 10_000), { ...place, results: { small: 'seven', large: /x/ } })
  t.same((shortenedState({ ...place, results }, 10_000) as { results: object }).results, {
    small: 'seven',
    large: results.large,
  })
  t.end()
})

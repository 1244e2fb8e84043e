/** How the recogniser looks at Gaussians four at a time: as it did one after another, to the bit. */
import { test } from 'tap'
import { gaussianOrderOf } from '../../voice/engines/embedded/gaussian-order.ts'
import { createRandom, type Random } from '../fake/random.ts'
import { loneGaussians } from './gaussian-functions.ts'

type Evaluate = (scorer: number, codebook: number, stream: number, observed: number) => void
declare const WebAssembly: {
  readonly Memory: new (limits: { initial: number }) => { readonly buffer: ArrayBuffer }
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (
    module: object,
    imports: { readonly env: object },
  ) => { readonly exports: { codebook: Evaluate; best: Evaluate; stack: { readonly value: number } } }
}

const [codebooks, streams, count, features, topn] = [42, 3, 128, 13, 8]
const [codebook, stream] = [17, 2]

type Pair = { readonly number: number; readonly score: number }

/** The structures of the recogniser as far as they are read, with Gaussians one after another. */
function layOut(memory: { readonly buffer: ArrayBuffer }, random: Random) {
  const words = new Int32Array(memory.buffer)
  const floats = new Float32Array(memory.buffer)
  let free = 1024
  const take = (size: number): number => (free += size) - size
  const tables = (of: (inner: () => number) => number): number => {
    const outer = take(codebooks)
    for (let index = 0; index < codebooks; index++) {
      const inner = take(streams)
      words[outer + index] = inner * 4
      for (let at = 0; at < streams; at++) words[inner + at] = of(() => take(count * features)) * 4
    }
    return outer * 4
  }
  const rows = (value: () => number) => (values: () => number) => {
    const table = take(1)
    const from = values()
    words[table] = from * 4
    for (let at = 0; at < count * features; at++) floats[from + at] = value()
    return table
  }
  const lengths = take(streams)
  words.fill(features, lengths, lengths + streams)
  const means = tables(rows(() => 4 * random.next() - 2))
  const variances = tables(rows(() => 900 * random.next()))
  const norms = tables(() => {
    const from = take(count)
    for (let at = 0; at < count; at++) floats[from + at] = -2000 * random.next()
    return from
  })
  const gauden = take(8)
  words.set([means, variances, norms, 0, codebooks, streams, count, lengths * 4], gauden)
  const list = take(2 * topn)
  const [history, ofCodebooks, ofStreams] = [take(1), take(codebooks), take(streams)]
  words[history] = ofCodebooks * 4
  words[ofCodebooks + codebook] = ofStreams * 4
  words[ofStreams + stream] = list * 4
  const scorer = take(12)
  words[scorer + 3] = gauden * 4
  words[scorer + 9] = topn
  words[scorer + 11] = history * 4
  const observed = take(features)
  const valuesAt = (pointer: number): number => {
    const table = words[(words[pointer / 4 + codebook] ?? 0) / 4 + stream] ?? 0
    return (words[table / 4] ?? 0) / 4
  }
  const copy = (pointer: number) => floats.slice(valuesAt(pointer), valuesAt(pointer) + count * features)
  const normsAt = (words[norms / 4 + codebook] ?? 0) / 4 + stream
  const model = {
    means: copy(means),
    variances: copy(variances),
    norms: floats.slice((words[normsAt] ?? 0) / 4, (words[normsAt] ?? 0) / 4 + count),
  }
  const pairs = {
    get: (): Pair[] =>
      Array.from({ length: topn }, (_, index) => ({
        number: words[list + 2 * index] ?? 0,
        score: words[list + 2 * index + 1] ?? 0,
      })),
    set: (given: readonly Pair[]) =>
      words.set(
        given.flatMap(({ number, score }) => [number, score]),
        list,
      ),
  }
  return { words, floats, model, pairs, list, scorer: scorer * 4, observed, stackAt: take(64) * 4 }
}

type Stage = ReturnType<typeof layOut>

/** One feature after another, in 32 bits. */
function scoreOf({ model, floats, observed }: Stage, gaussian: number): number {
  let score = model.norms[gaussian] ?? 0
  for (let feature = 0; feature < features; feature++) {
    const at = gaussian * features + feature
    const away = Math.fround((floats[observed + feature] ?? 0) - (model.means[at] ?? 0))
    score = Math.fround(score - Math.fround((model.variances[at] ?? 0) * Math.fround(away * away)))
  }
  return score
}

/** A pair that moves up to behind those that are better than it. */
function placed(pairs: readonly Pair[], pair: Pair): Pair[] {
  const at = pairs.findIndex(({ score }) => score <= pair.score)
  return at < 0 ? [...pairs, pair] : [...pairs.slice(0, at), pair, ...pairs.slice(at)]
}

test('the best Gaussians of a codebook, and their scores, are those that a look at one after another finds', async (t) => {
  const random = createRandom(11)
  const memory = new WebAssembly.Memory({ initial: 32 })
  const stage = layOut(memory, random)
  const { words, floats, pairs, list, scorer, observed } = stage
  const env = {
    memory,
    settle(at: number, index: number, score: number): void {
      t.equal(at, list * 4)
      const all = pairs.get()
      const moved = { number: all[index]?.number ?? 0, score }
      // Behind what scores the same.
      const before = all.slice(0, index)
      const place = before.findIndex((pair) => pair.score < score)
      before.splice(place < 0 ? index : place, 0, moved)
      pairs.set([...before, ...all.slice(index + 1)])
    },
    insert(_: number, worst: number, best: number, number: number, score: number): void {
      t.same([worst, best], [list * 4 + 8 * (topn - 1), list * 4])
      pairs.set(placed(pairs.get().slice(0, -1), { number, score }))
    },
  }
  gaussianOrderOf({ HEAP32: words, HEAPF32: floats })()
  const instance = new WebAssembly.Instance(new WebAssembly.Module(await loneGaussians(stage.stackAt)), { env })
  const { codebook: evaluate, best: settleBest, stack } = instance.exports
  pairs.set(Array.from({ length: topn }, (_, number) => ({ number: 16 * number, score: -(2 ** 31) })))
  const seen = new Set<number>()
  for (let frame = 0; frame < 200; frame++) {
    for (let feature = 0; feature < features; feature++) floats[observed + feature] = 4 * random.next() - 2
    const before = pairs.get()
    settleBest(scorer, codebook, stream, observed * 4)
    const settled = pairs.get()
    t.same(
      settled.toSorted((one, other) => one.number - other.number),
      before
        .map(({ number }) => ({ number, score: Math.trunc(scoreOf(stage, number)) }))
        .toSorted((one, other) => one.number - other.number),
    )
    let expected = settled
    for (let number = 0; number < count; number++) {
      const score = scoreOf(stage, number)
      if (score < Math.fround(expected.at(-1)?.score ?? 0) || expected.some((pair) => pair.number === number)) continue
      expected = placed(expected.slice(0, -1), { number, score: Math.trunc(score) })
    }
    evaluate(scorer, codebook, stream, observed * 4)
    t.same(pairs.get(), expected, `frame ${frame}`)
    t.equal(stack.value, stage.stackAt)
    for (const { number } of expected) seen.add(number)
  }
  t.ok(seen.size > 100, `${seen.size} of them were among the best some time`)
})

test('Gaussians of another shape than those that were measured are refused', (t) => {
  const memory = new WebAssembly.Memory({ initial: 32 })
  const { words, floats } = layOut(memory, createRandom(3))
  const order = gaussianOrderOf({ HEAP32: words, HEAPF32: floats })
  order()
  t.throws(order, /another shape/, 'those of each decoder once')
  t.throws(gaussianOrderOf({ HEAP32: new Int32Array(99), HEAPF32: new Float32Array(99) }), /another shape/)
  t.end()
})

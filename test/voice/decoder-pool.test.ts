/** Which decoder of a recognition thread hears which utterance, and how many there are. */
import { test } from 'tap'
import { createDecoderPool } from '../../voice/engines/embedded/decoder-pool.ts'
import type { Grammar } from '../../voice/engines/embedded/grammar.ts'
import type { LineModel } from '../../voice/engines/embedded/line-model.ts'
import type { Decoder } from '../../voice/engines/embedded/pocketsphinx.ts'

const grammar = (key: string): Grammar => ({ key, start: 0, end: 1, states: 2, words: [], transitions: [] })
const [drinks, seats] = [grammar('tea'), grammar('inside')]

function openPool(most: number) {
  const made: string[] = []
  let isBroken = false
  const create = (model: LineModel): Decoder => {
    if (isBroken) throw new Error('no memory')
    const known = new Set<string>()
    made.push(model)
    return {
      start: ({ key }) => void known.add(key),
      knows: ({ key }) => known.has(key),
      learn: (words) => void made.push(`${words.length} words`),
      feed: () => '',
      stop: () => [],
    }
  }
  const pool = createDecoderPool(most, create)
  const countOf = (model: LineModel) => made.filter((name) => name === model).length
  return { ...pool, made, countOf, breakDown: (broken: boolean) => void (isBroken = broken) }
}

test('who speaks after another one is heard by the same decoder', (t) => {
  const { take, giveBack, countOf } = openPool(4)
  const first = take('telephone', drinks)
  giveBack(first)
  for (let utterance = 1; utterance <= 20; utterance++) {
    t.equal(take('telephone', utterance % 2 ? drinks : seats), first)
    giveBack(first)
  }
  t.equal(countOf('telephone'), 1)
  t.end()
})

test('as many decoders of a model are made as are in use at once, up to the most, and they stay', (t) => {
  const { take, giveBack, countOf } = openPool(3)
  const taken = [take('telephone', drinks), take('telephone', drinks), take('telephone', drinks)] as const
  t.equal(new Set(taken).size, 3)
  t.throws(() => take('telephone', drinks), /more utterances than decoders/)
  t.ok(take('wide', drinks), 'of another model there are as many')
  giveBack(taken[1])
  giveBack(taken[1])
  t.equal(take('telephone', drinks), taken[1])
  t.throws(() => take('telephone', drinks), /more utterances than decoders/)
  t.same([countOf('telephone'), countOf('wide')], [3, 1])
  t.end()
})

test('of those that nobody uses one that has the grammar is taken first', (t) => {
  const { take, giveBack } = openPool(4)
  const [one, other] = [take('telephone', drinks), take('telephone', seats)]
  giveBack(one)
  giveBack(other)
  t.equal(take('telephone', seats), other)
  t.equal(take('telephone', seats), one)
  giveBack(other)
  giveBack(one)
  t.equal(take('telephone', drinks), one)
  t.end()
})

test('for callers on the line decoders are made ahead, one at a time, and they know the sounds that are in every grammar', (t) => {
  const { prepare, made, take, giveBack, countOf } = openPool(4)
  t.ok(prepare(0), 'one is there from the start')
  t.notOk(prepare(0))
  t.same(made, ['telephone', '39 words'])
  const prepareAll = (callers: number) => {
    while (prepare(callers));
    return [countOf('telephone'), countOf('wide')]
  }
  t.same(prepareAll(1), [1, 1], 'and one for whoever is no telephone')
  t.same(prepareAll(3), [3, 1])
  giveBack(take('wide', drinks))
  t.same(prepareAll(3), [3, 3], 'as many once somebody was none')
  t.same(prepareAll(2), [3, 3])
  t.same(prepareAll(9), [4, 4])
  t.end()
})

test('a decoder that cannot be made is of nobody, and another is tried for the next utterance', (t) => {
  const { take, breakDown, prepare } = openPool(2)
  take('telephone', drinks)
  breakDown(true)
  t.throws(() => take('telephone', drinks), /no memory/)
  t.throws(() => prepare(2), /no memory/)
  breakDown(false)
  t.ok(take('telephone', drinks))
  t.throws(() => take('telephone', drinks), /more utterances than decoders/)
  t.end()
})

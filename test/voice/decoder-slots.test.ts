/** Which decoder of a recognition thread hears which utterance, and how many there are. */
import { test } from 'tap'
import { createDecoderSlots } from '../../voice/engines/embedded/decoder-slots.ts'

function openSlots(most: number) {
  let made = 0
  const slots = createDecoderSlots(most, () => ++made)
  return { slots, made: () => made }
}

test('one decoder is there from the start, and is used again as long as one caller speaks at a time', (t) => {
  const { slots, made } = openSlots(4)
  t.equal(made(), 1)
  for (let utterance = 1; utterance <= 20; utterance++) {
    t.equal(slots.take(utterance), 1)
    t.equal(slots.of(utterance), 1)
    slots.giveBack(utterance)
    t.equal(slots.of(utterance), null)
  }
  t.equal(made(), 1)
  t.end()
})

test('as many decoders are made as speak at once, up to the most, and they stay', (t) => {
  const { slots, made } = openSlots(3)
  t.same([11, 12, 13].map(slots.take), [1, 2, 3])
  t.throws(() => slots.take(14), /more utterances than decoders/)
  t.equal(slots.of(14), null)
  slots.giveBack(12)
  slots.giveBack(12)
  slots.giveBack(99)
  t.equal(slots.take(15), 2)
  t.same([11, 13, 15].map(slots.of), [1, 3, 2])
  for (const utterance of [11, 13, 15]) slots.giveBack(utterance)
  t.same([16, 17, 18].map(slots.take), [1, 2, 3])
  t.equal(made(), 3)
  t.end()
})

test('a decoder that cannot be made is of nobody, and another is tried for the next utterance', (t) => {
  let isBroken = false
  const slots = createDecoderSlots(2, () => {
    if (isBroken) throw new Error('no memory')
    return 'decoder'
  })
  slots.take(1)
  isBroken = true
  t.throws(() => slots.take(2), /no memory/)
  t.equal(slots.of(2), null)
  isBroken = false
  t.equal(slots.take(3), 'decoder')
  t.end()
})

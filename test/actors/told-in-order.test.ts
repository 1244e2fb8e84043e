import { test } from 'tap'
import { createToldInOrder } from '../../actors/call/life/told-in-order.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { createRandom } from '../fake/random.ts'

const shown = (turnIndex: number, text: string): ServerMessage => ({
  type: 'transcript',
  role: 'agent',
  text,
  isFinal: false,
  turnIndex,
  ts: '2026-01-01T00:00:00.000Z',
})

const opened = () => {
  const sent: ServerMessage[] = []
  return { sent, told: createToldInOrder((message) => sent.push(message)) }
}

/** The steps that wait on the writing run. */
const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('what is being said is told at once while no turn is being written', (t) => {
  const { sent, told } = opened()
  told.tell(shown(0, 'Good'))
  t.same(sent, [shown(0, 'Good')])
  t.end()
})

for (const [how, end] of [
  ['written', (writing: PromiseWithResolvers<void>) => writing.resolve()],
  ['refused', (writing: PromiseWithResolvers<void>) => writing.reject(new Error('refused'))],
] as const)
  test(`what is said after a turn that is ${how} waits for it, and only the newest text of an utterance is told`, async (t) => {
    const { sent, told } = opened()
    const writing = Promise.withResolvers<void>()
    told.turnIsWritten(writing.promise)
    told.tell(shown(1, 'Good'))
    told.tell(shown(1, 'Good morning'))
    told.tell(shown(2, 'Are'))
    t.same(sent, [])
    end(writing)
    await turnOfTheLoop()
    t.same(sent, [shown(1, 'Good morning'), shown(2, 'Are')])
    told.tell(shown(2, 'Are you'))
    t.same(sent.at(-1), shown(2, 'Are you'), 'nothing waits afterwards')
  })

test('what was held of an utterance is not told behind its final text', async (t) => {
  const { sent, told } = opened()
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  told.turnIsWritten(first.promise)
  told.tell(shown(1, 'Good'))
  told.turnIsWritten(second.promise)
  told.tell({ ...shown(1, 'Good morning.'), isFinal: true } as ServerMessage)
  first.resolve()
  second.resolve()
  await turnOfTheLoop()
  t.same(sent, [{ ...shown(1, 'Good morning.'), isFinal: true }])
})

test('an interruption waits for nothing', (t) => {
  const { sent, told } = opened()
  told.turnIsWritten(new Promise(() => {}))
  told.tell({ type: 'interrupted' })
  t.same(sent, [{ type: 'interrupted' }])
  t.end()
})

test('of utterances without end that wait, a bounded number is kept, the newest', async (t) => {
  const { sent, told } = opened()
  const writing = Promise.withResolvers<void>()
  told.turnIsWritten(writing.promise)
  for (let index = 0; index < 1_000; index++) told.tell(shown(index, 'x'))
  writing.resolve()
  await turnOfTheLoop()
  t.same(
    sent.map((message) => message.type === 'transcript' && message.turnIndex),
    Array.from({ length: 16 }, (_, at) => 984 + at),
  )
})

test('whatever the order of commits, nothing is told between the begin and the end of one', async (t) => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = createRandom(seed)
    const { sent, told } = opened()
    const open: PromiseWithResolvers<void>[] = []
    let text = 0
    for (let act = 0; act < 40; act++) {
      const before = sent.length
      const kind = random.below(3)
      if (kind === 0) told.tell(shown(0, `${text++}`))
      if (kind === 1) {
        const writing = Promise.withResolvers<void>()
        open.push(writing)
        told.turnIsWritten(writing.promise)
      }
      if (kind === 2) open.shift()?.resolve()
      await turnOfTheLoop()
      if (open.length > 0 && sent.length > before) return t.fail('told in the midst of a commit', { seed, act })
    }
    for (const writing of open) writing.resolve()
    await turnOfTheLoop()
    const texts = sent.map((message) => (message.type === 'transcript' ? Number(message.text) : -1))
    const newest = text === 0 || texts.at(-1) === text - 1
    if (!newest || !texts.every((each, at) => at === 0 || each > texts[at - 1]!))
      return t.fail('out of order', { seed, texts })
  }
  return t.pass('200 seeds')
})

/** Second looks at what was not understood: who speaks meanwhile does not wait for them. */
import { test } from 'tap'
import type { HeardWords } from '../../voice/engines/embedded/recognition-messages.ts'
import { createSecondLooks } from '../../voice/engines/embedded/second-looks.ts'

const heard = (word: string): HeardWords => ({ words: [word], score: -12, worst: -12 })

/** Looks at utterances of so many pieces, and what else has its turn between them. */
function openLooks() {
  const log: string[] = []
  let next: (() => void) | null = null
  const looks = createSecondLooks((action) => void (next = action))
  const look = (name: string, pieces: number) => {
    let left = pieces
    const goOn = (): HeardWords | null => {
      log.push(name)
      return left-- === 0 ? heard(name) : null
    }
    return looks.take(
      { goOn },
      {
        done: ({ words }) => void log.push(`${words[0]} done`),
        failed: (error) => void log.push(`${name} ${(error as Error).message}`),
      },
    )
  }
  /** All of them, and in front of each piece somebody else's sound. */
  const run = (): void => {
    while (next) {
      const action: () => void = next
      next = null
      log.push('sound')
      action()
    }
  }
  return { looks, look, run, log }
}

test('second looks go one after another, and before each piece of them what callers say meanwhile is heard', (t) => {
  const { look, run, log } = openLooks()
  t.ok(look('a', 1))
  t.same(log, [], 'not even the first piece is in the way')
  t.ok(look('b', 0))
  run()
  t.same(log, ['sound', 'a', 'sound', 'a', 'a done', 'sound', 'b', 'b done'])
  t.ok(look('c', 0), 'and again when there was nothing to do')
  run()
  t.equal(log.at(-1), 'c done')
  t.end()
})

test('where four wait there is no other one, until one of them is over', (t) => {
  const { look, run, log } = openLooks()
  t.same(
    ['a', 'b', 'c', 'd', 'e'].map((name) => look(name, 3)),
    [true, true, true, true, false],
  )
  run()
  t.notOk(log.includes('e'))
  t.ok(look('f', 0))
  t.end()
})

test('a look that fails is told of, and the next one goes on', (t) => {
  const { looks, look, run, log } = openLooks()
  const goOn = (): null => {
    throw new Error('the recogniser refused: sound')
  }
  looks.take({ goOn }, { done: () => t.fail(), failed: (error) => void log.push((error as Error).message) })
  look('b', 0)
  run()
  t.same(log, ['sound', 'the recogniser refused: sound', 'sound', 'b', 'b done'])
  t.end()
})

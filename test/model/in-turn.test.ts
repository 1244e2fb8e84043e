/** What calls begin and end with, when many come in one moment: how much of it is done in a turn of the event loop. */
import { test } from 'tap'
import { createInTurn } from '../../model/in-turn.ts'

/** Each work takes `ms`; `turn` begins the next turn of the event loop and answers what was done in it. */
function openTurns() {
  let now = 0
  let later: (() => void)[] = []
  const done: number[] = []
  const inTurn = createInTurn({ now: () => now, later: (action) => void later.push(action) })
  const taken = (): number[] => done.splice(0)
  return {
    work: (name: number, ms: number) =>
      inTurn(() => {
        now += ms
        done.push(name)
      }),
    taken,
    turn(): number[] {
      const actions = later
      later = []
      for (const action of actions) action()
      return taken()
    },
    isAtRest: () => later.length === 0,
  }
}

test('a call that comes alone waits for nothing, however long its beginning takes', (t) => {
  const { work, taken, turn, isAtRest } = openTurns()
  work(1, 30)
  t.same(taken(), [1])
  while (!isAtRest()) t.same(turn(), [])
  work(2, 0.1)
  t.same(taken(), [2])
  t.end()
})

test('of many that come in one moment a little is done in each turn, in their order', (t) => {
  const { work, taken, turn, isAtRest } = openTurns()
  for (let name = 0; name < 12; name++) work(name, 0.5)
  t.same(taken(), [0, 1, 2, 3], 'as much as has room in one slot of the beat')
  t.same(turn(), [4, 5, 6, 7])
  work(12, 0.5)
  t.same(taken(), [], 'who comes later waits behind them')
  t.same(turn(), [8, 9, 10, 11])
  t.same(turn(), [12])
  t.same([turn(), isAtRest()], [[], true], 'and nothing is left behind')
  t.end()
})

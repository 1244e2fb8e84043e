/** Turns that were written behind others, and said before them. */
import t from 'tap'
import { inSpokenOrder } from '../../model/spoken-order.ts'

const turn = (text: string, from: number, to: number) => ({ text, from, to })
const textsOf = (turns: ReturnType<typeof turn>[]): string[] => inSpokenOrder(turns).map(({ text }) => text)

t.same(
  textsOf([
    turn('a', 0, 9),
    turn('d', 50, 60),
    turn('e', 60, 70),
    turn('b', 10, 20),
    turn('c', 21, 21),
    turn('f', 80, 90),
  ]),
  ['a', 'b', 'c', 'd', 'e', 'f'],
)
t.same(textsOf([turn('over', 20, 30), turn('agent', 0, 60), turn('typed', 60, 60)]), ['over', 'agent', 'typed'])
t.same(textsOf([turn('b', 5, 6), turn('a', 1, 2)]), ['a', 'b'])

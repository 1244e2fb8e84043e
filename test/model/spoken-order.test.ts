/** Turns that were written behind others, and said before them. */
import t from 'tap'
import { inSpokenOrder } from '../../model/spoken-order.ts'

const turns = (...given: readonly (readonly [text: string, from: number, to: number])[]) =>
  given.map(([text, from, to], turnIndex) => ({ text, from, to, turnIndex }))
const textsOf = (given: ReturnType<typeof turns>, ...found: number[]): string[] =>
  inSpokenOrder(given, new Set(found)).map(({ text }) => text)

const talk = turns(['a', 0, 9], ['d', 50, 60], ['e', 60, 70], ['b', 10, 20], ['c', 21, 21], ['f', 80, 90])
t.same(textsOf(talk, 3, 4), ['a', 'b', 'c', 'd', 'e', 'f'])
t.same(textsOf(talk), ['a', 'd', 'e', 'b', 'c', 'f'], 'of those that were not found their numbers tell')
t.same(textsOf(turns(['over', 20, 30], ['agent', 0, 60], ['typed', 60, 60]), 2), ['over', 'agent', 'typed'])
t.same(textsOf(turns(['b', 5, 6], ['a', 1, 2]), 1), ['a', 'b'])

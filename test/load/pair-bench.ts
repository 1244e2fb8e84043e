/**
 * Owns `npm run bench pair <git-ref> [rounds=3] [own-bench] <words of a bench …>`: the same bench on another state of the project and on this one, in
 * turns, so that whatever else the machine does meets both. Printed are the medians, and the median of the ratios of each pair with its spread.
 */
import { rm } from 'node:fs/promises'
import process from 'node:process'
import { figuresOf, type Figure } from './printed-figures.ts'
import { runBench, stoppedBySignals } from './run-bench.ts'
import { checkOut, makePairFolder, root, type SourceAt } from './source-at.ts'
import { printTable, quantile } from './table.ts'

type Wish = {
  readonly ref: string
  readonly rounds: number
  /** The other state is measured by its own benches; else by these, as far as it has what they need. */
  readonly ownBench: boolean
  readonly words: readonly string[]
}
type Pair = { readonly before: readonly Figure[]; readonly after: readonly Figure[] }

const defaultRounds = 3

const usage = 'usage: npm run bench pair <git-ref> [rounds=3] [own-bench] <words of a bench …>'

export async function benchPair(given: readonly string[]): Promise<void> {
  const wish = wishOf(given)
  if (!wish) {
    console.log(usage)
    process.exitCode = 2
    return
  }
  const stopping = stoppedBySignals()
  const folder = await makePairFolder()
  try {
    await compare(wish, folder, stopping)
  } catch (error) {
    if (!stopping.aborted) throw error
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  // A signal that came has taken the place of its usual effect.
  process.exit()
}

export function wishOf(given: readonly string[]): Wish | null {
  const [ref, ...rest] = given
  const isOption = (word: string): boolean => /^rounds=\d+$/.test(word) || word === 'own-bench'
  const words = rest.filter((word) => !isOption(word))
  if (ref === undefined || words.length === 0) return null
  const rounds = Number(rest.find((word) => word.startsWith('rounds='))?.slice('rounds='.length) ?? defaultRounds)
  return { ref, rounds, ownBench: rest.includes('own-bench'), words }
}

async function compare({ ref, rounds, ownBench, words }: Wish, folder: string, signal: AbortSignal): Promise<void> {
  const former = await checkOut(folder, ref, !ownBench)
  const current = { folder: root, temporary: former.temporary }
  const pairs: Pair[] = []
  for (let round = 0; round < rounds; round++) {
    // Who is first changes: what drifts in one direction favours nobody.
    const order = round % 2 === 0 ? ([former, current] as const) : ([current, former] as const)
    console.log(`round ${round + 1} of ${rounds}`)
    const first = await run(order[0], words, signal)
    const second = await run(order[1], words, signal)
    pairs.push(round % 2 === 0 ? { before: first, after: second } : { before: second, after: first })
  }
  console.log(`\n${words.join(' ')}: ${ref} and this state, ${rounds} pairs`)
  printTable(comparisonOf(pairs))
}

async function run(source: SourceAt, words: readonly string[], signal: AbortSignal): Promise<Figure[]> {
  const { code, printed } = await runBench(source, words, signal)
  const figures = figuresOf(printed)
  if (code === 0 && figures.length > 0) return figures
  throw new Error(`the bench in ${source.folder} ended with ${code} and printed no figures:\n${printed}`)
}

/** Rows of figures that all runs have printed. */
export function comparisonOf(pairs: readonly Pair[]): Record<string, string>[] {
  const keyOf = ({ row, column }: Figure): string => `${row}\n${column}`
  const runs = pairs.map(({ before, after }) => ({
    before: new Map(before.map((figure) => [keyOf(figure), figure.value])),
    after: new Map(after.map((figure) => [keyOf(figure), figure.value])),
  }))
  return (pairs[0]?.before ?? []).flatMap((figure) => {
    const both = runs.map(({ before, after }) => [before.get(keyOf(figure)), after.get(keyOf(figure))] as const)
    const [before, after] = [0, 1].map((side) => both.flatMap((pair) => pair[side as 0 | 1] ?? [])) as [
      number[],
      number[],
    ]
    if (before.length < pairs.length || after.length < pairs.length) return []
    const ratios = before.flatMap((value, at) => (value === 0 ? [] : [(after[at] as number) / value]))
    return [
      {
        row: figure.row,
        figure: figure.column,
        before: plain(quantile(before, 0.5)),
        after: plain(quantile(after, 0.5)),
        'after / before (of each pair)': ratios.length < pairs.length ? '-' : spread(ratios),
      },
    ]
  })
}

const plain = (value: number): string => String(Number(value.toPrecision(4)))
const spread = (ratios: readonly number[]): string =>
  `${quantile(ratios, 0.5).toFixed(3)} (${quantile(ratios, 0).toFixed(3)}–${quantile(ratios, 1).toFixed(3)})`

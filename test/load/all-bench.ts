/**
 * Owns `npm run bench all [repeats=3] [tiny] [name …]`: benches with short words, one after the other, each with its peer or floor in the same run, several times in turns; those that
 * take minutes run once. Medians of the repeats, the machine and the commit are written to bench/results/.
 */
import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { figuresOf, type Figure } from './printed-figures.ts'
import { runBench, stoppedBySignals } from './run-bench.ts'
import { root } from './source-at.ts'
import { quantile } from './table.ts'

type Entry = {
  readonly name: string
  /** Of `npm run bench`, where it is not the name. */
  readonly bench?: string
  /** What stands beside it in the same run. */
  readonly beside: string
  readonly words: readonly string[]
  /** Enough to see that it runs; its figures are none. */
  readonly tiny: readonly string[]
  /** It takes minutes. */
  readonly once?: true
}

const entries: readonly Entry[] = [
  { name: 'echo', beside: 'the floor itself: a bare UDP socket', words: ['seconds=5', '50'], tiny: ['seconds=1', '2'] },
  {
    name: 'sip',
    beside: 'bare UDP echo, rtpengine',
    words: ['talk', 'seconds=10', '50'],
    tiny: ['talk', 'seconds=1', '2'],
  },
  {
    name: 'web',
    beside: 'bare UDP echo, bare werift, @roamhq/wrtc',
    words: ['talk', 'seconds=10', '20'],
    tiny: ['talk', 'seconds=1', '2'],
  },
  { name: 'setup', beside: 'an empty beat', words: ['seconds=5', '50'], tiny: ['seconds=1', 'beside=2', '5'] },
  { name: 'api', beside: 'bare fastify', words: ['1'], tiny: ['0.05'] },
  {
    name: 'mcp',
    beside: 'the same query over REST, and an example server of the official SDK',
    words: ['1'],
    tiny: ['0.05'],
  },
  { name: 'burst', beside: 'the running calls before it', words: ['150', '20'], tiny: ['5', '2'] },
  { name: 'steps', beside: 'fewer and more of them a second', words: ['20', '100'], tiny: ['5'] },
  { name: 'turns', beside: 'an engine that remembers nothing', words: [], tiny: ['2'] },
  {
    name: 'tools',
    bench: 'turns',
    beside: 'two commits and a bare request',
    words: ['tools'],
    tiny: ['tools', '3'],
  },
  { name: 'webhooks', beside: 'the same while one endpoint hangs', words: ['10'], tiny: ['1'], once: true },
  { name: 'memory', beside: 'the process before it', words: ['sip'], tiny: ['sip', '2'], once: true },
  {
    name: 'hosted',
    bench: 'voice',
    beside: 'what the provider itself took',
    words: ['hosted'],
    tiny: ['hosted'],
    once: true,
  },
  {
    name: 'admission',
    beside: 'the same without the gate before new calls',
    words: ['sip', '10'],
    tiny: ['sip', '1'],
    once: true,
  },
  { name: 'opus', beside: 'G.711', words: [], tiny: [], once: true },
  {
    name: 'growth',
    beside: 'an account of a tenth',
    words: ['5000', '50000'],
    tiny: ['100', '200'],
    once: true,
  },
  { name: 'console', beside: 'its own pages', words: ['50000'], tiny: ['100'], once: true },
  {
    name: 'start',
    beside: 'a bare process that wakes as often',
    words: ['rest=30'],
    tiny: ['rest=1'],
    once: true,
  },
]

export type Median = {
  readonly row: string
  readonly column: string
  readonly median: number
  readonly least: number
  readonly most: number
  readonly runs: number
}

export type BenchResult = {
  readonly name: string
  readonly beside: string
  /** Behind `npm run bench`. */
  readonly words: readonly string[]
  readonly figures: readonly Median[]
  /** Repeats that ended badly. */
  readonly failed: number
}

type Wish = { readonly repeats: number; readonly isTiny: boolean; readonly chosen: readonly Entry[] }

/** A string says what is wrong. */
export function wishOf(given: readonly string[]): Wish | string {
  const names = given.filter((word) => word !== 'tiny' && !word.startsWith('repeats='))
  const unknown = names.find((name) => entries.every((entry) => entry.name !== name))
  if (unknown !== undefined)
    return `usage: npm run bench all [repeats=3] [tiny] [${entries.map(({ name }) => name).join(' | ')} …]; ${unknown} is none of them`
  const repeats = given.find((word) => word.startsWith('repeats='))?.slice('repeats='.length) ?? '3'
  if (!/^[1-9]\d?$/.test(repeats)) return `repeats= must be a whole number from 1 to 99, not ${repeats}`
  const chosen = names.length === 0 ? entries : entries.filter(({ name }) => names.includes(name))
  return { repeats: Number(repeats), isTiny: given.includes('tiny'), chosen }
}

export async function benchAll(given: readonly string[]): Promise<void> {
  const wish = wishOf(given)
  if (typeof wish === 'string') {
    console.log(wish)
    process.exitCode = 2
    return
  }
  const signal = stoppedBySignals()
  try {
    const facts = factsOf(wish)
    const results = await runAll(wish, signal)
    const folder = path.join(root, 'bench', 'results')
    await mkdir(folder, { recursive: true })
    const name = `${facts.at.slice(0, 19).replaceAll(':', '')}${wish.isTiny ? '-tiny' : ''}`
    await writeFile(
      path.join(folder, `${name}.json`),
      `${JSON.stringify({ parleyBench: 1, ...facts, results }, null, 2)}\n`,
    )
    const table = markdownOf(facts, results)
    await writeFile(path.join(folder, `${name}.md`), table)
    console.log(`\n${table}\nbench/results/${name}.json and .md`)
    if (results.some(({ failed, figures }) => failed > 0 || figures.length === 0)) process.exitCode = 1
  } catch (error) {
    if (!signal.aborted) throw error
  }
  process.exit()
}

/** In turns, so that a bad minute of the machine meets all of them. */
async function runAll({ repeats, isTiny, chosen }: Wish, signal: AbortSignal): Promise<BenchResult[]> {
  const runs = new Map(chosen.map(({ name }) => [name, [] as Figure[][]]))
  const failed = new Map<string, number>()
  for (let repeat = 1; repeat <= repeats; repeat++)
    for (const { name, bench = name, words, tiny, once } of chosen) {
      if (once && repeat > 1) continue
      console.log(`${name}, ${once ? 'once' : `${repeat} of ${repeats}`} …`)
      const { code, printed } = await runBench({ folder: root }, [bench, ...(isTiny ? tiny : words)], signal)
      if (code === 0) runs.get(name)?.push(figuresOf(printed))
      else failed.set(name, (failed.get(name) ?? 0) + 1)
    }
  return chosen.map(({ name, bench = name, beside, words, tiny }) => ({
    name,
    beside,
    words: [bench, ...(isTiny ? tiny : words)],
    figures: mediansOf(runs.get(name) ?? []),
    failed: failed.get(name) ?? 0,
  }))
}

/** Of each figure that all repeats have printed. */
export function mediansOf(runs: readonly (readonly Figure[])[]): Median[] {
  return (runs[0] ?? []).flatMap(({ row, column }) => {
    const values = runs.flatMap(
      (figures) => figures.find((one) => one.row === row && one.column === column)?.value ?? [],
    )
    if (values.length < runs.length) return []
    const [median, least, most] = [0.5, 0, 1].map((share) => quantile(values, share)) as [number, number, number]
    return [{ row, column, median, least, most, runs: values.length }]
  })
}

type Facts = ReturnType<typeof factsOf>

function factsOf({ repeats, isTiny }: Wish) {
  const git = (...words: string[]): string => spawnSync('git', words, { cwd: root, encoding: 'utf8' }).stdout.trim()
  return {
    at: new Date().toISOString(),
    commit: git('rev-parse', '--short', 'HEAD'),
    isChanged: git('status', '--porcelain', '--untracked-files=no') !== '',
    repeats,
    isTiny,
    machine: {
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: availableParallelism(),
      memoryMb: Math.round(totalmem() / 1e6),
      system: `${process.platform} ${release()}`,
      node: process.version,
      /** Of the last minute, before anything was measured: what else was running. */
      load: Number((loadavg()[0] ?? 0).toFixed(2)),
    },
  }
}

export function markdownOf(facts: Facts, results: readonly BenchResult[]): string {
  const { at, commit, isChanged, repeats, isTiny, machine } = facts
  const { cpu, cores, memoryMb, system, node, load } = machine
  const head = [
    `# Benches of ${at.slice(0, 10)}`,
    '',
    `Commit ${commit}${isChanged ? ' with changes' : ''}; ${cpu}, ${cores} cores, ${memoryMb} MB, ${system}, Node ${node}; load before it ${load}. Medians of ${repeats}, or the only run.`,
    ...(isTiny ? ['', 'Tiny sizes: they show that the benches run, and no figure of them means anything.'] : []),
  ]
  const parts = results.flatMap(({ name, beside, words, figures, failed }) => [
    '',
    `## ${name}: \`npm run bench ${words.join(' ')}\``,
    '',
    `Beside it: ${beside}.${failed > 0 ? ` ${failed} of ${repeats} runs failed.` : ''}`,
    ...(figures.length === 0 ? [] : ['', '| row | figure | median | least | most |', '|---|---|---|---|---|']),
    ...figures.map(
      ({ row, column, median, least, most }) =>
        `| ${row} | ${column} | ${plain(median)} | ${plain(least)} | ${plain(most)} |`,
    ),
  ])
  return `${[...head, ...parts].join('\n')}\n`
}

const plain = (value: number): string => String(Number(value.toPrecision(4)))

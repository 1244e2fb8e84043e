/**
 * Owns the test run: the files named on the command line, those of the fast tier for `--fast`, or all. Tells what each said when it is over, repeats
 * what failed at its end, where it is found, names the files that took longest, and closes with `N passed, N failed, N skipped` alone on a line.
 * Of the whole suite the few files that failed beside others run once more, alone: calls are real time, and files that share two cores may be late
 * by no fault of theirs. What passes alone is told by name and not counted as failed.
 */
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { runFile, type Count, type FileRun } from './run-file.ts'
import { createTurns, type Lanes } from './test-order.ts'
import { allTests, fastTests } from './tiers.ts'

/** So many lines of what failed are repeated: one broken import fails everything. */
const repeatedLines = 400
const slowestFiles = 10
/** More failures than these are no accident of the moment. */
const filesRunAgain = 6

/** Three that wait share two cores well; what computes takes what they leave. */
const usual: Lanes = { all: 4, waiting: 2, waitingAlone: 3 }
const threeOfAny: Lanes = { all: 3, waiting: 3, waitingAlone: 3 }
const alone: Lanes = { all: 1, waiting: 1, waitingAlone: 1 }
/** Fast tests wait for sockets more than they compute. */
const many = 2 * availableParallelism()
const fast: Lanes = { all: many, waiting: many, waitingAlone: many }

async function runAll(files: readonly string[], lanes: Lanes): Promise<FileRun[]> {
  const turns = createTurns(files, lanes)
  const runs: FileRun[] = []
  const lane = async (): Promise<void> => {
    for (let turn = turns.next(); turn; turn = turns.next()) {
      const run = await runFile(turn.file, turn.yields && lanes.all > 1)
      turn.done()
      runs.push(run)
      console.log([`# Subtest: ${run.file}`, ...run.lines.map((line) => `    ${line}`)].join('\n'))
      console.log(`${run.isGood ? 'ok' : 'not ok'} ${runs.length} - ${run.file} # time=${run.ms.toFixed(0)}ms\n`)
    }
  }
  await Promise.all(Array.from({ length: lanes.all }, lane))
  return runs
}

const sumOf = (runs: readonly FileRun[], of: keyof Count): number => runs.reduce((sum, { count }) => sum + count[of], 0)

function tellFailed(runs: readonly FileRun[]): readonly string[] {
  const failed = runs.filter(({ isGood }) => !isGood)
  const lines = failed.flatMap(({ file, failures }) => [`not ok - ${file}`, ...failures])
  if (failed.length > 0)
    console.log(`\nWhat failed, each followed by what holds it:\n${lines.slice(0, repeatedLines).join('\n')}\n`)
  return failed.map(({ file }) => file)
}

function tellSlowest(runs: readonly FileRun[]): void {
  const slowest = runs.toSorted((one, other) => other.ms - one.ms).slice(0, slowestFiles)
  const lines = slowest.map(({ file, ms }) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`)
  console.log(`\nThe slowest files:\n${lines.join('\n')}\n`)
}

const given = process.argv.slice(2)
const isFast = given.includes('--fast')
const named = given.filter((word) => word !== '--fast')
const isWhole = given.length === 0
const cwd = path.resolve(import.meta.dirname, '..')
/** A folder stands for all that is in it. */
const foundBy = (name: string): string[] =>
  globSync(name.endsWith('.ts') ? name : `${name}/**/*.test.ts`, { cwd }).toSorted()
const wanted = new Map(named.map((name) => [name, foundBy(name)]))
const files = isFast ? fastTests() : isWhole ? allTests() : [...new Set([...wanted.values()].flat())]
const unknown = named.filter((name) => wanted.get(name)?.length === 0)
for (const name of unknown) console.log(`there is no such test: ${name}`)

const first = await runAll(files, isFast ? fast : isWhole ? usual : threeOfAny)
const failed = tellFailed(first)
tellSlowest(first)
const again = isWhole && failed.length > 0 && failed.length <= filesRunAgain ? await runAll(failed, alone) : null
if (again) {
  const left = tellFailed(again)
  for (const file of failed.filter((one) => !left.includes(one)))
    console.log(`Failed beside others and passed alone: ${file}`)
}
const failures = sumOf(again ?? first, 'fail') + unknown.length
console.log(`${sumOf(first, 'pass')} passed, ${failures} failed, ${sumOf(first, 'skip')} skipped`)
process.exitCode = failures > 0 ? 1 : 0

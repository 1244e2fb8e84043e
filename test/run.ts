/**
 * Owns the test run: starts tap (with the files named on the command line, those of the fast tier for `--fast`, or all), copies its report to
 * the terminal, repeats what failed at its end, where it is found, names the files that took longest, and closes with
 * `N passed, N failed, N skipped` alone on a line. Of the whole suite the few files that failed beside others run once more, alone: calls are
 * real time, and files that share two cores may be late by no fault of theirs. What passes alone is told by name and not counted as failed.
 */
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fastTests } from './tiers.ts'

/** So many lines of what failed are repeated: one broken import fails everything. */
const repeatedLines = 400
const slowestFiles = 10
/** More failures than these are no accident of the moment. */
const filesRunAgain = 6

const compiled = path.resolve(import.meta.dirname, '../node_modules/.cache/node-compile')
const tap = path.join(path.dirname(createRequire(import.meta.url).resolve('tap/package.json')), 'dist/esm/run.mjs')
/** Fast tests wait for sockets more than they compute. What all tests run with, which speak in real time, says .taprc. */
const fast = (): string[] => [`--jobs=${2 * availableParallelism()}`, ...fastTests()]
const given = process.argv.slice(2).flatMap((word) => (word === '--fast' ? fast() : [word]))
type Outcome = {
  readonly count: { readonly pass: number; readonly fail: number; readonly skip: number }
  /** The report's lines of what failed. */
  readonly failed: readonly string[]
  readonly failedFiles: readonly string[]
  /** Ms by file. */
  readonly took: ReadonlyMap<string, number>
  readonly code: number
  /** tap came to its end: what it did not run is in no count. */
  readonly isWhole: boolean
}

async function runTap(words: readonly string[]): Promise<Outcome> {
  const child = spawn(process.execPath, [tap, '--reporter=tap', ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // Every file is a process that compiles mostly the same modules.
    env: { NODE_COMPILE_CACHE: compiled, ...process.env },
  })
  const exited = new Promise<number>((resolve) => child.once('exit', (exit) => resolve(exit ?? 1)))
  const count = { pass: 0, fail: 0, skip: 0 }
  const failed: string[] = []
  const failedFiles: string[] = []
  const took = new Map<string, number>()
  let isWhole = false
  /** Indentation of the diagnosis that follows a failure, while it lasts. */
  let diagnosis: number | null = null
  for await (const line of createInterface({ input: child.stdout })) {
    console.log(line)
    const indent = line.search(/\S/)
    if (diagnosis !== null && indent >= 0 && indent <= diagnosis) diagnosis = null
    if (/^\s*not ok (?!.*# (?:TODO|SKIP))/.test(line)) diagnosis = indent
    if (diagnosis !== null && failed.length < repeatedLines) failed.push(line)
    const [, not, file, ms] = /^(not )?ok \d+ - (\S+\.test\.ts) # time=([\d.]+)ms/.exec(line) ?? []
    if (file && ms) took.set(file, Number(ms))
    if (file && not) failedFiles.push(file)
    const summary = /^# \{(.*)\}$/.exec(line)?.[1]
    isWhole ||= summary !== undefined
    for (const [, name, number] of summary?.matchAll(/(pass|fail|skip): (\d+)/g) ?? [])
      count[name as keyof typeof count] = Number(number)
  }
  return { count, failed, failedFiles, took, isWhole, code: await exited }
}

const tellFailed = (failed: readonly string[]): void => {
  if (failed.length > 0) console.log(`\nWhat failed, each followed by what holds it:\n${failed.join('\n')}\n`)
}

const first = await runTap(given)
tellFailed(first.failed)
const slowest = [...first.took].toSorted(([, one], [, other]) => other - one).slice(0, slowestFiles)
const lines = slowest.map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`)
console.log(`\nThe slowest files:\n${lines.join('\n')}\n`)
const again = given.length === 0 && first.failedFiles.length > 0 && first.failedFiles.length <= filesRunAgain
const alone = again ? await runTap(['--jobs=1', ...first.failedFiles]) : null
if (alone) {
  tellFailed(alone.failed)
  const passed = first.failedFiles.filter((file) => !alone.failedFiles.includes(file))
  for (const file of passed) console.log(`Failed beside others and passed alone: ${file}`)
}
const { code, count } = alone ?? first
const broken = first.isWhole && (alone?.isWhole ?? true) ? 0 : 1
if (broken) console.log('tap ended before its tests did: what it had not run counts as one failure')
console.log(`${first.count.pass} passed, ${count.fail + broken} failed, ${first.count.skip} skipped`)
process.exitCode = code || broken

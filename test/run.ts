/**
 * Owns the test run: starts tap (with the files named on the command line, or all), copies its report to the
 * terminal, repeats what failed at its end, where it is found, and closes with `N passed, N failed, N skipped` alone
 * on a line. The exit code is tap's.
 */
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import path from 'node:path'
import { createInterface } from 'node:readline'

/** So many lines of what failed are repeated: one broken import fails everything. */
const repeatedLines = 400

const tap = path.join(path.dirname(createRequire(import.meta.url).resolve('tap/package.json')), 'dist/esm/run.mjs')
const child = spawn(process.execPath, [tap, '--reporter=tap', ...process.argv.slice(2)], {
  stdio: ['ignore', 'pipe', 'inherit'],
})

const count = { pass: 0, fail: 0, skip: 0 }
const failed: string[] = []
/** Indentation of the diagnosis that follows a failure, while it lasts. */
let diagnosis: number | null = null
for await (const line of createInterface({ input: child.stdout })) {
  console.log(line)
  const indent = line.search(/\S/)
  if (diagnosis !== null && indent >= 0 && indent <= diagnosis) diagnosis = null
  if (/^\s*not ok (?!.*# (?:TODO|SKIP))/.test(line)) diagnosis = indent
  if (diagnosis !== null && failed.length < repeatedLines) failed.push(line)
  const summary = /^# \{(.*)\}$/.exec(line)?.[1]
  for (const [, name, number] of summary?.matchAll(/(pass|fail|skip): (\d+)/g) ?? [])
    count[name as keyof typeof count] = Number(number)
}
const code = await new Promise<number>((resolve) => {
  if (child.exitCode !== null) return resolve(child.exitCode)
  child.once('exit', (exit) => resolve(exit ?? 1))
})
if (failed.length > 0) console.log(`\nWhat failed, each followed by what holds it:\n${failed.join('\n')}\n`)
console.log(`${count.pass} passed, ${count.fail} failed, ${count.skip} skipped`)
process.exitCode = code

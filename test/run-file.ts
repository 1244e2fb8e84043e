/** Owns the run of one test file in a process of its own: what it said, how it counted, and that it ends. */
import { spawn } from 'node:child_process'
import { setPriority } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'

export type Count = { readonly pass: number; readonly fail: number; readonly skip: number }

export type FileRun = {
  readonly file: string
  readonly lines: readonly string[]
  /** The lines of what failed. */
  readonly failures: readonly string[]
  readonly count: Count
  readonly ms: number
  readonly isGood: boolean
}

/** Seconds, on a busy machine. tap tells what is still open then, and ends the process. */
const mostSeconds = 600
/** Ms after which a process that did not even do that is killed. */
const killAfter = (mostSeconds + 30) * 1000
/** Niceness: enough to come second, and not so much that a busy machine keeps it from its own deadlines. */
const lower = 2

const root = path.resolve(import.meta.dirname, '..')
/** Every file is a process that compiles mostly the same modules. */
const compiled = path.join(root, 'node_modules/.cache/node-compile')

/** `yields`: what speaks in real time goes first. */
export async function runFile(file: string, yields: boolean): Promise<FileRun> {
  const began = performance.now()
  const child = spawn(process.execPath, [file], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { NODE_COMPILE_CACHE: compiled, TAP_TIMEOUT: String(mostSeconds), ...process.env },
  })
  if (yields && child.pid !== undefined) setPriority(child.pid, lower)
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(code === 0 ? '' : `ended with ${signal ?? code}`))
  })
  const kill = setTimeout(() => child.kill('SIGKILL'), killAfter)
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) lines.push(line)
  const fault = await ended
  clearTimeout(kill)
  return { file, lines, ms: performance.now() - began, ...judge(lines, fault) }
}

/** `fault`: how the process ended, if not well. What it had not run is in no count. */
export function judge(lines: readonly string[], fault: string): Pick<FileRun, 'failures' | 'count' | 'isGood'> {
  const summary = lines.findLast((line) => line.startsWith('# { total: '))
  const numberOf = (name: keyof Count): number => Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary ?? '')?.[1] ?? 0)
  const count = { pass: numberOf('pass'), fail: numberOf('fail'), skip: numberOf('skip') }
  if (fault === '' && summary !== undefined && count.fail === 0) return { failures: [], count, isGood: true }
  const broken = summary === undefined ? ['it ended before its tests did'] : []
  const failures = [...failuresIn(lines), ...broken, ...(fault === '' ? [] : [fault])]
  return { failures, count: { ...count, fail: Math.max(1, count.fail) }, isGood: false }
}

/** Each with its diagnosis, which is what stands further in below it. */
function failuresIn(lines: readonly string[]): string[] {
  let depth: number | null = null
  return lines.filter((line) => {
    const indent = line.search(/\S/)
    if (depth !== null && indent >= 0 && indent <= depth) depth = null
    if (/^\s*not ok (?!.*# (?:TODO|SKIP))/.test(line)) depth = indent
    return depth !== null
  })
}

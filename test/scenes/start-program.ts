/** Owns `npm start` as an operator runs it, in tests: what it wrote, and how it says no. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import process from 'node:process'
import type { Test } from 'tap'
import { soundThreads } from './sound-threads.ts'

const program = path.join(import.meta.dirname, '../../tools/start/start.ts')

/** Ports that are free, no call to itself. */
export const quick = { PORT: '0', SIP: 'off', SELF_TEST: 'off' }

type Started = {
  readonly child: ChildProcess
  readonly out: () => string
  readonly err: () => string
  readonly exited: Promise<number | null>
}

export function startProgram(
  t: Pick<Test, 'teardown'>,
  command: readonly string[],
  settings: Record<string, string>,
  cwd: string,
): Started {
  const [name = '', ...args] = command
  // Outside of the test's own npm, and of the repository, so that nobody's `.env` is read.
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...soundThreads(), ...settings }
  const child = spawn(name, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const text = { out: '', err: '' }
  child.stdout.on('data', (bytes: Buffer) => void (text.out += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => void (text.err += bytes.toString()))
  const exited = once(child, 'close').then(([code]) => code as number | null)
  t.teardown(() => void child.kill('SIGKILL'))
  return { child, out: () => text.out, err: () => text.err, exited }
}

export const startNode = (t: Pick<Test, 'teardown'>, settings: Record<string, string>, cwd: string): Started =>
  startProgram(t, [process.execPath, program], { ...quick, ...settings }, cwd)

/** How it says no: its exit code, and what it wrote for the operator. */
export async function refusalOf(t: Test, folder: string, settings: Record<string, string>) {
  const started = startNode(t, { DATA_DIR: path.join(folder, 'data'), LOG_LEVEL: 'silent', ...settings }, folder)
  return { code: await started.exited, err: started.err().trimEnd(), out: started.out() }
}

/**
 * Owns a program that belongs to this process: what it writes goes to a file, and it ends with us, however we end: the kernel sees to that where
 * there is `setpriv` (Linux). Start it from the main thread, whose end the kernel looks at.
 */
import { execFile, spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

export type ChildWish = {
  readonly name: string
  readonly program: string
  readonly args: readonly string[]
  /** All that it gets of an environment. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** Appended to; made where there is none, for this user alone. */
  readonly logFile: string
  /** False: it sees to its end with us by itself. */
  readonly bound?: boolean
}

export type Child = {
  readonly name: string
  readonly pid: number
  /** How it ended: `exit 0`, `SIGKILL`. */
  readonly ended: Promise<string>
  isOver(): boolean
  /** Nothing when it is over. */
  signal(name: NodeJS.Signals): void
  /** SIGTERM, and SIGKILL after `ms`; how it ended. Idempotent. */
  end(ms: number): Promise<string>
}

/** Rejects when the program cannot be started at all. */
export async function startChild(wish: ChildWish): Promise<Child> {
  const { program, args } = wish.bound === false ? wish : await bound(wish)
  const file = await open(wish.logFile, 'a', 0o600)
  // A group of its own: Ctrl-C in a terminal is for us, who end it in order.
  const options = { stdio: ['ignore', file.fd, file.fd] as ['ignore', number, number], detached: true }
  const child = spawn(program, args, { ...options, cwd: wish.cwd, env: wish.env })
  let how: string | null = null
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve((how = signal ?? `exit ${code}`)))
  })
  const started = new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  try {
    await started
  } finally {
    await file.close()
  }
  const signal = (name: NodeJS.Signals): void => void (how === null && child.kill(name))
  return {
    name: wish.name,
    pid: child.pid ?? 0,
    ended,
    isOver: () => how !== null,
    signal,
    async end(ms) {
      // Who is stopped hears nothing but SIGKILL.
      signal('SIGCONT')
      signal('SIGTERM')
      const late = new AbortController()
      const kill = pause(ms, undefined, { signal: late.signal }).then(
        () => signal('SIGKILL'),
        () => undefined,
      )
      const told = await ended
      late.abort()
      await kill
      return told
    },
  }
}

let hasSetpriv: Promise<boolean> | null = null
const dieTogether = ['--pdeathsig', 'KILL']

async function bound({ program, args }: Pick<ChildWish, 'program' | 'args'>) {
  hasSetpriv ??= run('setpriv', [...dieTogether, 'true']).then(
    () => process.platform === 'linux',
    () => false,
  )
  return (await hasSetpriv) ? { program: 'setpriv', args: [...dieTogether, program, ...args] } : { program, args }
}

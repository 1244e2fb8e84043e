/** Owns a bench as another process runs it: a group of its own, which ends with all that it has started, and what it printed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import type { SourceAt } from './source-at.ts'

/** Ms in which a bench that is stopped ends what it has started. */
const endsWithin = 10_000

export type BenchRun = { readonly code: number | null; readonly printed: string }

/** What it says of itself besides its figures goes to stderr. Rejects when it is stopped. */
export async function runBench(
  { folder, temporary }: Pick<SourceAt, 'folder'> & Partial<SourceAt>,
  words: readonly string[],
  signal: AbortSignal,
): Promise<BenchRun> {
  signal.throwIfAborted()
  const child = spawn(process.execPath, [path.join('test', 'load', 'bench.ts'), ...words], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(temporary !== undefined && { TMPDIR: temporary }) },
    detached: true,
  })
  const end = (): void => void endGroup(child.pid)
  signal.addEventListener('abort', end)
  const parts: Buffer[] = []
  child.stdout.on('data', (part: Buffer) => parts.push(part))
  const closed = once(child, 'close')
  const [code] = (await once(child, 'exit')) as [number | null]
  signal.removeEventListener('abort', end)
  await endGroup(child.pid)
  await closed
  signal.throwIfAborted()
  return { code, printed: Buffer.concat(parts).toString() }
}

/** Resolves when nobody of the group is left. */
async function endGroup(group: number | undefined): Promise<void> {
  if (group === undefined) return
  const until = performance.now() + endsWithin
  for (let signal: NodeJS.Signals = 'SIGTERM'; told(group, signal); await pause(50))
    if (performance.now() > until) signal = 'SIGKILL'
}

/** False: nobody is there. */
function told(group: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(-group, signal)
  } catch {
    return false
  }
}

const signals = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const

/** Aborted by the first signal to this process, whose exit code then says so. A signal that came has taken the place of its usual effect. */
export function stoppedBySignals(): AbortSignal {
  const stopping = new AbortController()
  for (const [name, number] of Object.entries(signals))
    process.once(name, () => {
      process.exitCode = 128 + number
      stopping.abort()
    })
  return stopping.signal
}

/** Owns which processes a Postgres is made of, and that it stands still: all of them are stopped, what is sent to it waits in its sockets. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'

/** `cluster` is its folder, as the kernel names it. Gives what lets it go on; once. */
export function freezePostgres(cluster: string): () => void {
  const postmaster = postmasterOf(cluster)
  // First of all, so that it makes no others meanwhile.
  signal(postmaster, 'SIGSTOP')
  const pids = processesIn(cluster)
  for (const pid of pids) signal(pid, 'SIGSTOP')
  let isFrozen = true
  return () => {
    if (isFrozen) for (const pid of pids.toReversed()) signal(pid, 'SIGCONT')
    isFrozen = false
  }
}

export const postmasterOf = (cluster: string): number =>
  Number(readFileSync(path.join(cluster, 'postmaster.pid'), 'utf8').split('\n')[0])

/** Those that work in this folder: every process of a Postgres does in its cluster, and each of the service in its own. */
export function processesIn(folder: string): number[] {
  const worksThere = (pid: string): boolean => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === folder
    } catch {
      // It has ended meanwhile, or is somebody else's.
      return false
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && worksThere(name))
    .map(Number)
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended meanwhile.
  }
}

/** Owns what happens to a database server: it stands still (all of its processes are stopped, what is sent to it waits in its sockets), or is killed. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import { awaitServer } from '../../store/await-server.ts'
import type { DatabaseServer } from '../../store/sql.ts'

/** Of the embedded server in `dataDir`. Gives what lets it go on; once. */
export function freezePostgres(dataDir: string): () => void {
  const postmaster = postmasterOf(dataDir)
  const signal = (pid: number, name: NodeJS.Signals): void => {
    try {
      process.kill(pid, name)
    } catch {
      // It has ended meanwhile.
    }
  }
  // First of all, so that it makes no others meanwhile.
  signal(postmaster, 'SIGSTOP')
  const pids = processesIn(clusterOf(dataDir))
  for (const pid of pids) signal(pid, 'SIGSTOP')
  let isFrozen = true
  return () => {
    if (isFrozen) for (const pid of pids.toReversed()) signal(pid, 'SIGCONT')
    isFrozen = false
  }
}

export const killPostgres = (dataDir: string): boolean => process.kill(postmasterOf(dataDir), 'SIGKILL')

/** Of the embedded server in `dataDir`. */
export const postgresProcesses = (dataDir: string): number[] => processesIn(clusterOf(dataDir))

const clusterOf = (dataDir: string): string => path.join(dataDir, 'postgres/cluster')

const postmasterOf = (dataDir: string): number =>
  Number(readFileSync(path.join(clusterOf(dataDir), 'postmaster.pid'), 'utf8').split('\n')[0])

/** Every process of a Postgres works in its cluster. */
function processesIn(cluster: string): number[] {
  const worksThere = (pid: string): boolean => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === cluster
    } catch {
      return false
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && worksThere(name))
    .map(Number)
}

/** Resolves when it answers new connections. */
export const answersAgain = (server: DatabaseServer): Promise<boolean> => awaitServer({ server, timeout: 30_000 })

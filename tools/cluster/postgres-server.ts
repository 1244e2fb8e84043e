/**
 * Owns a Postgres server of a cluster: the embedded binaries in a folder of their own, over TCP on loopback and with a password, so that the
 * processes of the service find it as they find any other server.
 */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { awaitServer } from '../../store/await-server.ts'
import { findPostgres, guard, type Command } from '../../store/postgres-binaries.ts'
import {
  clusterPathsOf,
  initCluster,
  runningPostmaster,
  superuser,
  type ClusterPaths,
} from '../../store/postgres-cluster.ts'
import { connect } from '../../store/sql.ts'
import { startChild, type Child } from './child.ts'
import { freezePostgres, processesIn } from './postgres-processes.ts'

const startTimeout = 60_000
const fastShutdownTimeout = 10_000

const settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_permissions: '0700',
  max_connections: '300',
  shared_buffers: '64MB',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
}

export type PostgresServer = {
  /** With the password. */
  readonly url: string
  /** Where its lines go. */
  readonly logFile: string
  /** Resolves when it answers. Nothing when it runs. */
  start(): Promise<void>
  /** In order, as an administrator does: connections are cut, transactions rolled back. */
  stop(): Promise<void>
  /** With kill -9, of the postmaster; its children see that and leave. */
  kill(): Promise<void>
  /** Gives what lets it go on; once. */
  freeze(): () => void
  isUp(): boolean
  /** Of the postmaster and its children, at this moment. */
  pids(): number[]
}

type Wish = {
  /** Made where it is not; kept. */
  readonly folder: string
  readonly port: number
  /** Of base64url. */
  readonly password: string
  readonly env: Readonly<Record<string, string>>
}

/** Not started yet. */
export async function createPostgresServer({ folder, port, password, env }: Wish): Promise<PostgresServer> {
  const paths = await clusterPathsOf(folder)
  const command = await prepare(paths, port)
  const server = { socket: path.join(paths.socketFolder, `.s.PGSQL.${port}`), user: superuser, database: 'postgres' }
  let child: Child | null = null
  const isUp = (): boolean => child !== null && !child.isOver()

  async function start(): Promise<void> {
    if (isUp()) return
    const before = await runningPostmaster(paths)
    if (before !== null) throw new Error(`another process (${before}) runs the database in ${folder}`)
    child = await startChild({ name: 'postgres', ...command, env, cwd: folder, logFile: paths.logFile, bound: false })
    const { isOver } = child
    const answers = await awaitServer({ server, timeout: startTimeout, possible: () => !isOver() })
    if (!answers) throw new Error(`Postgres did not start: see ${paths.logFile}`)
    const sql = connect({ server, applicationName: 'parley cluster', maxConnections: 1 })
    try {
      await sql.unsafe(`alter role ${superuser} password '${password}'`)
    } finally {
      await sql.end({ timeout: 1 })
    }
  }
  async function stop(): Promise<void> {
    // Postgres' fast shutdown; SIGTERM, which follows if need be, waits for clients, and SIGKILL ends that.
    child?.signal('SIGINT')
    const over = child?.ended ?? Promise.resolve('')
    const late = AbortSignal.timeout(fastShutdownTimeout)
    await Promise.race([over, new Promise((resolve) => late.addEventListener('abort', resolve, { once: true }))])
    await child?.end(0)
  }
  return {
    url: `postgres://${superuser}:${password}@127.0.0.1:${port}/postgres`,
    logFile: paths.logFile,
    start,
    stop,
    async kill() {
      child?.signal('SIGKILL')
      await child?.ended
    },
    freeze: () => freezePostgres(paths.cluster),
    isUp,
    pids: () => processesIn(paths.cluster),
  }
}

async function prepare(paths: ClusterPaths, port: number): Promise<Command> {
  const binaries = await findPostgres()
  await initCluster(paths, binaries)
  // The socket lies in a folder that only this user may enter; the port is everybody's on this machine.
  const rules = 'local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n'
  await writeFile(path.join(paths.cluster, 'pg_hba.conf'), rules, { mode: 0o600 })
  const given = { ...settings, port: String(port), unix_socket_directories: `"${paths.socketFolder}"` }
  const args = ['-D', paths.cluster, ...Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  return guard('INT', { program: path.join(binaries.folder, 'postgres'), args })
}

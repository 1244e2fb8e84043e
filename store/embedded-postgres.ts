/**
 * Owns the embedded database server: a real Postgres on a Unix socket that nobody but this user reaches. The first process on a
 * data folder starts the server, others join it. When the server is gone without having been asked to (its process was killed, or
 * the process that had started it ended), whoever still needs it starts it again; postmaster.pid decides a race.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, rename, stat } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../model/log.ts'
import { awaitServer } from './await-server.ts'
import { findPostgres, guard } from './postgres-binaries.ts'
import { postgresFailure } from './postgres-failure.ts'
import {
  clusterPathsOf,
  initCluster,
  isAlive,
  runningPostmaster,
  superuser,
  type ClusterPaths,
} from './postgres-cluster.ts'
import type { DatabaseServer } from './sql.ts'

/** Long enough to recover from a crash on a slow disk; a server that cannot start says so at once. */
const startTimeout = 120_000
const watchInterval = 250
const fastShutdownTimeout = 10_000
const immediateShutdownTimeout = 5_000
const maxLogBytes = 1 << 20
const shownLogLines = 12

const settings = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  shared_buffers: '32MB',
  // While others are about to commit too, µs that a flush waits for them. Who commits alone waits for nobody.
  commit_delay: '8000',
  commit_siblings: '1',
  // Three processes may share it, with 16 each.
  max_connections: '64',
  // What a client is told it also logs; the server keeps no statement and no value (they hold personal data).
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
  logging_collector: 'off',
}

export type EmbeddedPostgres = {
  readonly server: DatabaseServer
  /** Another process had started it. */
  readonly isJoined: boolean
  /** Stops the server when this process started it, and leaves a joined one alone. Idempotent. */
  close(): Promise<void>
}

export type EmbeddedPostgresDeps = { readonly dataDir: string; readonly log: Log }

/** A server as this process sees it: started here, or joined. */
type Running = {
  readonly isJoined: boolean
  readonly alive: () => boolean
  /** Resolves when it is worth asking again whether it lives; rejects with the signal. */
  readonly lives: (signal: AbortSignal) => Promise<unknown>
  readonly stop: () => Promise<void>
}
type Started = Running & { readonly failure: () => Promise<string> }

/** Resolves when the database answers. A failed start throws the last lines that the server logged. */
export async function startEmbeddedPostgres({ dataDir, log }: EmbeddedPostgresDeps): Promise<EmbeddedPostgres> {
  const paths = await clusterPathsOf(dataDir)
  const startServer = await createStarter(paths, log)
  const server = { socket: paths.socket, user: superuser, database: 'postgres' }
  const closing = new AbortController()
  const bringUp = () => startOrJoin({ paths, server, startServer, signal: closing.signal })

  let running = await bringUp()
  const { isJoined } = running
  const watching = watch({
    signal: closing.signal,
    running: () => running,
    restart: async () => {
      if (running.isJoined) log.info('the process that ran the embedded database has ended; it is run here')
      else log.error('the embedded database is gone; starting it again')
      running = await bringUp()
    },
    failed: (error) => log.error('the embedded database did not start', { error }),
  })

  let closed: Promise<void> | null = null
  const close = async () => {
    closing.abort()
    await watching
    await running.stop()
  }
  return { server, isJoined, close: () => (closed ??= close()) }
}

type Attempt = {
  readonly paths: ClusterPaths
  readonly server: DatabaseServer
  readonly startServer: () => Promise<Started>
  readonly signal: AbortSignal
}

async function startOrJoin({ paths, server, startServer, signal }: Attempt): Promise<Running> {
  const deadline = performance.now() + startTimeout
  for (;;) {
    const timeout = deadline - performance.now()
    const pid = await runningPostmaster(paths)
    if (pid !== null) {
      const joined: Running = { isJoined: true, alive: () => isAlive(pid), lives: nextLook, stop: async () => {} }
      if (await awaitServer({ server, timeout, possible: joined.alive, signal })) return joined
      continue
    }
    const started = await startServer()
    try {
      if (await awaitServer({ server, timeout, possible: started.alive, signal })) return started
    } catch (error) {
      await started.stop()
      throw error
    }
    await judgeFailure(await started.failure(), deadline)
  }
}

/** Another process was faster, or the last processes of a killed server are still leaving: worth another round. The rest is fatal. */
async function judgeFailure(failure: string, deadline: number): Promise<void> {
  const passing = /lock file ".*" already exists|shared memory block .* still in use/.test(failure)
  if (!passing || performance.now() > deadline) throw postgresFailure('Postgres did not start.', failure)
  await pause(watchInterval)
}

/** Finds the programs and the cluster once; every call of what it returns starts a server of its own. */
async function createStarter(paths: ClusterPaths, log: Log): Promise<Attempt['startServer']> {
  const binaries = await findPostgres()
  await initCluster(paths, binaries)
  const socketFolder = `"${paths.socketFolder.replaceAll('"', '""')}"`
  const options = Object.entries({ ...settings, unix_socket_directories: socketFolder })
  const args = ['-D', paths.cluster, ...options.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const command = await guard('INT', { program: path.join(binaries.folder, 'postgres'), args })
  return async () => {
    await rotate(paths.logFile)
    const file = await open(paths.logFile, 'a', 0o600)
    const from = (await file.stat()).size
    // A session of its own: Ctrl-C in a terminal is for this process, which first lets its calls end.
    const child = spawn(command.program, command.args, { stdio: ['ignore', file.fd, file.fd], detached: true })
    let spawnError: Error | null = null
    child.once('error', (error) => (spawnError = error))
    await file.close()
    log.info('starting the embedded database', { version: binaries.major, pid: child.pid })
    return {
      isJoined: false,
      alive: () => spawnError === null && !hasEnded(child),
      // Of a child the system tells.
      lives: (signal) => (hasEnded(child) ? nextLook(signal) : once(child, 'exit', { signal })),
      stop: () => stop(child, log),
      failure: async () => spawnError?.message ?? lastLines(await readFile(paths.logFile), from),
    }
  }
}

/** SIGINT is Postgres' fast shutdown: transactions are rolled back and everything is on disk. SIGQUIT leaves that to recovery. */
async function stop(child: ChildProcess, log: Log): Promise<void> {
  for (const [signal, timeout] of [
    ['SIGINT', fastShutdownTimeout],
    ['SIGQUIT', immediateShutdownTimeout],
  ] as const) {
    if (await endsAfter(child, signal, timeout)) return
    log.warn('the embedded database is slow to stop', { signal })
  }
}

async function endsAfter(child: ChildProcess, signal: NodeJS.Signals, timeout: number): Promise<boolean> {
  if (child.pid === undefined || hasEnded(child)) return true
  const ended = once(child, 'exit', { signal: AbortSignal.timeout(timeout) })
  child.kill(signal)
  return ended.then(
    () => true,
    () => false,
  )
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null

type Watch = {
  readonly signal: AbortSignal
  readonly running: () => Running
  readonly restart: () => Promise<void>
  readonly failed: (error: unknown) => void
}

/** Ends with the signal. Keeps no process alive. */
async function watch({ signal, running, restart, failed }: Watch): Promise<void> {
  while (!signal.aborted) {
    await running()
      .lives(signal)
      .catch(() => {
        // The only way this fails is the signal, and that ends the loop.
      })
    if (signal.aborted || running().alive()) continue
    await restart().catch((error: unknown) => {
      if (!signal.aborted) failed(error)
    })
  }
}

const nextLook = (signal: AbortSignal): Promise<unknown> => pause(watchInterval, undefined, { ref: false, signal })

/** One old log is kept. */
async function rotate(file: string): Promise<void> {
  const size = await stat(file).then(
    (stats) => stats.size,
    () => 0,
  )
  if (size > maxLogBytes) await rename(file, `${file}.old`)
}

const lastLines = (bytes: Buffer, from: number): string =>
  bytes.subarray(from).toString('utf8').trim().split('\n').slice(-shownLogLines).join('\n')

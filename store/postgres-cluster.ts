/**
 * Owns the folder of the embedded database: how it is made, where its socket lies and which server, of whichever process, runs on
 * it now. In `<dataDir>/postgres`: `cluster` (Postgres' own), `socket`, `server.log`.
 */
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { access, lstat, mkdir, readdir, readFile, readlink, realpath, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { guard, type PostgresBinaries } from './postgres-binaries.ts'
import { postgresFailure } from './postgres-failure.ts'

const run = promisify(execFile)
const initTimeout = 120_000
const socketName = '.s.PGSQL.5432'
/** sun_path holds 108 bytes on Linux and 104 on macOS, the closing zero included. */
const maxSocketPathBytes = 103

export const superuser = 'postgres'

export type ClusterPaths = {
  readonly cluster: string
  readonly socketFolder: string
  readonly socket: string
  readonly logFile: string
}

/** Makes the folders, mode 0700. The socket's place follows from `dataDir` alone, so that it is the same after every start. */
export async function clusterPathsOf(dataDir: string): Promise<ClusterPaths> {
  const folder = path.resolve(dataDir, 'postgres')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const socketFolder = await makeSocketFolder(folder)
  return {
    cluster: path.join(await realpath(folder), 'cluster'),
    socketFolder,
    socket: path.join(socketFolder, socketName),
    logFile: path.join(folder, 'server.log'),
  }
}

/** Makes nothing. A folder that may not be looked into may have one. */
export const hasCluster = (dataDir: string): Promise<boolean> =>
  access(path.join(path.resolve(dataDir), 'postgres/cluster/PG_VERSION')).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT' && error.code !== 'ENOTDIR',
  )

/**
 * Makes the cluster where there is none: in a folder beside it that is renamed when complete, so that neither a crash nor a second
 * process at the same moment leaves half of one.
 */
export async function initCluster({ cluster }: ClusterPaths, binaries: PostgresBinaries): Promise<void> {
  if (await isComplete(cluster)) return
  await removeAbandoned(cluster)
  const draft = `${cluster}.${process.pid}.${randomBytes(4).toString('hex')}`
  try {
    await initdb(draft, binaries)
    await rename(draft, cluster)
  } catch (error) {
    if (!(await isComplete(cluster))) throw error
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/** The process id of the server that runs on this cluster, or null. Removes a postmaster.pid whose number now is another program's. */
export async function runningPostmaster({ cluster }: ClusterPaths): Promise<number | null> {
  const pidFile = path.join(cluster, 'postmaster.pid')
  const text = await readFile(pidFile, 'utf8').catch(absent)
  const pid = Number(text?.split('\n')[0])
  if (!Number.isInteger(pid) || pid <= 0 || !isAlive(pid)) return null
  const workingFolder = await workingFolderOf(pid)
  if (workingFolder === null || workingFolder === cluster) return pid
  // Postgres itself sees only that the number is taken, and would refuse to start for as long as that program runs.
  await rm(pidFile, { force: true })
  return null
}

/** Signal 0 asks only. EPERM: there, but somebody else's. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function initdb(folder: string, { folder: programs, major }: PostgresBinaries): Promise<void> {
  // The builtin provider is the same on every platform; before 17 only the system's own locales exist.
  const locale =
    major >= 17
      ? ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
      : [process.platform === 'linux' ? '--locale=C.UTF-8' : '--locale=C']
  const args = ['--pgdata', folder, '--username', superuser, '--auth=trust', '--encoding=UTF8', ...locale]
  // Its words are read when it fails, so they are to be in one language.
  const inEnglish = ['LC_ALL=C', path.join(programs, 'initdb'), ...args]
  const command = await guard('KILL', { program: 'env', args: inEnglish })
  const running = run(command.program, command.args, { timeout: initTimeout, killSignal: 'SIGKILL' })
  await running.catch(({ message, stderr = '' }: Error & { readonly stderr?: string }) => {
    throw postgresFailure('The database could not be made.', stderr.trim() === '' ? message : stderr)
  })
}

/** Drafts of processes that died while they made one. */
async function removeAbandoned(cluster: string): Promise<void> {
  const parent = path.dirname(cluster)
  for (const name of await readdir(parent)) {
    const pid = Number(/^cluster\.(\d+)\./.exec(name)?.[1])
    if (pid > 0 && !isAlive(pid)) await rm(path.join(parent, name), { recursive: true, force: true })
  }
}

const isComplete = (cluster: string): Promise<boolean> =>
  access(path.join(cluster, 'PG_VERSION')).then(
    () => true,
    () => false,
  )

/** A postmaster works in its cluster. Null where the system does not say (anything but Linux). */
const workingFolderOf = (pid: number): Promise<string | null> => readlink(`/proc/${pid}/cwd`).catch(() => null)

async function makeSocketFolder(folder: string): Promise<string> {
  const near = path.join(folder, 'socket')
  if (Buffer.byteLength(path.join(near, socketName)) <= maxSocketPathBytes) {
    await mkdir(near, { recursive: true, mode: 0o700 })
    return near
  }
  const hash = createHash('sha256').update(folder).digest('hex').slice(0, 16)
  const far = path.join(tmpdir(), `parley-${process.getuid?.() ?? 0}-${hash}`)
  await mkdir(far, { recursive: true, mode: 0o700 })
  await requirePrivate(far)
  return far
}

/** In a folder where everybody may write, somebody else may have made ours first. */
async function requirePrivate(folder: string): Promise<void> {
  const stats = await lstat(folder)
  const owned = process.getuid === undefined || stats.uid === process.getuid()
  if (!stats.isDirectory() || !owned || (stats.mode & 0o077) !== 0)
    throw new Error(`${folder} must be a folder that only this user may enter`)
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

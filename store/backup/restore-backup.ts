/**
 * Owns the way back: an archive becomes the tables, the key and the recordings of a service that does not run. Everything is prepared beside what is there;
 * then recordings and key take their places, and the commit of the database is the last step. What fails before it is undone.
 */
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Problem } from '../../model/problem.ts'
import { makeFolder } from '../make-folder.ts'
import { knownMigrations } from '../migrate.ts'
import { keyFileIn, loadAppKeys, sealedPrefixesOf } from '../secret-box.ts'
import { connect, type Sql } from '../sql.ts'
import { keyFile, readArchive, syncFolder, type Archive } from './archive.ts'
import { ArchiveFlaw } from './archive-flaw.ts'
import { beginLoading, type Loading } from './load-tables.ts'
import type { Home, Progress } from './make-backup.ts'
import { hasRecordings, openRecordingDraft, recordingsPrefix, type RecordingDraft } from './recording-files.ts'

export type Restoring = {
  readonly file: string
  /** Of the file, all of which has been read. */
  readonly archive: Archive
  readonly home: Omit<Home, 'server' | 'hasStorage'>
  /** What is there is put aside: key and recordings under this name, and the tables are dropped. Null: nothing may be there. */
  readonly replacing: string | null
}

/** What can be known without the database. Throws Problem. Makes nothing that stays. */
export async function requirePlace({ archive, home, replacing }: Restoring): Promise<void> {
  const { dataDir, recordingsDir } = home
  await makeFolder(dataDir)
  await knownMigrations(archive.manifest.migrations)
  await requireKeys(archive, home)
  if (replacing !== null) return
  const key = await readFile(keyFileIn(dataDir), 'utf8').catch(absent)
  if (key !== null && archive.key !== null && key.trim() !== archive.key.trim())
    throw occupied(`${keyFileIn(dataDir)} is another key than that of the archive`)
  if (await hasRecordings(recordingsDir)) throw occupied(`${recordingsDir} has recordings`)
}

/** Those that the service will have, by the settings of now. */
async function requireKeys({ manifest, key }: Archive, { dataDir, appSecret }: Restoring['home']): Promise<void> {
  const [sealing] = manifest.keys
  if (appSecret === null && key === null)
    throw new Problem(
      'VALIDATION_FAILED',
      'the archive has no key: set APP_SECRET as the service had it when the backup was made',
    )
  const folder = await mkdtemp(path.join(dataDir, '.restoring-'))
  try {
    if (key !== null) await writeFile(path.join(folder, keyFile), key, { mode: 0o600 })
    const prefixes = sealedPrefixesOf(await loadAppKeys({ appSecret, dataDir: folder }))
    if (sealing !== undefined && !prefixes.includes(sealing))
      throw new Problem(
        'VALIDATION_FAILED',
        'its secrets do not open with this APP_SECRET: set it as the service had it when the backup was made',
      )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const occupied = (what: string): Problem =>
  new Problem(
    'CONFLICT',
    `${what}; restore to an empty place, or say --replace, which takes what is there from the service`,
  )

/** The database is empty, or nobody uses it and it is to be replaced. Throws Problem. */
export async function requireEmptyDatabase(sql: Sql, replacing: boolean): Promise<void> {
  const [there] = await sql<{ ours: boolean; runs: boolean }[]>`
    select to_regclass('migrations') is not null as ours, to_regclass('nodes') is not null as runs`
  if (!there?.ours) return
  if (!replacing) throw occupied('the database has tables of the service')
  if (!there.runs) return
  const running = await sql`select from nodes where lease_until > now()`
  if (running.length > 0)
    throw new Problem('CONFLICT', 'the service runs on this database: end all of its processes, and wait a minute')
}

/** `home.server` has been found empty or may be replaced. Returns when it is done for ever. */
export async function restoreBackup(
  { file, archive, home, replacing }: Restoring,
  server: Home['server'],
  progress: Progress,
): Promise<void> {
  const sql = connect({
    server,
    applicationName: 'parley restore',
    maxConnections: 1,
    statementTimeout: 0,
    lasting: true,
  })
  const draft = await openRecordingDraft(home.recordingsDir)
  const key = archive.key === null ? null : createKeyPlace(keyFileIn(home.dataDir), archive.key)
  try {
    await requireEmptyDatabase(sql, replacing !== null)
    const loading = await beginLoading(sql, archive.manifest, replacing !== null)
    await takeParts(file, loading, draft, progress)
    await loading.complete()
    await noteShipped(sql, archive.end.shipped)
    const aside = replacing ?? 'replaced'
    await draft.place(`.${aside}`)
    await key?.place(aside)
    await loading.commit()
    // All is there: without it the database does the same by itself, later.
    await loading.analyze().catch(() => undefined)
  } catch (error) {
    await key?.undo()
    await draft.undo()
    throw error
  } finally {
    await sql.end({ timeout: 0 })
  }
}

async function takeParts(file: string, loading: Loading, draft: RecordingDraft, progress: Progress): Promise<void> {
  let bytes = 0
  for await (const part of readArchive(file)) {
    bytes += part.size
    const [folder = '', table = ''] = part.name.split('/')
    if (folder === 'tables') await loading.load(table, part.body)
    else if (part.name.startsWith(recordingsPrefix)) await draft.write(part)
    else if (part.name.includes('/')) throw new ArchiveFlaw('a file in it is of no kind that is known here')
    progress(folder === 'tables' ? table : folder, bytes)
  }
}

/** Whoever keeps recordings looks for them there, and finds them. */
async function noteShipped(sql: Sql, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await sql`update recordings set state = 'waiting', in_storage = true where key = any(${keys as string[]})`
}

function createKeyPlace(file: string, text: string) {
  const draft = `${file}.restoring`
  let former: string | null = null
  let isPlaced = false
  return {
    async place(aside: string): Promise<void> {
      if ((await readFile(file, 'utf8').catch(absent))?.trim() === text.trim()) return
      await rm(draft, { force: true })
      await writeFile(draft, text, { flag: 'wx', mode: 0o600, flush: true })
      const isMoved = await rename(file, `${file}.${aside}`).then(() => true, absent)
      if (isMoved) former = `${file}.${aside}`
      await rename(draft, file)
      isPlaced = true
      await syncFolder(path.dirname(file))
    },
    async undo(): Promise<void> {
      await rm(draft, { force: true })
      if (isPlaced) await rm(file, { force: true })
      if (former !== null) await rename(former, file)
      former = null
    },
  }
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

/** Owns a backup: the tables at one moment, the key that opens their secrets, and the recordings of this folder, while the service runs. */
import { readFile } from 'node:fs/promises'
import { readFolderId } from '../recording-places.ts'
import { keyFileIn, loadAppKeys, sealedPrefixesOf } from '../secret-box.ts'
import { connect, type DatabaseServer, type Sql } from '../sql.ts'
import { keyFile, textPart, writeArchive, type End, type Part } from './archive.ts'
import { openSnapshot, type Snapshot } from './dump-tables.ts'
import { recordingParts } from './recording-files.ts'

/** Where a service has what a backup takes, and what it needs besides. */
export type Home = {
  readonly server: DatabaseServer
  readonly dataDir: string
  readonly recordingsDir: string
  readonly appSecret: string | null
  /** Recordings leave their folder for it. */
  readonly hasStorage: boolean
}

/** Told often: a table or `recordings`, and how many bytes there are of everything by now. */
export type Progress = (at: string, bytes: number) => void

export type BackupReport = Pick<End, 'rows' | 'recordings'> & { readonly holdsKey: boolean }

/** When it fails, there is no file. */
export async function makeBackup(home: Home, file: string, now: number, progress: Progress): Promise<BackupReport> {
  const { server, dataDir, recordingsDir } = home
  const sql = connect({
    server,
    applicationName: 'parley backup',
    maxConnections: 1,
    statementTimeout: 0,
    lasting: true,
  })
  try {
    const keys = sealedPrefixesOf(await loadAppKeys(home))
    const key = await readFile(keyFileIn(dataDir), 'utf8').catch(absent)
    const snapshot = await openSnapshot(sql, now)
    const { migrations, tables, sequences, rows } = snapshot
    const recordings = { count: 0, bytes: 0 }
    const unshipped = home.hasStorage ? await listUnshipped(sql, await readFolderId(recordingsDir)) : []
    let shipped: string[] = []
    async function* parts(): AsyncGenerator<Part> {
      if (key !== null) yield textPart(keyFile, key, now)
      yield* tableParts(snapshot, progress)
      for await (const part of recordingParts(recordingsDir)) {
        yield part
        recordings.count++
        recordings.bytes += part.size
        progress('recordings', recordings.bytes)
      }
      shipped = await listShipped(sql, unshipped)
    }
    const manifest = { madeAt: new Date(now).toISOString(), migrations, tables, sequences, keys }
    await writeArchive(file, { manifest, parts: parts(), end: () => ({ rows, recordings, shipped }) })
    return { rows, recordings, holdsKey: key !== null }
  } finally {
    await sql.end({ timeout: 0 })
  }
}

async function* tableParts(snapshot: Snapshot, progress: Progress): AsyncGenerator<Part> {
  let bytes = 0
  for await (const part of snapshot.parts()) {
    yield part
    bytes += part.size
    progress(part.name.split('/')[1] ?? '', bytes)
  }
}

/** What of this folder may be in the storage, and gone from here, by the time its turn comes. */
async function listUnshipped(sql: Sql, folder: string): Promise<string[]> {
  const rows = await sql<{ key: string }[]>`
    select key from recordings where folder = ${folder} and state in ('waiting', 'kept', 'failed')`
  return rows.map(({ key }) => key)
}

async function listShipped(sql: Sql, keys: readonly string[]): Promise<string[]> {
  if (keys.length === 0) return []
  const rows = await sql<{ key: string }[]>`
    select key from recordings where state = 'shipped' and key = any(${keys as string[]})`
  return rows.map(({ key }) => key)
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

/** Owns the commands of backups: made while the service runs, looked through, and restored where none runs. docs/backup.md. */
import { existsSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { readConfig, readEnvironment, type Config } from '../../app/config.ts'
import { systemClock as clock } from '../../app/clock.ts'
import { newId } from '../../app/core.ts'
import { atDatabase } from '../../app/failing-places.ts'
import { createLog } from '../../app/log.ts'
import { told } from '../../app/told-failure.ts'
import { toIso } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import { createAudit } from '../../store/audit.ts'
import { awaitServer } from '../../store/await-server.ts'
import { checkArchive, type Archive, type End } from '../../store/backup/archive.ts'
import { makeBackup, type Progress } from '../../store/backup/make-backup.ts'
import { requirePlace, restoreBackup, type Restoring } from '../../store/backup/restore-backup.ts'
import { startEmbeddedPostgres } from '../../store/embedded-postgres.ts'
import { openDatabase } from '../../store/open-database.ts'
import { print, required, type Commands } from './command.ts'

/** Ms between two lines about how far it is. */
const toldEvery = 5_000
const reachTimeout = 20_000
/** Calls go before a backup. */
const niceness = 10

export const backupCommands: Commands = {
  backup: {
    usage: 'backup <fileOrFolder>',
    async runOn({ home, print }, [given]) {
      const now = clock.now()
      const file = newFileOf(required(given, 'fileOrFolder'), now)
      if (!home) throw new Error('a backup needs the settings of the service')
      standBack()
      const made = await told('No backup was made', () => makeBackup(home, file, now, tellingOf(print)))
      print(`${file}: ${contentOf(made)}`)
      print(
        made.holdsKey
          ? 'The key of DATA_DIR is in it: who has the file can read every secret of the service.'
          : 'The key is not in it: keep APP_SECRET, without it the secrets of the service do not open.',
      )
      return 0
    },
  },
  'backup check': {
    usage: 'backup check <file>',
    async run([given]) {
      const file = required(given, 'file')
      const { manifest, end, key } = await archiveIn(file, tellingOf(print))
      print(`${file} is whole: made at ${manifest.madeAt}, ${contentOf(end)}${key === null ? '' : ', with its key'}`)
      return 0
    },
  },
  restore: {
    usage: 'restore <file> [--replace]',
    options: { replace: { type: 'boolean' } },
    async run([given], { replace }) {
      const file = required(given, 'file')
      const config = readConfig(readEnvironment())
      const telling = tellingOf(print)
      const archive = await archiveIn(file, telling)
      const replacing = replace === true ? `replaced-${stampOf(clock.now())}` : null
      await restoreTo(config, { file, archive, home: config, replacing }, telling)
      print(`Restored: what was there at ${archive.manifest.madeAt}, ${contentOf(archive.end)}`)
      if (replacing !== null)
        print(`What was in DATA_DIR is kept under the name ${replacing}: remove it when all is well.`)
      return 0
    },
  },
}

/** All of it is read, before anything is done with it. */
const archiveIn = (file: string, progress: Progress): Promise<Archive> =>
  told(`${file} cannot be used`, () => checkArchive(file, (bytes) => progress('read', bytes)))

async function restoreTo(config: Config, restoring: Restoring, progress: Progress): Promise<void> {
  const { databaseUrl, dataDir } = config
  const log = createLog(config.logLevel, config.logsPersonal)
  await told('Nothing was restored', () => requirePlace(restoring))
  await using closing = new AsyncDisposableStack()
  const embedded = databaseUrl === null ? await atDatabase(config, () => startEmbeddedPostgres({ dataDir, log })) : null
  closing.defer(() => embedded?.close())
  if (embedded?.isJoined === true)
    throw new Problem('CONFLICT', `A process of the service runs on ${dataDir} (DATA_DIR): end it first.`)
  const server = embedded?.server ?? { url: databaseUrl ?? '' }
  await atDatabase(config, () => awaitServer({ server, timeout: reachTimeout }))
  await told('Nothing was restored', () => restoreBackup(restoring, server, progress))
  await told('It is restored, and the next start has to bring it to this version', () => bringUp(config, log))
}

/** To the schema of this version; and the audit log tells of it. */
async function bringUp(config: Config, log: Log): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const database = await openDatabase({ ...config, log })
  closing.defer(() => database.close())
  const audit = createAudit({ sql: database.sql, clock, newId, log })
  closing.defer(() => audit.close())
  const end = await audit.begin({
    accountId: null,
    actor: { kind: 'operator' },
    action: 'admin restore',
    arguments: {},
  })
  await end({ result: 'success', arguments: {} })
}

/** One that there is not yet: in a folder a name with the time. */
function newFileOf(given: string, now: number): string {
  const isFolder = existsSync(given) && statSync(given).isDirectory()
  const file = isFolder ? path.join(given, `parley-${stampOf(now)}.tar.zst`) : given
  if (!existsSync(file)) return file
  throw new Problem('CONFLICT', `${file} is there already: name another file, or a folder`)
}

/** As a part of a file name. */
const stampOf = (ms: number): string => toIso(ms).replace(/\.\d+/, '').replaceAll(':', '-')

function standBack(): void {
  try {
    os.setPriority(niceness)
  } catch {
    // Not everywhere may a process do that; the backup is made all the same.
  }
}

function tellingOf(print: (text: string) => void): Progress {
  let toldAt = performance.now()
  return (at, bytes) => {
    if (performance.now() - toldAt < toldEvery) return
    toldAt = performance.now()
    print(`  ${at}: ${sizeOf(bytes)}`)
  }
}

function contentOf({ rows, recordings }: Pick<End, 'rows' | 'recordings'>): string {
  const all = Object.values(rows).reduce((sum, count) => sum + count, 0)
  return `${rows['calls'] ?? 0} calls, ${all} rows in all, ${recordings.count} files of recordings (${sizeOf(recordings.bytes)})`
}

const sizeOf = (bytes: number): string =>
  bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`

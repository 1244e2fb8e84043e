/**
 * Owns `npm run admin -- <what> …`: what an operator does beside the API. It works while the service runs: it joins its database. The commands
 * are in admin/, one file per subject.
 */
import { existsSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { isWildcard } from '../../net/addresses.ts'
import { NoDatabase, openDatabase } from '../../store/open-database.ts'
import { boxOf, loadAppKeys } from '../../store/secret-box.ts'
import { print, type AdminDatabase } from './command.ts'
import { explanationOf, runCommand } from './run-command.ts'
import { readConfig, readEnvironment, type Config } from '../../app/config.ts'
import { WrongSettings } from '../../app/config/setting.ts'
import { systemClock } from '../../app/clock.ts'
import { atDatabase, inDataFolder } from '../../app/failing-places.ts'
import { openRecordingsToRead } from '../../app/recordings.ts'
import { withoutSecrets } from '../../app/told-failure.ts'
import { createLog } from '../../app/log.ts'

async function onDatabase(use: (database: AdminDatabase) => Promise<number>): Promise<number> {
  const config = readConfig(readEnvironment())
  const log = createLog(config.logLevel, config.logsPersonal)
  const opening = { ...config, mustExist: true, log }
  const database = await atDatabase(config, () => openDatabase(opening)).catch(telling(config))
  await using closing = new AsyncDisposableStack()
  closing.defer(() => database.close())
  const { sql, server } = database
  const openBox = async () => boxOf(await existingKeys(config))
  const home = { ...config, server, hasStorage: config.recordingsBucket !== null }
  const toRead = openRecordingsToRead(config, { sql, clock: systemClock, log }, closing)
  return await use({ sql, openBox, toRead, home, log, url: urlOf(config), prices: config.prices, print })
}

/** As an operator has set it; without a public one, as this machine reaches it. */
function urlOf({ publicUrl, tls, host, port }: Config): string {
  const named = host.includes(':') ? `[${host}]` : host
  return (publicUrl ?? `${tls ? 'https' : 'http'}://${isWildcard(host) ? '127.0.0.1' : named}:${port}`).replace(
    /\/+$/,
    '',
  )
}

/** A key that is made here would open nothing of the service's, nor the service what it seals. */
async function existingKeys(config: Config): ReturnType<typeof loadAppKeys> {
  const isThere = config.appSecret !== null || existsSync(path.join(config.dataDir, 'app.key'))
  if (isThere) return inDataFolder(config, () => loadAppKeys(config))
  throw new WrongSettings(
    `DATA_DIR: ${config.dataDir} has no key; set it, or APP_SECRET, as it is set for the service.`,
  )
}

/** The service makes its database; who only looks after it, by a wrong path perhaps, makes none. */
function telling({ databaseUrl, dataDir }: Config): (error: unknown) => never {
  const where = databaseUrl === null ? `${dataDir} (DATA_DIR)` : `${withoutSecrets(databaseUrl)} (DATABASE_URL)`
  return (error) => {
    if (!(error instanceof Error && error.cause instanceof NoDatabase)) throw error
    throw new WrongSettings(
      `There is no database of the service in ${where}: start the service once, or name the one that it uses.`,
      { cause: error },
    )
  }
}

runCommand(process.argv.slice(2), { print, onDatabase }).then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    process.stderr.write(`${explanationOf(error)}\n`)
    process.exitCode = 1
  },
)

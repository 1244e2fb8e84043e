/**
 * Owns `npm run admin -- <what> …`: what an operator does beside the API. It works while the service runs: it joins its database. The commands
 * are in admin/, one file per subject.
 */
import process from 'node:process'
import { openDatabase } from '../../store/open-database.ts'
import { boxOf, loadAppKeys } from '../../store/secret-box.ts'
import { print, type AdminDatabase } from './command.ts'
import { explanationOf, runCommand } from './run-command.ts'
import { readConfig, readEnvironment } from '../../app/config.ts'
import { createLog } from '../../app/log.ts'

async function onDatabase(use: (database: AdminDatabase) => Promise<number>): Promise<number> {
  const config = readConfig(readEnvironment())
  const database = await openDatabase({ ...config, log: createLog(config.logLevel, config.logsPersonal) })
  const openBox = async () => boxOf(await loadAppKeys(config))
  try {
    return await use({ sql: database.sql, openBox, print })
  } finally {
    await database.close()
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

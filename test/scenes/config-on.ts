/** Owns the settings of a whole service in a test: on the database of that test, ports that are free, no telephones unless they are asked for, and an end without waiting. */
import { readConfig, type Config } from '../../app/config.ts'
import type { TestDatabase } from './database.ts'
import { soundThreads } from './sound-threads.ts'

export const configOn = (
  { dataDir, databaseUrl }: Pick<TestDatabase, 'dataDir' | 'databaseUrl'>,
  settings: Readonly<Record<string, string>> = {},
): Config => ({
  ...readConfig({
    ...soundThreads(),
    PORT: '0',
    // Telephones need a port.
    ...(settings['SIP_PORT'] === undefined && { SIP: 'off' }),
    DATA_DIR: dataDir,
    SHUTDOWN_GRACE_SECONDS: '0',
    ...settings,
  }),
  databaseUrl,
})

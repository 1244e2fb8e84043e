/** Owns what happens to the embedded database server of a test: it stands still, or is killed. */
import path from 'node:path'
import { awaitServer } from '../../store/await-server.ts'
import type { DatabaseServer } from '../../store/sql.ts'
import * as processes from '../../tools/cluster/postgres-processes.ts'

const clusterOf = (dataDir: string): string => path.join(dataDir, 'postgres/cluster')

/** Of the embedded server in `dataDir`. Gives what lets it go on; once. */
export const freezePostgres = (dataDir: string): (() => void) => processes.freezePostgres(clusterOf(dataDir))

export const killPostgres = (dataDir: string): boolean =>
  process.kill(processes.postmasterOf(clusterOf(dataDir)), 'SIGKILL')

/** Of the embedded server in `dataDir`. */
export const processesIn = (dataDir: string): number[] => processes.processesIn(clusterOf(dataDir))

/** Resolves when it answers new connections. */
export const answersAgain = (server: DatabaseServer): Promise<boolean> => awaitServer({ server, timeout: 30_000 })

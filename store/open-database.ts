/** Owns which database the service uses, DATABASE_URL before the embedded one, and that its schema is current before anybody asks it anything. */
import type { NodeId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import { noTelemetry, type Telemetry } from '../model/telemetry.ts'
import { awaitServer } from './await-server.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from './embedded-postgres.ts'
import { hasCluster } from './postgres-cluster.ts'
import type { IndexNews } from './migrate-indexes.ts'
import { migrate, unknownMigrations } from './migrate.ts'
import { sessionNameOf } from './nodes.ts'
import { observedSql, type QueryLoad } from './observed-sql.ts'
import { settlePersonSearch } from './settle-person-search.ts'
import { settleVectorSearch } from './settle-vector-search.ts'
import { connect, type DatabaseServer, type Sql } from './sql.ts'
import { createTimelySql } from './timely-sql.ts'

/** A server that starts beside this process (a compose file) may take a while. */
const reachTimeout = 20_000
const maxConnections = 10
const maxRequestConnections = 6
const endTimeout = 5_000
const oldestVersion = 150_000
const defaultLimit = 5_000

export type Database = {
  readonly sql: Sql
  /** Connections of their own for what is asked from outside: however slow and many such questions are, a running call waits for none. */
  readonly requests: Sql
  /** Queries under way on either, where somebody wants to know. */
  readonly queries: { readonly calls: Readonly<QueryLoad>; readonly requests: Readonly<QueryLoad> }
  /** For connections of one's own. */
  readonly server: DatabaseServer
  readonly embedded: boolean
  /** Embedded, and started by another process. */
  readonly isJoined: boolean
  /** Migrations that this process has applied. */
  readonly applied: number
  /** Of pgvector; null: the server has none. */
  readonly vectorSchema: string | null
  /** Lets running queries finish for a few seconds. Idempotent. */
  close(): Promise<void>
}

export type DatabaseOptions = {
  readonly databaseUrl: string | null
  /** Where an embedded database lives. */
  readonly dataDir: string
  /** Ms that a query or a transaction may take, the wait for a connection included. */
  readonly databaseTimeout?: number
  /** Of a process that others look after: its sessions tell them that it lives. */
  readonly nodeId?: NodeId
  /** Where the service has not been yet, NoDatabase is thrown and nothing is made. */
  readonly mustExist?: boolean
  readonly log: Log
  readonly telemetry?: Telemetry
}

export class NoDatabase extends Error {
  override readonly name = 'NoDatabase'
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { databaseUrl, dataDir, databaseTimeout: limit = defaultLimit, mustExist = false } = options
  const { log, telemetry = noTelemetry, nodeId } = options
  if (mustExist && databaseUrl === null && !(await hasCluster(dataDir))) throw new NoDatabase(dataDir)
  const embedded = databaseUrl === null ? await startEmbeddedPostgres({ dataDir, log }) : null
  const server = embedded?.server ?? { url: databaseUrl ?? '' }
  const applicationName = nodeId === undefined ? 'parley' : sessionNameOf(nodeId)
  const sql = createTimelySql({ server, applicationName, maxConnections, limit, log })
  const ofRequests = { applicationName: 'parley requests', maxConnections: maxRequestConnections }
  const requests = createTimelySql({ server, ...ofRequests, limit, log })
  const close = closing([sql, requests], embedded)
  try {
    const waiting = ({ message: reason }: Error) =>
      log.warn('waiting for the database', { seconds: reachTimeout / 1000, reason })
    await awaitServer({ server, timeout: reachTimeout, waiting })
    const { applied, lacking, vectors } = await bringUpToDate({ server, mustExist, isOurs: embedded !== null, log })
    if (lacking !== null) log.warn('the search of persons does without extensions of the database', { lacking })
    if (vectors.lacking !== null) log.warn('vectors are compared in memory', { lacking: vectors.lacking })
    if (vectors.schema !== null) log.info('vectors are compared in the database')
    log.info('database is ready', { embedded: embedded !== null, applied })
    const queries = { calls: { underWay: 0 }, requests: { underWay: 0 } }
    return {
      sql: telemetry.isOn ? observedSql(sql, telemetry, queries.calls) : sql,
      requests: telemetry.isOn ? observedSql(requests, telemetry, queries.requests) : requests,
      queries,
      server,
      embedded: embedded !== null,
      isJoined: embedded?.isJoined ?? false,
      applied: applied.length,
      vectorSchema: vectors.schema,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function closing(pools: readonly Sql[], embedded: EmbeddedPostgres | null): () => Promise<void> {
  let closed: Promise<void> | null = null
  const close = async () => {
    await Promise.all(pools.map((sql) => sql.end({ timeout: endTimeout / 1000 })))
    await embedded?.close()
  }
  return () => (closed ??= close())
}

type BringUp = {
  readonly server: DatabaseServer
  readonly mustExist: boolean
  /** No process of a newer version is at work on it beside this one. */
  readonly isOurs: boolean
  readonly log: Log
}

/** A migration takes as long as it needs, and others wait for it. */
async function bringUpToDate({ server, mustExist, isOurs, log }: BringUp) {
  const sql = connect({ server, applicationName: 'parley start', maxConnections: 2 })
  try {
    await requireVersion(sql)
    if (mustExist && !(await hasOurTables(sql))) throw new NoDatabase('it has no tables of the service')
    await requireKnown(sql, isOurs, log)
    const told = (news: IndexNews) => log.info('an index of a large table is being made', news)
    const applied = await migrate(sql, undefined, told)
    return { applied, lacking: await settlePersonSearch(sql), vectors: await settleVectorSearch(sql) }
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** Old processes run beside new ones while a deployment is updated, and start again there; in the embedded database there is nobody but this one. */
async function requireKnown(sql: Sql, isOurs: boolean, log: Log): Promise<void> {
  const [first, ...more] = (await hasOurTables(sql)) ? await unknownMigrations(sql) : []
  if (first === undefined) return
  if (!isOurs) return log.warn('the database is of a newer version of the service', { migrations: [first, ...more] })
  throw Object.assign(new Error(`the migration ${first} is not known here`), { code: 'ENEWERTABLES' })
}

async function hasOurTables(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ found: boolean }[]>`select to_regclass('migrations') is not null as found`
  return row?.found ?? false
}

export async function requireVersion(sql: Sql): Promise<void> {
  const [row] = await sql<{ number: number; text: string }[]>`
    select current_setting('server_version_num')::int as number, current_setting('server_version') as text`
  if (row && row.number < oldestVersion)
    throw new Error(`PostgreSQL 15 or newer is needed, DATABASE_URL is ${row.text}`)
}

/**
 * Owns the connection to Postgres and what values look like on this side of it: columns are camelCase, `timestamptz` is plain ms
 * since the epoch, `int8` is a number, `undefined` is null. The driver is imported here and nowhere else.
 *
 * How callers write:
 * - jsonb: `${sql.json(value)}`. The value comes back as it went in (its keys are nobody's columns). `sql.json(null)` is SQL null.
 * - timestamptz: a number, `${now}`, or a list of them (without nulls). Where no column gives the type: `${now}::timestamptz`.
 *   Microseconds of `now()` are cut off on reading, so a time that is compared later must have been given by the application.
 * - a list: `= any(${list})`, so that the statement stays the same for every length; of a type named below. Lists of others are read as text.
 *
 * When the server ends a connection under a query, that query fails, and so does the next one on the same connection, with the
 * same error (driver 3.4.9). Whoever must succeed retries errors of class 57P more than once.
 */
import net from 'node:net'
import postgres from 'postgres'
import { arrayTypeOf, type Element } from './array-types.ts'

export type Sql = postgres.Sql
export type Transaction = postgres.TransactionSql
/** Part of a statement. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>

/** Where a server listens. The socket is the whole path of the socket file: only who may enter its folder may connect. */
export type DatabaseServer =
  { readonly url: string } | { readonly socket: string; readonly user: string; readonly database: string }

export type ConnectOptions = {
  readonly server: DatabaseServer
  /** What pg_stat_activity shows. */
  readonly applicationName: string
  /** Connections at most; queries beyond wait their turn. */
  readonly maxConnections: number
  /** Ms that the server lets a statement run; without it a minute. */
  readonly statementTimeout?: number
  /** The driver ends connections of more than half an hour when they stand still for a moment, within a transaction too; not this one's. */
  readonly lasting?: boolean
  /** Told of the socket of each connection, before it connects: whoever must end one that the server has forgotten can. */
  readonly opened?: (socket: net.Socket) => void
}

const connectTimeout = 10_000
/** Nothing this program asks takes this long; what does is stuck. */
const longestStatement = 60_000
const maxReconnectDelay = 1_000

/** Opens nothing yet: the first query connects. Whoever connects ends it with `sql.end({ timeout })`. */
export function connect(given: ConnectOptions): Sql {
  const {
    server,
    applicationName,
    maxConnections,
    statementTimeout = longestStatement,
    lasting = false,
    opened,
  } = given
  const options = {
    ...driverOptions,
    ...(opened && { socket: createSocketOpener(opened) }),
    max: maxConnections,
    ...(lasting && { max_lifetime: null }),
    connection: {
      application_name: applicationName,
      DateStyle: 'ISO',
      TimeZone: 'UTC',
      statement_timeout: statementTimeout,
      // Of a client that the network has lost: what it locked is free again after it.
      idle_in_transaction_session_timeout: Math.min(2 * statementTimeout, longestStatement),
    },
  }
  if ('url' in server) return reserving(postgres(server.url, options))
  const { socket: path, user, database } = server
  return reserving(postgres({ ...options, path, user, database }))
}

/**
 * A connection that the driver (3.4.9) opens to reserve it is handed out only by way of the question for types; otherwise never, to anybody. When it opens
 * another one may have been reserved in its place, so that question is asked of all that are opened from then on.
 */
function reserving(sql: Sql): Sql {
  const { reserve } = sql
  const options = sql.options as unknown as { fetch_types: boolean }
  const reserved = () => {
    options.fetch_types = true
    return reserve()
  }
  return Object.assign(sql, { reserve: reserved })
}

/** What the driver resolved of its options; the first of the hosts is asked first. */
type Resolved = { readonly host: readonly string[]; readonly port: readonly number[]; readonly path: string | false }

/** Connects as the driver does, which tells nobody of the sockets that it makes itself. */
function createSocketOpener(opened: (socket: net.Socket) => void): (options: Resolved) => net.Socket {
  let tried = 0
  return ({ host, port, path }) => {
    const socket = new net.Socket()
    opened(socket)
    if (path) return socket.connect(path)
    const place = tried++ % port.length
    const target = { host: host[place] ?? '', port: port[place] ?? 0 }
    // The driver reads the name that a certificate must have from here.
    return Object.assign(socket, target).connect(target)
  }
}

const timestamp: postgres.PostgresType = { to: 1184, from: [1184], serialize: timestampOf, parse: msOf }
const int8: postgres.PostgresType = { to: 20, from: [20], serialize: String, parse: numberOf }

const text: Element = { serialize: String, parse: (value) => value }
const number: Element = { serialize: String, parse: Number }
const boolean: Element = {
  serialize: (value: unknown) => (value === true ? 't' : 'f'),
  parse: (value) => value === 't',
}
const json: Element = {
  serialize: (value: unknown) => JSON.stringify(value),
  parse: (value) => JSON.parse(value) as unknown,
}

/** By the number of the list. */
const elements: Readonly<Record<number, Element>> = {
  // text, varchar, bpchar, name, uuid, inet, cidr, regclass, numeric
  ...Object.fromEntries([1009, 1015, 1014, 1003, 2951, 1041, 651, 2210, 1231].map((oid) => [oid, text])),
  // int2, int4, oid, float4, float8
  ...Object.fromEntries([1005, 1007, 1028, 1021, 1022].map((oid) => [oid, number])),
  1000: boolean,
  199: json,
  3807: json,
  1016: { serialize: String, parse: numberOf },
  1185: { serialize: timestampOf, parse: msOf },
}
const lists = Object.entries(elements).map(
  ([oid, element]) => [`list${oid}`, arrayTypeOf(Number(oid), element)] as const,
)

const driverOptions = {
  connect_timeout: connectTimeout / 1000,
  backoff: (attempt: number) => Math.min(3 ** attempt * 10, maxReconnectDelay) / 1000,
  types: { timestamp, int8, ...Object.fromEntries(lists) } as Record<string, postgres.PostgresType>,
  // A connection that ends while the driver asks for them throws where nobody can catch it (3.4.9).
  fetch_types: false,
  // Not `postgres.camel`: that one renames the keys inside of JSON values too.
  transform: { undefined: null, column: { from: postgres.toCamel, to: postgres.fromCamel } },
  onnotice: () => {},
}

/** The columns of these fields, for a `select`. */
export const columnsOf = (table: string, fields: readonly string[]): string =>
  fields.map((field) => `${table}.${columnOf(field)}`).join(', ')

export const columnOf = (field: string): string => postgres.fromCamel(field)

function timestampOf(value: unknown): string {
  if (value === Infinity) return 'infinity'
  if (value === -Infinity) return '-infinity'
  if (typeof value === 'number' || value instanceof Date) return new Date(value).toISOString()
  throw new TypeError('a timestamptz is written as milliseconds')
}

/** `2026-11-21 03:36:57.123456+00` as the session's DateStyle and TimeZone make it. */
function msOf(text: string): number {
  if (text === 'infinity') return Infinity
  if (text === '-infinity') return -Infinity
  const ms = Date.parse(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`)
  if (!text.endsWith('+00') || Number.isNaN(ms)) throw new RangeError('a timestamptz outside of the years 1 to 9999')
  return ms
}

function numberOf(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number)) throw new RangeError('an int8 that no number can hold')
  return number
}

/** Owns the difference between a database that is away for a moment and a bug. */

const codes: ReadonlySet<string> = new Set([
  // The operating system's.
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  // The driver's.
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  // Our own: no answer within the time that a query has.
  'QUERY_DEADLINE',
  // Postgres': it became a standby; a transaction stood still, or took, too long.
  '25006',
  '25P03',
  '25P04',
])

/**
 * What Postgres broke off or could not do just now and may do in a moment: connection failures, a deadlock's victim, no connection, memory or
 * disk left, a lock or a statement that took too long, shutting down and starting.
 */
const classes: ReadonlySet<string> = new Set(['08', '40', '53', '55', '57', '58'])

const sqlState = /^[0-9A-Z]{5}$/

const lost: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  // Postgres ended the connection: an operator did, it shuts down, or another connection of it crashed.
  '57P01',
  '57P02',
])

/** The connection broke under what was asked; the next one may be as good as ever. */
export function connectionLost(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false
  return lost.has(error.code) || (sqlState.test(error.code) && error.code.startsWith('08'))
}

const final: ReadonlySet<string> = new Set(['QUERY_DEADLINE', '57014', 'CONNECTION_ENDED'])

/** There was no answer within the time that a query has, or this process asks nothing any more: trying again at once is waiting again, or in vain. */
export function isFinal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && final.has(error.code)
}

/** A lock that somebody else holds, a deadlock, or what the database, or the step itself, refuses: the others of a group have no part in it. */
export function isOfOneMember(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : null
  return !databaseUnreachable(error) || code === '55P03' || code === '40P01'
}

export function databaseUnreachable(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false
  // A socket file that is not there; any other ENOENT is a bug.
  if (error.code === 'ENOENT') return 'syscall' in error && error.syscall === 'connect'
  return codes.has(error.code) || (sqlState.test(error.code) && classes.has(error.code.slice(0, 2)))
}

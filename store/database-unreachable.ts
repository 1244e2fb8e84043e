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
  // Postgres': it shuts down, crashed, starts, has no connection left.
  '57P01',
  '57P02',
  '57P03',
  '53300',
])

export function databaseUnreachable(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false
  // A socket file that is not there; any other ENOENT is a bug.
  if (error.code === 'ENOENT') return 'syscall' in error && error.syscall === 'connect'
  return codes.has(error.code) || error.code.startsWith('08')
}

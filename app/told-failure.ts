/** Owns how a start that fails is told to the operator: one sentence that names the setting, where a setting can mend it. The rest keeps its stack. */
import { WrongSettings } from './config/setting.ts'

/** What system, driver and Postgres say by a code. */
const reasons: Readonly<Record<string, string>> = {
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  EROFS: 'it is read-only',
  ENOTDIR: 'a part of its path is a file',
  EEXIST: 'a part of its path is a file',
  ENOENT: 'there is no such folder, and none can be made',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk is full',
  ENAMETOOLONG: 'its path is too long',
  ELOOP: 'its path leads in a circle',
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the connection was cut',
  ETIMEDOUT: 'nobody answers there',
  CONNECT_TIMEOUT: 'nobody answers there',
  CONNECTION_REFUSED: 'nobody listens there',
  CONNECTION_CLOSED: 'the connection was cut',
  EHOSTUNREACH: 'there is no way there',
  ENETUNREACH: 'there is no way there',
  ENOTFOUND: 'its host name is not known',
  EAI_AGAIN: 'its host name cannot be looked up',
  EADDRINUSE: 'the port is taken',
  EADDRNOTAVAIL: 'this machine does not have that address',
  '28P01': 'the password is wrong',
  '28000': 'the user may not connect',
  '3D000': 'there is no such database',
  '42501': 'the user may not do what is needed',
  '53100': 'the disk of the database is full',
  '53300': 'it has no connection free',
  '57P01': 'the database was shut down',
  '57P02': 'the database was shut down',
}

/** Of an error, or of what it was caused by. */
function codeOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  // The members of a failed attempt at several addresses.
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : []
  if ('code' in error && typeof error.code === 'string' && error.code in reasons) return error.code
  return codeOf(error.cause) ?? codeOf(first)
}

export function reasonOf(error: unknown): string {
  const code = codeOf(error)
  if (code !== null) return reasons[code] ?? code
  const message = error instanceof Error ? error.message : String(error)
  return message.replaceAll(/\s*\n\s*/g, ' ')
}

/** `what` names settings and says what was tried: `NATS_URL: no NATS server at nats://host`. What is told already stays as it is. */
export async function told<Value>(what: string, work: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof WrongSettings) throw error
    throw new WrongSettings(`${what}: ${reasonOf(error)}`, { cause: error })
  }
}

/** Without the user and the password in it. */
export function withoutSecrets(url: string): string {
  return url.replaceAll(/\/\/[^/@]*@/g, '//')
}

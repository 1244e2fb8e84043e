/**
 * Owns how a start that fails is told to the operator: one sentence that names the setting, where a setting can mend it, and says what to do. The rest
 * keeps its stack.
 */
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
  EFOREIGNFOLDER: 'it belongs to another user',
  EPOSTGRESASROOT: 'Postgres does not run as root, and this system refuses it a user namespace',
  EOTHERPOSTGRES: 'it was made by another version of Postgres',
  ENOSHAREDMEMORY: 'the shared memory of this machine (/dev/shm) is full',
  ENEWERTABLES: 'its tables are of a newer version of the service',
  ENAMETOOLONG: 'its path is too long',
  ELOOP: 'its path leads in a circle',
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the connection was cut',
  ETIMEDOUT: 'nobody answers there',
  CONNECT_TIMEOUT: 'nobody answers there',
  CONNECTION_REFUSED: 'nobody listens there',
  CONNECTION_CLOSED: 'the connection was cut',
  ENOTLS: 'the server speaks no TLS',
  EBUSREFUSED: 'it refuses the user and the password',
  EHOSTUNREACH: 'there is no way there',
  ENETUNREACH: 'there is no way there',
  ENOTFOUND: 'its host name is not known',
  EAI_AGAIN: 'its host name cannot be looked up',
  EADDRINUSE: 'the port is taken',
  EADDRNOTAVAIL: 'this machine does not have that address',
  '28P01': 'the password is wrong',
  '28000': 'the user may not connect from here, or by TLS only',
  '3D000': 'there is no such database',
  '42501': 'the user may not do what is needed',
  '53100': 'the disk of the database is full',
  '53300': 'it has no connection free',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'nobody that is believed has signed its certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'nobody that is believed has signed its certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'nobody that is believed has signed its certificate',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'nobody that is believed has signed its certificate',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
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

/** What an operator does about it, by the code of the failure. */
export type Mends = Readonly<Record<string, string>>

/** Of what fails: what is told already and stays as it is, and as which error the rest is told. */
export type Telling = {
  isTold(error: unknown): boolean
  errorOf(sentence: string, cause: unknown): Error
  /** Of the place; absent: that of `reasonOf`. */
  reasonOf?(error: unknown): string
}

/** `what` names what was tried, and the setting, option or file of which it is. */
export async function tellingFailure<Value>(
  what: string,
  work: () => Value | Promise<Value>,
  telling: Telling,
): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    if (telling.isTold(error)) throw error
    throw telling.errorOf(`${what}: ${(telling.reasonOf ?? reasonOf)(error)}`, error)
  }
}

/** `what` names settings: `NATS_URL: no NATS server at nats://host`. */
export const told = <Value>(what: string, work: () => Value | Promise<Value>, mends: Mends = {}): Promise<Value> =>
  tellingFailure(what, work, {
    isTold: (error) => error instanceof WrongSettings,
    errorOf: (sentence, cause) => new WrongSettings(sentence, { cause }),
    reasonOf(error) {
      const mend = mends[codeOf(error) ?? '']
      return `${reasonOf(error)}${mend === undefined ? '' : `; ${mend}`}`
    },
  })

/** Without the user and the password in it, of which a part may be what ends it elsewhere. */
export function withoutSecrets(url: string): string {
  return url.replaceAll(/\/\/[^/\s]*@/g, '//')
}

/** Owns the wait for a Postgres that is coming up: a server that refuses today may answer in a second, a wrong password never will. */
import { setTimeout as pause } from 'node:timers/promises'
import { refusesTls } from './refuses-tls.ts'
import { connect, type DatabaseServer } from './sql.ts'

const pauseBetween = 50

/** Codes of the system, of the driver and of Postgres (class 57P: starting up, shutting down; 53300: no connection free). */
const passing = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EPIPE',
  'CONNECTION_CLOSED',
  'CONNECT_TIMEOUT',
  '57P01',
  '57P02',
  '57P03',
  '53300',
])

/** So ends a connection on which TLS is begun with a server that has none. */
const cut = new Set(['ECONNRESET', 'EPIPE', 'CONNECTION_CLOSED'])

export type AwaitOptions = {
  readonly server: DatabaseServer
  readonly timeout: number
  /** False ends the wait early: whatever should answer is gone. */
  readonly possible?: () => boolean
  readonly signal?: AbortSignal
  /** Told once, when the first answer is none: whoever waits at a terminal wants to know what for. */
  readonly waiting?: (error: Error) => void
}

/** True when the server answers, false when it no longer can. Throws when time is up, or at once what no waiting cures. */
export async function awaitServer(options: AwaitOptions): Promise<boolean> {
  const { server, timeout, possible = () => true, signal } = options
  const deadline = performance.now() + timeout
  let { waiting } = options
  while (possible()) {
    const error = await attempt(server)
    if (error === null) return true
    if (!passing.has(codeOf(error))) throw error
    if (performance.now() > deadline) throw new Error('the database did not answer in time', { cause: error })
    waiting?.(error)
    waiting = undefined
    await pause(pauseBetween, undefined, signal ? { signal } : {})
  }
  return false
}

async function attempt(server: DatabaseServer): Promise<Error | null> {
  const sql = connect({ server, applicationName: 'parley start', maxConnections: 1 })
  try {
    await sql`select 1`
    return null
  } catch (error) {
    if (!(error instanceof Error)) return new Error('the database driver failed', { cause: error })
    return cut.has(codeOf(error)) && (await refusesTls(sql)) ? Object.assign(error, { code: 'ENOTLS' }) : error
  } finally {
    await sql.end({ timeout: 0 })
  }
}

const codeOf = (error: Error): string => ('code' in error && typeof error.code === 'string' ? error.code : '')

/**
 * Owns how the files a process may have open (connections are among them) are shared out: strangers' connections have a part of them, and the
 * rest is kept for running calls, which need sockets and recordings, and for the database.
 */
import { readFileSync } from 'node:fs'

/** How many connections there may be of each kind: what is wished, less where the process may open too few files. */
export type Wished = { readonly http: number; readonly sip: number }

export const connectionsWithin = (openFiles: number | null, wished: Wished): Wished =>
  openFiles === null
    ? wished
    : { http: Math.min(wished.http, Math.floor(openFiles / 2)), sip: Math.min(wished.sip, Math.floor(openFiles / 8)) }

/** The soft limit of this process (getrlimit(2) RLIMIT_NOFILE), which node has raised to the hard one; null where the system does not tell. */
export function openFilesLimit(file = '/proc/self/limits'): number | null {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync(file, 'utf8')) ?? []
    return soft === undefined ? null : Number(soft)
  } catch {
    // There is no such file outside of Linux.
    return null
  }
}

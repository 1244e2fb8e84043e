/** Owns what is made of the words in which Postgres' own programs fail: an error with a code, as the system gives codes, where an operator can mend it. Pure. */

/** The first that fits. */
const causes: readonly (readonly [words: RegExp, code: string])[] = [
  [/shared memory segment[^\n]*No space left on device/, 'ENOSHAREDMEMORY'],
  [/No space left on device/, 'ENOSPC'],
  [/Disk quota exceeded/, 'EDQUOT'],
  [/has wrong ownership/, 'EFOREIGNFOLDER'],
  [/database files are incompatible with server/, 'EOTHERPOSTGRES'],
  [/Permission denied/, 'EACCES'],
  [/Read-only file system/, 'EROFS'],
]

/** `what` is a sentence. */
export function postgresFailure(what: string, words: string): Error {
  const error = new Error(`${what} It said:\n${words.trim()}`)
  const [, code] = causes.find(([pattern]) => pattern.test(words)) ?? []
  return code === undefined ? error : Object.assign(error, { code })
}

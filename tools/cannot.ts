/** Owns how a program of ours says what it cannot do: in sentences that name the option, file or host. A stack is for what nobody expected. */
import { access, constants, stat } from 'node:fs/promises'
import path from 'node:path'
import { WrongSettings } from '../app/config/setting.ts'
import { reasonOf, tellingFailure } from '../app/told-failure.ts'
import { Problem } from '../model/problem.ts'

export class Cannot extends Error {
  override readonly name: string = 'Cannot'
}

/** What the system says of a file. */
const fileReasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is a file',
}

/** `what` names the option, file or host of which the work is. */
export const orCannot = <Value>(what: string, work: () => Promise<Value>): Promise<Value> =>
  tellingFailure(what, work, {
    isTold,
    errorOf: (sentence, cause) => new Cannot(sentence, { cause }),
    reasonOf: (error) =>
      fileReasons[error instanceof Error && 'code' in error ? String(error.code) : ''] ?? reasonOf(error),
  })

/** So that nobody hears at the end of an hour that the results of it go nowhere. */
export const requireWritable = (what: string, file: string): Promise<void> =>
  orCannot(what, async () => {
    const found = await stat(file).catch(() => null)
    if (found?.isDirectory()) throw new Cannot(`${what}: it is a folder`)
    await access(found ? file : path.dirname(path.resolve(file)), constants.W_OK)
  })

const isTold = (error: unknown): boolean =>
  error instanceof Cannot || error instanceof WrongSettings || error instanceof Problem

/** Of what a command line was given, or leads to, and not of a bug. */
export const isExpected = (error: unknown): boolean => isTold(error) || isWrongArgument(error)

/** Of `parseArgs`. */
export const isWrongArgument = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')

export function failureText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return isExpected(error) ? error.message : (error.stack ?? error.message)
}

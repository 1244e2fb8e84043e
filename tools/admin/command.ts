/** Owns what a command of `npm run admin` is, and how it reads what it was given. */
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { buffer as readAll } from 'node:stream/consumers'
import type { ParseArgsOptionsConfig } from 'node:util'
import type { z } from 'zod'
import { toId, type AccountId, type Id } from '../../model/ids.ts'
import { flawOf } from '../../model/json.ts'
import { issuesOf } from '../../model/issues.ts'
import type { Log } from '../../model/log.ts'
import type { PriceTable } from '../../model/price-table.ts'
import { Problem } from '../../model/problem.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import { findAccount } from '../../store/accounts.ts'
import type { Home } from '../../store/backup/make-backup.ts'
import type { RotatingSecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'

/** As `parseArgs` gives them. */
export type Options = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>

/** The database of the service, the key of its secrets (read or made when it is asked for), its recordings, and where the answer goes. */
export type AdminDatabase = {
  readonly sql: Sql
  openBox(): Promise<RotatingSecretBox>
  /** Absent: what is to be done to recordings is left to the service that runs. */
  readonly recordings?: RecordingStore
  /** The same, to be read only; absent: nothing can be. */
  readonly toRead?: Pick<RecordingStore, 'read'>
  /** Where the service has what a backup takes. */
  readonly home?: Home
  readonly log?: Log
  /** What calls cost; absent: nobody knows. */
  readonly prices?: PriceTable | null
  /** Where people have the pages of the service, without a slash at the end; absent: nobody knows. */
  readonly url?: string
  print(text: string): void
}

/** Both kinds resolve with the exit code. Words behind the name of the command are `given`. */
export type Command = {
  /** Its words in `<>`, and those in `[]` that may be left out, before the first option are all that it takes. */
  readonly usage: string
  readonly options?: ParseArgsOptionsConfig
} & (
  | { run(given: readonly string[], options: Options): Promise<number> }
  | { runOn(database: AdminDatabase, given: readonly string[], options: Options): Promise<number> }
)

/** By name: one word or two. */
export type Commands = Readonly<Record<string, Command>>

/** The names of the words that its usage has before the first option, `<asked for>` or `[not]`, without what is said of them behind a comma. */
export const wordsOf = ({ usage }: Command): string[] =>
  [...(usage.split(/ \[--| --/, 1)[0] ?? '').matchAll(/[<[](\w+)[^>\]]*[>\]]/g)].map(([, name = '']) => name)

export const print = (text: string): void => void process.stdout.write(`${text}\n`)

export function required(value: string | undefined, name: string): string {
  if (!value) throw new Problem('VALIDATION_FAILED', `<${name}> is missing`)
  return value
}

export function idOf<Kind extends string>(value: string | undefined, name: string): Id<Kind> {
  const id = toId<Kind>(required(value, name))
  if (!id) throw new Problem('VALIDATION_FAILED', `<${name}> must be an id`)
  return id
}

/** Of an account that there is. */
export async function accountOf(sql: Sql, value: string | undefined): Promise<AccountId> {
  const id = idOf<'account'>(value, 'accountId')
  if (!(await findAccount(sql, id))) throw new Problem('NOT_FOUND', `there is no account ${id}`)
  return id
}

/** Of an option with `type: 'string'`. */
export function textOf(options: Options, name: string): string | undefined {
  const value = options[name]
  return typeof value === 'string' ? value : undefined
}

/** Of an option with `type: 'string', multiple: true`. */
export function textsOf(options: Options, name: string): string[] | undefined {
  const value = options[name]
  return Array.isArray(value) ? value.map(String) : undefined
}

/** Of an option with `type: 'string'`: digits and nothing else. */
export function numberOf(
  options: Options,
  name: string,
  { least, most }: { readonly least: number; readonly most: number },
): number | undefined {
  const text = textOf(options, name)
  if (text === undefined) return undefined
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new Problem('VALIDATION_FAILED', `--${name} must be a whole number from ${least} to ${most}`)
}

/** Of an option with `type: 'string'`: like 0.5; its bounds are those of the field. */
export function decimalOf(options: Options, name: string): number | undefined {
  const text = textOf(options, name)
  if (text === undefined) return undefined
  if (/^\d{1,6}(?:\.\d{1,4})?$/.test(text)) return Number(text)
  throw new Problem('VALIDATION_FAILED', `--${name} must be a number like 5 or 0.5`)
}

/** Of a file, or of standard input for `-`. */
export async function readText(file: string): Promise<string> {
  try {
    const bytes = file === '-' ? await readAll(process.stdin) : await readFile(file)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new Problem('VALIDATION_FAILED', `${file} cannot be read as a text: ${(error as Error).message}`)
  }
}

/** Without the end of its line. What stands in a command line, everybody on the machine reads; so secrets come from here. */
export const readSecret = async (file: string): Promise<string> => (await readText(file)).replace(/\r?\n$/, '')

/** What the API would take, by the same rules. Throws Problem VALIDATION_FAILED. */
export function checked<Schema extends z.ZodType>(schema: Schema, request: Readonly<Record<string, unknown>>) {
  const given = Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined))
  const parsed = schema.safeParse(given)
  if (!parsed.success)
    throw new Problem('VALIDATION_FAILED', 'Some values are not valid:', issuesOf(parsed.error, given))
  const flaw = flawOf(given)
  if (flaw) throw new Problem('VALIDATION_FAILED', `${flaw.path.join('.')} ${flaw.message}`)
  return parsed.data
}

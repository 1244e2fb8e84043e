/** Owns what a command of `npm run admin` is, and how it reads what it was given. */
import type { ParseArgsOptionsConfig } from 'node:util'
import process from 'node:process'
import type { z } from 'zod'
import { toId, type Id } from '../../model/ids.ts'
import { flawOf } from '../../model/json.ts'
import { issuesOf, Problem } from '../../model/problem.ts'
import type { SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'

/** As `parseArgs` gives them. */
export type Options = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>

/** The database of the service, and the key of its secrets; the key is read or made when it is asked for. */
export type AdminDatabase = {
  readonly sql: Sql
  openBox(): Promise<SecretBox>
}

/** Both kinds resolve with the exit code. Words behind the name of the command are `given`. */
export type Command = {
  readonly usage: string
  readonly options?: ParseArgsOptionsConfig
} & (
  | { run(given: readonly string[], options: Options): Promise<number> }
  | { runOn(database: AdminDatabase, given: readonly string[], options: Options): Promise<number> }
)

/** By name: one word or two. */
export type Commands = Readonly<Record<string, Command>>

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

/** What the API would take, by the same rules. Throws Problem VALIDATION_FAILED. */
export function checked<Schema extends z.ZodType>(schema: Schema, request: Readonly<Record<string, unknown>>) {
  const given = Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined))
  const parsed = schema.safeParse(given)
  if (!parsed.success) throw new Problem('VALIDATION_FAILED', 'Some values are not valid:', issuesOf(parsed.error))
  const flaw = flawOf(given)
  if (flaw) throw new Problem('VALIDATION_FAILED', `${flaw.path.join('.')} ${flaw.message}`)
  return parsed.data
}

/**
 * Owns the entry of the audit log that a command of the operator leaves, begun before the command does anything. Every command leaves one but those
 * that are named here: they only read. docs/contract/rest.md "Audit log".
 */
import { systemClock } from '../../app/clock.ts'
import { newId } from '../../app/core.ts'
import { toId, type AccountId, type CallId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import { silentLog } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import { createAudit } from '../../store/audit.ts'
import { findCallFacts } from '../../store/call-steps.ts'
import { wordsOf, type AdminDatabase, type Command, type Options } from './command.ts'

const reading: ReadonlySet<string> = new Set([
  'account list',
  'audit list',
  'bans',
  'bans list',
  'capture list',
  'document list',
  'engine check',
  'engine list',
  'key list',
  'number list',
  'person find',
  'recordings',
  'replay',
  'steps',
  'trunk list',
  'trunk refusals',
  'trunk show',
  'user list',
  'worker list',
])

/** Entries of an account go with it. This one is of the deployment, and names the account in its arguments. */
const outlastsAccount: ReadonlySet<string> = new Set(['account delete'])

type Given = {
  readonly name: string
  readonly command: Extract<Command, { runOn: unknown }>
  readonly positionals: readonly string[]
  readonly options: Options
}

export async function runNoted(database: AdminDatabase, given: Given): Promise<number> {
  const { name, command, positionals, options } = given
  if (reading.has(name)) return command.runOn(database, positionals, options)
  const audit = createAudit({ sql: database.sql, clock: systemClock, newId, log: database.log ?? silentLog })
  const named = namedOf(given)
  const created: string[] = []
  const print = (text: string): void => {
    const id = /^[\da-f]{8}-[\da-f-]{27}$/.exec(text.split(/\s/, 1)[0] ?? '')?.[0]
    if (id !== undefined) created.push(id)
    database.print(text)
  }
  try {
    const callId = toId<'call'>(textIn(named, 'callId'))
    const accountId = outlastsAccount.has(name) ? null : await accountIdOf(database, named, callId)
    const actor = { kind: 'operator' } as const
    const end = await audit.begin({ accountId, actor, action: `admin ${name}`, arguments: named })
    const ended = async (result: 'success' | 'error', errorCode?: string): Promise<void> => {
      const { accountId: _, ...others } = named
      const told = {
        ...(accountId === null ? named : others),
        ...(created[0] !== undefined && { created: { [idNameOf(name)]: created[0] } }),
      }
      const callIds = callId !== null && result === 'success' ? [callId] : []
      await end({ result, arguments: told, callIds, ...(errorCode !== undefined && { errorCode }) })
    }
    try {
      const code = await command.runOn({ ...database, print }, positionals, options)
      await ended(code === 0 ? 'success' : 'error')
      return code
    } catch (error) {
      await ended('error', error instanceof Problem ? error.type : 'INTERNAL')
      throw error
    }
  } finally {
    await audit.close()
  }
}

/** A person's id is masked by its name. */
const idNameOf = (name: string): string => (name === 'person add' ? 'personId' : 'id')

/** What was given, by the names that the usage has. */
function namedOf({ command, positionals, options }: Given): Record<string, Json> {
  const names = wordsOf(command)
  const places = positionals.map((value, index) => [names[index] ?? 'more', value] as const)
  return Object.fromEntries(
    [...places, ...Object.entries(options)].map(([name, value]) => [name, plain(value ?? null)]),
  )
}

/** Digits are a number, and words with commas between them a list, as REST has them. */
function plain(value: Json): Json {
  if (typeof value !== 'string') return value
  if (/^\d{1,6}$/.test(value)) return Number(value)
  return /^[a-z]+(?:,[a-z]+)+$/.test(value) ? value.split(',') : value
}

function textIn(named: Readonly<Record<string, Json>>, name: string): string {
  const value = named[name]
  return typeof value === 'string' ? value : ''
}

async function accountIdOf(
  { sql }: AdminDatabase,
  named: Readonly<Record<string, Json>>,
  callId: CallId | null,
): Promise<AccountId | null> {
  const given = toId<'account'>(textIn(named, 'accountId') || textIn(named, 'account'))
  if (given !== null || callId === null) return given
  return (await findCallFacts(sql, callId))?.accountId ?? null
}

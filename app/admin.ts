/** Owns `npm run admin -- <what> …`: what an operator does beside the API. It works while the service runs: it joins its database. */
import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { replay } from '../actors/call/replay.ts'
import { toIso } from '../model/clock.ts'
import { toId, type AccountId, type Id } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import { createAccount, listAccounts } from '../store/accounts.ts'
import { createApiKey, listApiKeys, revokeApiKey, type ApiKeyId } from '../store/api-keys.ts'
import { listCallEvents } from '../store/call-steps.ts'
import { createDocument, scriptTagOf } from '../store/documents.ts'
import { openDatabase } from '../store/open-database.ts'
import type { Sql } from '../store/sql.ts'
import { createWorker, findWorker, listWorkers } from '../store/workers.ts'
import { readConfig, readEnvironment } from './config.ts'
import { newId } from './core.ts'
import { createLog } from './log.ts'

type Options = Readonly<Record<string, string | undefined>>
type Command = {
  readonly usage: string
  /** Resolves with the exit code. */
  run(sql: Sql, given: readonly string[], options: Options): Promise<number>
}

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const commands: Readonly<Record<string, Command>> = {
  replay: { usage: 'replay <callId>', run: (sql, [callId]) => replayCall(sql, required(callId, 'callId')) },
  'account list': { usage: 'account list', run: accountList },
  'account create': {
    usage: 'account create <name> <slug>',
    async run(sql, [name, slug]) {
      const account = { name: required(name, 'name'), slug: required(slug, 'slug'), newId, now: Date.now() }
      print((await createAccount(sql, account)).id)
      return 0
    },
  },
  'key list': { usage: 'key list <accountId>', run: (sql, [account]) => keyList(sql, idOf(account, 'accountId')) },
  'key create': {
    usage: 'key create <accountId> <name> [--expires <ISO 8601>]',
    run: (sql, [account, name], options) => keyCreate(sql, idOf(account, 'accountId'), required(name, 'name'), options),
  },
  'key revoke': {
    usage: 'key revoke <accountId> <keyId>',
    async run(sql, [account, key]) {
      const revoked = await revokeApiKey(sql, idOf(account, 'accountId'), idOf(key, 'keyId') as ApiKeyId, Date.now())
      print(revoked ? 'revoked' : 'the account has no such key')
      return revoked ? 0 : 1
    },
  },
  'worker list': {
    usage: 'worker list <accountId>',
    run: (sql, [account]) => workerList(sql, idOf(account, 'accountId')),
  },
  'worker create': {
    usage: 'worker create <accountId> <name> [--language en]',
    async run(sql, [account, name], { language = 'en' }) {
      const worker = { accountId: idOf<'account'>(account, 'accountId'), name: required(name, 'name'), language }
      print((await createWorker(sql, { ...worker, newId, now: Date.now() })).id)
      return 0
    },
  },
  'script add': {
    usage: 'script add <accountId> <workerId> <file> [--direction inbound|outbound]',
    run: (sql, [account, worker, file], options) =>
      scriptAdd(sql, idOf(account, 'accountId'), idOf(worker, 'workerId'), required(file, 'file'), options),
  },
}

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { language: { type: 'string' }, expires: { type: 'string' }, direction: { type: 'string' } },
  })
  const words = [positionals.slice(0, 2).join(' '), positionals[0] ?? ''].find((name) => name in commands)
  const command = words === undefined ? undefined : commands[words]
  if (!command || words === undefined) {
    print(
      `usage: npm run admin -- <command>\n${Object.values(commands)
        .map(({ usage }) => `  ${usage}`)
        .join('\n')}`,
    )
    return 2
  }
  const config = readConfig(readEnvironment())
  const database = await openDatabase({ ...config, log: createLog(config.logLevel) })
  try {
    return await command.run(database.sql, positionals.slice(words.split(' ').length), values)
  } finally {
    await database.close()
  }
}

async function replayCall(sql: Sql, text: string): Promise<number> {
  const log = await listCallEvents(sql, idOf(text, 'callId'))
  if (log.length === 0) throw new Problem('NOT_FOUND', `there is no call ${text}`)
  const { facts, effects, ignored, differences } = replay(log)
  for (const { seq, fact, logged, replayed } of differences)
    print(`seq ${seq} ${fact.type}\n  logged   ${JSON.stringify(logged)}\n  replayed ${JSON.stringify(replayed)}`)
  print(
    `${facts} facts (${ignored} ignored), ${effects} effects: ${differences.length === 0 ? 'identical' : `${differences.length} differ`}`,
  )
  return differences.length === 0 ? 0 : 1
}

async function accountList(sql: Sql): Promise<number> {
  for (const { id, slug, name } of await listAccounts(sql)) print(`${id}  ${slug}  ${name}`)
  return 0
}

async function keyList(sql: Sql, accountId: AccountId): Promise<number> {
  const when = (ms: number | null): string => (ms === null ? 'never' : toIso(ms))
  for (const key of await listApiKeys(sql, accountId))
    print(
      `${key.id}  ${key.prefix}…  ${key.name}  last used ${when(key.lastUsedAt)}  ${key.revokedAt === null ? '' : 'revoked'}`,
    )
  return 0
}

async function keyCreate(sql: Sql, accountId: AccountId, name: string, { expires }: Options): Promise<number> {
  const expiresAt = expires === undefined ? null : Date.parse(expires)
  if (Number.isNaN(expiresAt)) throw new Problem('VALIDATION_FAILED', '--expires must be an ISO 8601 time')
  const { id, key } = await createApiKey(sql, { accountId, name, expiresAt, newId, now: Date.now() })
  print(`${id}\n${key}\nThe key is shown this once.`)
  return 0
}

async function workerList(sql: Sql, accountId: AccountId): Promise<number> {
  for (const worker of await listWorkers(sql, accountId)) print(`${worker.id}  ${worker.language}  ${worker.name}`)
  return 0
}

async function scriptAdd(
  sql: Sql,
  accountId: AccountId,
  workerId: Id<'worker'>,
  file: string,
  options: Options,
): Promise<number> {
  const { direction = 'inbound' } = options
  if (direction !== 'inbound' && direction !== 'outbound')
    throw new Problem('VALIDATION_FAILED', '--direction must be inbound or outbound')
  if (!(await findWorker(sql, accountId, workerId))) throw new Problem('NOT_FOUND', 'the account has no such worker')
  const fileName = file.split(/[\\/]/).at(-1) ?? file
  const content = await readFile(file, 'utf8')
  const document = {
    accountId,
    title: fileName,
    fileName,
    content,
    status: 'completed',
    workerIds: [workerId],
  } as const
  print(await createDocument(sql, { ...document, tagKeys: [scriptTagOf(direction)], newId, now: Date.now() }))
  return 0
}

function required(value: string | undefined, name: string): string {
  if (!value) throw new Problem('VALIDATION_FAILED', `<${name}> is missing`)
  return value
}

function idOf<Kind extends string>(value: string | undefined, name: string): Id<Kind> {
  const id = toId<Kind>(required(value, name))
  if (!id) throw new Problem('VALIDATION_FAILED', `<${name}> must be an id`)
  return id
}

main().then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    process.stderr.write(
      `${error instanceof Problem ? error.message : String(error instanceof Error ? error.stack : error)}\n`,
    )
    process.exitCode = 1
  },
)

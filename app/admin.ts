/**
 * Owns `npm run admin -- <what> …`: what an operator does beside the API. It works while the service runs: it joins its database. The commands
 * are in admin/, one file per subject.
 */
import process from 'node:process'
import { parseArgs } from 'node:util'
import { Problem } from '../model/problem.ts'
import { openDatabase } from '../store/open-database.ts'
import { createSecretBox, loadAppKey, subkey } from '../store/secret-box.ts'
import { accountCommands } from './admin/account.ts'
import { callCommands } from './admin/call.ts'
import { print, type Command, type Commands, type Options } from './admin/command.ts'
import { keyCommands } from './admin/key.ts'
import { personCommands } from './admin/person.ts'
import { trunkCommands } from './admin/trunk.ts'
import { webhookCommands } from './admin/webhook.ts'
import { workerCommands } from './admin/worker.ts'
import { readConfig, readEnvironment, WrongSettings } from './config.ts'
import { createLog } from './log.ts'

const commands: Commands = {
  ...callCommands,
  ...accountCommands,
  ...keyCommands,
  ...workerCommands,
  ...trunkCommands,
  ...personCommands,
  ...webhookCommands,
}

async function main(args: readonly string[]): Promise<number> {
  const name = [args.slice(0, 2).join(' '), args[0] ?? ''].find((words) => Object.hasOwn(commands, words))
  const command = name === undefined ? undefined : commands[name]
  if (name === undefined || !command) {
    const usages = Object.values(commands).map(({ usage }) => `  ${usage}`)
    print(`usage: npm run admin -- <command>\n${usages.join('\n')}`)
    return 2
  }
  const { positionals, values } = parseArgs({
    args: args.slice(name.split(' ').length),
    allowPositionals: true,
    options: command.options ?? {},
  })
  return 'run' in command ? command.run(positionals, values) : runOnDatabase(command, positionals, values)
}

type DatabaseCommand = Extract<Command, { runOn: unknown }>

async function runOnDatabase(command: DatabaseCommand, given: readonly string[], options: Options): Promise<number> {
  const config = readConfig(readEnvironment())
  const database = await openDatabase({ ...config, log: createLog(config.logLevel) })
  const openBox = async () => createSecretBox(subkey(await loadAppKey(config), 'secrets'))
  try {
    return await command.runOn({ sql: database.sql, openBox }, given, options)
  } finally {
    await database.close()
  }
}

/** What an operator can mend is said in sentences; anything else with its stack. */
function explanationOf(error: unknown): string {
  if (error instanceof Problem)
    return [error.message, ...(error.issues ?? []).map(({ path, message }) => `  ${path}: ${message}`)].join('\n')
  if (!(error instanceof Error)) return String(error)
  const wrongArguments = 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
  return wrongArguments || error instanceof WrongSettings ? error.message : String(error.stack)
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    process.stderr.write(`${explanationOf(error)}\n`)
    process.exitCode = 1
  },
)

/** Owns the commands of `npm run admin`: which there are, how a command line is read, and how a failure is explained. */
import { parseArgs } from 'node:util'
import { Problem } from '../../model/problem.ts'
import { WrongSettings } from '../../app/config/setting.ts'
import { accountCommands } from './account.ts'
import { auditCommands } from './audit.ts'
import { backupCommands } from './backup.ts'
import { banCommands } from './ban.ts'
import { callCommands } from './call.ts'
import { captureCommands } from './capture.ts'
import { wordsOf, type AdminDatabase, type Commands } from './command.ts'
import { documentCommands } from './document.ts'
import { engineCommands } from './engine.ts'
import { keyCommands } from './key.ts'
import { runNoted } from './note-command.ts'
import { numberCommands } from './number.ts'
import { personCommands } from './person.ts'
import { recordingCommands } from './recording.ts'
import { secretCommands } from './secret.ts'
import { stepCommands } from './step.ts'
import { trunkCommands } from './trunk.ts'
import { userCommands } from './user.ts'
import { webhookCommands } from './webhook.ts'
import { workerCommands } from './worker.ts'

const commands: Commands = {
  ...callCommands,
  ...captureCommands,
  ...accountCommands,
  ...keyCommands,
  ...userCommands,
  ...workerCommands,
  ...numberCommands,
  ...trunkCommands,
  ...personCommands,
  ...documentCommands,
  ...webhookCommands,
  ...engineCommands,
  ...banCommands,
  ...auditCommands,
  ...recordingCommands,
  ...secretCommands,
  ...backupCommands,
  ...stepCommands,
}

export type CommandDeps = {
  print(text: string): void
  /** Opens the database for one use. */
  onDatabase(use: (database: AdminDatabase) => Promise<number>): Promise<number>
}

/** Resolves with the exit code. What it throws is for `explanationOf`. */
export async function runCommand(args: readonly string[], { print, onDatabase }: CommandDeps): Promise<number> {
  const name = [args.slice(0, 2).join(' '), args[0] ?? ''].find((words) => Object.hasOwn(commands, words))
  const command = name === undefined ? undefined : commands[name]
  if (name === undefined || !command) {
    const usages = Object.values(commands).map(({ usage }) => `  ${usage}`)
    print(`usage: npm run admin -- <command>\n${usages.join('\n')}`)
    return args.length === 0 ? 0 : 2
  }
  if (args.includes('--help')) {
    print(`usage: npm run admin -- ${command.usage}`)
    return 0
  }
  const { positionals, values } = parseArgs({
    args: args.slice(name.split(' ').length),
    allowPositionals: true,
    options: command.options ?? {},
  })
  const surplus = positionals[wordsOf(command).length]
  if (surplus !== undefined)
    throw new Problem(
      'VALIDATION_FAILED',
      `“${surplus}” is a word too many (quote what belongs together): ${command.usage}`,
    )
  if ('run' in command) return command.run(positionals, values)
  return onDatabase((database) => runNoted(database, { name, command, positionals, options: values }))
}

/** What an operator can mend is said in sentences; anything else with its stack. */
export function explanationOf(error: unknown): string {
  if (error instanceof Problem)
    return [error.message, ...(error.issues ?? []).map(({ path, message }) => `  ${path}: ${message}`)].join('\n')
  if (!(error instanceof Error)) return String(error)
  const wrongArguments = 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
  return wrongArguments || error instanceof WrongSettings ? error.message : String(error.stack)
}

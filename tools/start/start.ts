/** Owns `npm start`: starts the service, lets it call itself, says where it is, and ends it in order. */
import { randomBytes } from 'node:crypto'
import process from 'node:process'
import type { Log } from '../../model/log.ts'
import { systemClock } from '../../app/clock.ts'
import { isOfNpm, readConfig, readEnvironment, type Config } from '../../app/config.ts'
import { WrongSettings } from '../../app/config/setting.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import { demoEmail, demoNumbers, seedDemo, seedSelfTest, type SeededDemo } from './demo/seed-demo.ts'
import type { Core } from '../../app/core.ts'
import { createLog } from '../../app/log.ts'
import { startParley, type Parley } from '../../app/parley.ts'
import { endWithProcess, printInAnyCase } from './end-of-process.ts'
import { runPhoneTest } from './self-test/phone-test.ts'
import { reportOf } from './self-test/report.ts'
import { runWebTest, type Speak } from './self-test/web-test.ts'
import { openEngines } from '../../app/voice-side.ts'

/** The caller of the self-test has another voice than the worker. */
const callerVoice = 'slt'

/** Ms in which the self-test lets go of its calls. */
const testEndsWithin = 3_000

/** Where nothing is seeded. */
const firstSteps = 'Accounts, keys and workers: npm run admin. The reference of the API: /docs.'

const print = (text: string): void => void process.stdout.write(`${text}\n`)

async function main(): Promise<void> {
  printInAnyCase()
  const config = readConfig(readEnvironment())
  const log = createLog(config.logLevel, config.logsPersonal)
  print('Parley is starting …')
  const voices = new AsyncDisposableStack()
  const voicing = usesEngines(config) ? openEngines(config, { log, clock: systemClock }, voices) : noVoices
  let demo: GreetedDemo | null = null
  const token = randomBytes(16).toString('base64url')
  const seed = async (core: Core) => (config.demo ? (demo = { ...(await seedDemo(core)), token }) : null)
  const engines = voicing.then((opened) => opened.engines)
  const service = await startParley({ config, log, engines, seed: tellingOfJoins(config, seed) })
  const { embedded } = await voicing
  const leaving = new AbortController()
  let greeting = Promise.resolve()
  const end = async (): Promise<void> => {
    print('\nParley ends its calls …')
    leaving.abort()
    await deadline(systemClock, testEndsWithin, greeting, goOn)
    await service.close()
    await voices.disposeAsync()
    process.exit(0)
  }
  endWithProcess({ clock: systemClock, isOfNpm: isOfNpm() }, () => end().catch(fail))
  const speak: Speak = async (text) => embedded?.speak(text, callerVoice) ?? new Int16Array(0)
  if (demo) greeting = greet(service, { config, demo, speak, log, signal: leaving.signal })
  else print(`Parley listens on ${service.url}\n${firstSteps}`)
  await greeting
}

/** Whose process loads no voices: who carries sound for others neither hears nor speaks. */
const noVoices = Promise.resolve({ engines: new Map(), embedded: null })
const usesEngines = ({ roles }: Config): boolean => (['actors', 'api', 'mcp'] as const).some((role) => roles.has(role))

type Seed = (core: Core) => Promise<GreetedDemo | null>

const tellingOfJoins =
  ({ dataDir }: Config, seed: Seed): Seed =>
  (core) => {
    if (core.joinsDatabase) print(`Another process runs the database in ${dataDir}; this one joins it.`)
    return seed(core)
  }

type GreetedDemo = SeededDemo & { readonly token: string }

type Greeting = {
  readonly config: Config
  readonly demo: GreetedDemo
  readonly speak: Speak
  readonly log: Log
  /** Aborted: this process ends. */
  readonly signal: AbortSignal
}

async function greet(service: Parley, greeting: Greeting): Promise<void> {
  const { config, demo } = greeting
  if (demo.apiKey) print(`\nThe key of the demo account, shown this once:\n  ${demo.apiKey}`)
  if (demo.password)
    print(
      `\nIts user, who signs in at ${service.url}/sign-in; the password is shown this once:\n  ${demoEmail}\n  ${demo.password}`,
    )
  if (config.selfTest) {
    print('\nSelf-test: calls to this service by browser and by telephone, with a synthetic caller …')
    const report = await proof(service, greeting)
    if (greeting.signal.aborted) return
    print(report)
  }
  print(`\nCall it from a browser:\n  ${service.url}/?token=${demo.token}\n`)
  if (service.sip)
    print(
      `Or by telephone (docs/phones.md):\n  sip:${demoNumbers.inbound}@${service.sip.address}:${service.sip.port}\n`,
    )
  print(`Or ask the API (${service.url}/docs shows all of it):`)
  print(`  curl -H 'x-api-key: ${demo.apiKey ?? '<your key>'}' ${service.url}/v1/accounts/current\n`)
}

/** A test that cannot run says why; the service runs all the same. */
async function proof(service: Parley, { speak, log, signal }: Greeting): Promise<string> {
  const failed = (error: unknown): string => {
    if (!signal.aborted) log.error('the self-test could not run', { error })
    return error instanceof Error ? error.message : String(error)
  }
  try {
    const account = await seedSelfTest({ ...service, clock: systemClock })
    const web = await runWebTest(service, account, { speak, signal }).catch(failed)
    const { sip } = service
    if (!sip || signal.aborted) return reportOf(web, null)
    return reportOf(web, await runPhoneTest({ ...service, sip }, account, { speak, log, signal }).catch(failed))
  } catch (error) {
    return failed(error)
  }
}

/** What an operator can mend is said in a sentence; anything else with its stack. */
function fail(error: unknown): never {
  process.stderr.write(`${explanationOf(error)}\n`)
  process.exit(1)
}

function explanationOf(error: unknown): string {
  if (error instanceof WrongSettings) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

main().catch(fail)

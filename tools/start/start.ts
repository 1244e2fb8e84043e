/** Owns `npm start`: starts the service, says what it does and where it is, lets it call itself, and ends it in order. */
import { randomBytes } from 'node:crypto'
import process from 'node:process'
import type { Log } from '../../model/log.ts'
import { systemClock } from '../../app/clock.ts'
import { isOfNpm, readConfig, readEnvironment, settingNames, type Config } from '../../app/config.ts'
import { mistypedOf } from '../../app/config/mistyped.ts'
import { notesOf } from '../../app/unset-notes.ts'
import { deadline, goOn } from '../../model/deadline.ts'
import { consoleLinkOf } from './console-link.ts'
import { seedDemo, type SeededDemo } from './demo/seed-demo.ts'
import type { Core } from '../../app/core.ts'
import { createLog } from '../../app/log.ts'
import { startParley, type Parley } from '../../app/parley.ts'
import { hasCluster } from '../../store/postgres-cluster.ts'
import { endWithProcess, printInAnyCase } from './end-of-process.ts'
import { explainFailure } from './explain-failure.ts'
import { greetingOf, textOf } from './greeting.ts'
import { createStages, type Stages } from './stages.ts'
import type { Speak } from './self-test/web-test.ts'
import { openEngines } from '../../app/voice-side.ts'

/** The caller of the self-test has another voice than the worker. */
const callerVoice = 'slt'

/** Ms in which the self-test lets go of its calls. */
const testEndsWithin = 3_000

/** Where nothing is seeded. */
const firstSteps = 'Accounts, keys and workers: npm run admin. The reference of the API: /docs.'

const print = (text: string): void => void process.stdout.write(`${text}\n`)

/** What is ended by whatever ends `npm start`: the start at first, later the service. */
type Life = { end(): Promise<void> }

async function main(): Promise<void> {
  printInAnyCase()
  const began = systemClock.now()
  const life: Life = { end: endStart }
  endWithProcess({ clock: systemClock, isOfNpm: isOfNpm() }, () =>
    life.end().catch((error: unknown) => fail(error, null)),
  )
  print('Parley is starting …')
  const environment = readEnvironment()
  for (const [typed, meant] of mistypedOf(environment, settingNames))
    print(`  The setting ${typed} is not known and has no effect: did you mean ${meant}?`)
  const config = readConfig(environment)
  await run(config, began, life).catch((error: unknown) => fail(error, config))
}

/** What is half made the next start throws away; an embedded database ends with the process that started it. */
async function endStart(): Promise<void> {
  print('\nParley ends before it has started.')
  process.exit(0)
}

async function run(config: Config, began: number, life: Life): Promise<void> {
  const log = createLog(config.logLevel, config.logsPersonal)
  const stages = createStages({ clock: systemClock, began, print })
  const voices = new AsyncDisposableStack()
  const voicing = config.roles.has('actors') ? openEngines(config, { log, clock: systemClock }, voices) : noVoices
  let demo: GreetedDemo | null = null
  const token = randomBytes(16).toString('base64url')
  const isNew = config.databaseUrl === null && !(await hasCluster(config.dataDir))
  stages.begin('database')
  let foreignSecrets = 0
  const seed = async (core: Core) => {
    foreignSecrets = core.foreignSecrets ?? 0
    stages.done('database', databaseLineOf(config, core, isNew))
    if (config.demo) {
      demo = { ...(await seedDemo(core)), token }
      stages.done('demo', demo.apiKey ? 'an account, a worker and its scripts are made' : 'is there already')
    }
    stages.begin('listening')
    return demo
  }
  const engines = voicing.then(({ engines: opened }) => {
    const names = [...opened.keys()].join(', ')
    if (names !== '') stages.done('voices', `${names} ${opened.size === 1 ? 'hears and speaks' : 'hear and speak'}`)
    return opened
  })
  const service = await startParley({ config, log, engines, seed })
  tellListening(stages, service)
  for (const note of notesOf(config, { foreignSecrets })) print(`  Note: ${note}`)
  const { embedded } = await voicing
  const leaving = new AbortController()
  let testing = Promise.resolve()
  life.end = async () => {
    print('\nParley ends its calls … (Ctrl-C again: at once)')
    leaving.abort()
    await deadline(systemClock, testEndsWithin, testing, goOn)
    await service.close()
    await voices.disposeAsync()
    print('Parley has ended.')
    process.exit(0)
  }
  const speak: Speak = async (text) => embedded?.speak(text, callerVoice) ?? new Int16Array(0)
  if (demo) testing = greet(service, { config, demo, speak, log, signal: leaving.signal })
  else print(`Parley listens on ${service.url}\n${firstSteps}`)
  await testing
}

function tellListening(stages: Stages, { url, sip }: Parley): void {
  stages.done('browsers', `page, signaling and API at ${url}`)
  if (sip) stages.done('telephones', `SIP at ${sip.address}:${sip.port}`)
  stages.end()
}

function databaseLineOf({ databaseUrl, dataDir }: Config, core: Core, isNew: boolean): string {
  const { joinsDatabase = false, migrated = 0 } = core
  const brought = migrated === 0 || isNew ? '' : `, brought to this version (migrations: ${migrated})`
  if (databaseUrl !== null) return `is reached${brought || ', its tables are of this version'}`
  if (joinsDatabase) return `is run in ${dataDir} by another process; this one joins it${brought}`
  return isNew ? `is made in ${dataDir}` : `goes on in ${dataDir}: what was stored is there${brought}`
}

/** Of a process that runs no calls: it neither hears nor speaks. */
const noVoices = Promise.resolve({ engines: new Map(), embedded: null })

type GreetedDemo = SeededDemo & { readonly token: string }

type Greeting = {
  readonly config: Config
  readonly demo: GreetedDemo
  readonly speak: Speak
  readonly log: Log
  /** Aborted: this process ends. */
  readonly signal: AbortSignal
}

/** The service can be called by now; it proves itself behind that. */
async function greet(service: Parley, greeting: Greeting): Promise<void> {
  const { config, signal } = greeting
  for (const paragraph of greetingOf({ service, ...greeting })) print(textOf(paragraph))
  const link = await consoleLinkOf(service)
  if (link !== null) print(`\nThe console, where this link signs you in, once and within 15 minutes:\n  ${link}`)
  if (!config.selfTest) return print('')
  if (link !== null) print('  Its account Self-test has the calls of the self-test.')
  print('\nIt can be called now. Self-test beside it: calls by browser and by telephone, with a synthetic caller …')
  // What plays a browser is 8 MB, for a process that tests itself only.
  const { proof } = await import('./self-test/proof.ts')
  const report = await proof(service, greeting)
  if (!signal.aborted) print(`${report}\n`)
}

/** What an operator can mend is said in a sentence; anything else with its stack. */
async function fail(error: unknown, config: Config | null): Promise<never> {
  process.stderr.write(`${await explainFailure(error, config)}\n`)
  process.exit(1)
}

main().catch((error: unknown) => fail(error, null))
